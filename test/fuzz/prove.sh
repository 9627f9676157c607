#!/bin/sh
# Shows that fuzz targets can find bugs. Builds each target with a planted crash (TRIBUTARY_PLANT_CRASH) that only
# structurally valid input reaches, then lets libFuzzer start at the committed corpus. The corpus alone must not crash.
# The fuzzer must find the crash within the time limit.
#
#   test/fuzz/prove.sh [-b BUILD_DIR] [-t SECONDS] TARGET…
set -eu

source_dir=$(cd "$(dirname "$0")/../.." && pwd)
build_dir=$source_dir/build/fuzz-planted
seconds=60
while getopts b:t: option; do
  case $option in
    b) build_dir=$OPTARG ;;
    t) seconds=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { echo "usage: $0 [-b BUILD_DIR] [-t SECONDS] TARGET…" >&2; exit 2; }

mkdir -p "$build_dir"
cmake -S "$source_dir" -B "$build_dir" --preset fuzz -DCMAKE_CXX_FLAGS=-DTRIBUTARY_PLANT_CRASH >"$build_dir/configure.log" ||
  { cat "$build_dir/configure.log" >&2; exit 1; }
cmake --build "$build_dir" --target "$@"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
for target in "$@"; do
  corpus=$source_dir/test/fuzz/corpus/$target
  binary=$build_dir/fuzz/$target
  if ! "$binary" -runs=0 "$corpus" >"$work/log" 2>&1; then
    echo "$target: crashes on its corpus alone" >&2
    failed=1
    continue
  fi
  mkdir "$work/$target"
  begin=$(date +%s)
  if "$binary" -seed=1 -max_len=4096 -max_total_time="$seconds" -artifact_prefix="$work/" "$work/$target" "$corpus" \
      >"$work/log" 2>&1; then
    echo "$target: planted crash not found in $seconds s" >&2
    failed=1
  elif grep -q 'ERROR: libFuzzer: deadly signal' "$work/log" && grep -q ' in abort' "$work/log"; then
    echo "$target: planted crash found in $(($(date +%s) - begin)) s after" \
         "$(grep -o '^#[0-9]*' "$work/log" | tail -1 | tr -d '#') inputs"
  else
    echo "$target: stopped, but not by the planted crash" >&2
    tail -50 "$work/log" >&2
    failed=1
  fi
done
exit $failed
