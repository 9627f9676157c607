#!/bin/bash
# Builds CPython from a Debian source package in a way in which Debian does not deliver it. Prints the path of the interpreter.
#   build_python.sh static          one file with all modules and the C library
#   build_python.sh musl            with the C library musl
#   build_python.sh free-threaded   without the lock of the interpreter
# The results are cached: TRIBUTARY_CACHE, or ~/.cache/tributary. A build takes some minutes.
set -euo pipefail

kind=${1:?usage: build_python.sh static|musl|free-threaded}
version=3.13 suite=trixie compiler=gcc
settings=(--disable-test-modules --without-ensurepip --without-doc-strings)
make_variables=()
case $kind in
  static) settings+=(MODULE_BUILDTYPE=static) make_variables=(LDFLAGS=-static LINKFORSHARED=) ;;
  musl) settings+=(MODULE_BUILDTYPE=static) ;;
  free-threaded) version=3.14 suite=sid settings+=(--disable-gil) ;;
  *) echo "build_python.sh: unknown kind '$kind': give static, musl or free-threaded" >&2; exit 2 ;;
esac
# Modules that need other libraries are left out.
for module in _ssl _hashlib _ctypes _curses _curses_panel _dbm _gdbm _sqlite3 _lzma _bz2 _uuid _tkinter _zstd readline zlib nis; do
  settings+=("py_cv_module_$module=n/a")
done
cache=${TRIBUTARY_CACHE:-$HOME/.cache/tributary}/runtimes/python-$kind-$(sha256sum "${BASH_SOURCE[0]}" | cut -c 1-16)
if [ -e "$cache/ready" ]; then
  cat "$cache/ready"
  exit 0
fi
mkdir -p "$cache"
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' | grep -v security |
  head -n 1 | cut -d ' ' -f 1)
[ -n "$mirror" ] || { echo "build_python.sh: this machine's apt knows no Debian package source; run apt-get update" >&2; exit 1; }
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/build"
if [ "$kind" = musl ]; then
  # musl-gcc names the folder of glibc's libraries, and then CPython's configure takes the two for a contradiction.
  printf '#!/bin/sh\ncase " $* " in *" --print-multiarch "*) exit 0 ;; esac\nexec musl-gcc "$@"\n' >"$work/musl-compiler"
  chmod +x "$work/musl-compiler"
fi
echo "deb-src [signed-by=$keyring] $mirror $suite main" >"$work/sources.list"
apt=(-o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$work/lists"
     -o Dir::State::status=/dev/null -o Dir::Cache="$work" -o APT::Sandbox::User=root -o Acquire::Languages=none
     -o Acquire::Check-Valid-Until=false)
apt-get "${apt[@]}" update -q --error-on=any >&2
(cd "$work" && apt-get "${apt[@]}" source -q --download-only "python$version" >&2)
dpkg-source --no-check -x "$work"/python"$version"_*.dsc "$work/source" >&2

if [ "$kind" = musl ]; then compiler=$work/musl-compiler; fi
if command -v ccache >/dev/null; then compiler="ccache $compiler"; fi
cd "$work/build"
../source/configure --prefix="$cache/install" CC="$compiler" CFLAGS="-O2 -g1" "${settings[@]}" >configure.log
make -j"${JOBS:-1}" "${make_variables[@]}" >make.log 2>&1 || { tail -n 30 make.log >&2; exit 1; }
make -j1 "${make_variables[@]}" install >install.log 2>&1 || { tail -n 30 install.log >&2; exit 1; }
program=$(find "$cache/install/bin" -type f -name "python$version*" ! -name '*-config' | head -n 1)
[ -x "$program" ] || { echo "build_python.sh: there is no interpreter in $cache/install/bin" >&2; exit 1; }
if [ "$kind" = static ] && readelf -l "$program" | grep -q INTERP; then
  echo "build_python.sh: $program is not static" >&2
  exit 1
fi
echo "$program" >"$cache/ready"
echo "$program"
