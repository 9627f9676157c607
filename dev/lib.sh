# The scripts in this folder share this file. It sets SRC (the source tree) and BUILD (the build folders). BUILD is
# outside the source tree if that tree is read-only.
SRC=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ -n "${TRIBUTARY_BUILD_DIR:-}" ]; then
  BUILD=$TRIBUTARY_BUILD_DIR
elif [ -w "$SRC" ]; then
  BUILD=$SRC/build
else
  BUILD=${XDG_CACHE_HOME:-$HOME/.cache}/tributary/build
fi
JOBS=${TRIBUTARY_JOBS:-$(nproc)}

# configure PRESET [cmake options…]
configure() {
  local preset=$1
  shift
  (cd "$SRC" && cmake --preset "$preset" -B "$BUILD/$preset" "$@" >"$BUILD/$preset.configure.log" 2>&1) || {
    tail -n 30 "$BUILD/$preset.configure.log"
    echo "configuring $preset failed; the whole log: $BUILD/$preset.configure.log" >&2
    return 1
  }
}

since() { echo "$1: $((SECONDS / 60)) min $((SECONDS % 60)) s after the start"; }
