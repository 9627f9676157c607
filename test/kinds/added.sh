#!/bin/bash
# Adds a frame kind, a sample type and a context of BPF programs to a copy of the sources, each with one line in its
# table. Builds the copy and tests that the added rows work like the others. dev/test --added-kinds runs this script.
set -euo pipefail
. "$(dirname "$0")/../../dev/lib.sh"

copy=$BUILD/added-kinds/src
rm -rf "$copy"
mkdir -p "$copy"
tar -C "$SRC" --exclude=./build --exclude=./.git --exclude=node_modules -cf - . | tar -C "$copy" -xf -

# add FILE PATTERN LINE: inserts the line after the last line that contains the pattern.
add() {
  local at
  at=$(grep -n "$2" "$copy/$1" | tail -n 1 | cut -d: -f1)
  [ -n "$at" ] || { echo "$1: no line with '$2'" >&2; exit 1; }
  sed -i "${at}a\\
$3" "$copy/$1"
}
# add_to_macro FILE PATTERN LINE: does the same in a macro, where lines continue with a backslash.
add_to_macro() {
  sed -i "/$2/s|\$| \\\\|" "$copy/$1"
  add "$@"
}
add profile/frame_kinds.h '^    {"go",' '    {"added", "file", "added", "", FrameNaming::kOwn, false},'
add_to_macro bpf/include/sample_types.h 'X(OFF_CPU,' '	X(ADDED, Added, 3, "added_type", "widgets", Sum)'
add_to_macro bpf/include/records.h 'X(OTHER,' '	X(ADDED, "added")'
(cd "$copy" && diff -r -U0 -x build -x .git -x node_modules "$SRC" . | grep '^[+-]' | grep -v '^+++\|^---' || true)

SRC=$copy BUILD=$BUILD/added-kinds configure dev
ninja -C "$BUILD/added-kinds/dev" -j "$JOBS" reducer tributary made_up_node otlp_validate probes_live_test
export TRIBUTARY_BIN=$BUILD/added-kinds/dev/bin TRIBUTARY_BUILD=$BUILD/added-kinds/dev PYTHONDONTWRITEBYTECODE=1
python3 "$copy/test/e2e/kinds_test.py" --kind added --type added_type --unit widgets
sudo=()
[ "$(id -u)" = 0 ] || sudo=(sudo)
"${sudo[@]}" "$TRIBUTARY_BUILD/tests/probes_live_test" --gtest_filter='*Nesting*ADDED' | tee "$BUILD/added-kinds/nesting.log"
grep -q 'PASSED.* 1 test' "$BUILD/added-kinds/nesting.log"  # a filter that matches nothing passes, too
