#!/bin/bash
# Builds the Go programs of the tests of deploy/, once for each state of their go.mod and go.sum, into
# ${TRIBUTARY_CACHE:-~/.cache/tributary}. The last line of stdout is the path of the program.
#   test/deploy/build.sh tools     reads compose files with docker compose's own parser, and other YAML
#   test/deploy/build.sh compose   docker compose itself
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
name=${1:?give the name of a program}

recipe=$(cat "$here/$name"/* | sha256sum | cut -c1-16)
cache=${TRIBUTARY_CACHE:-${HOME:?set HOME or TRIBUTARY_CACHE}/.cache/tributary}
out=$cache/deploy-$name-$recipe
mkdir -p "$out"
exec 9>"$out/lock"
flock 9 # two builds at once: the second finds the first one's result

case $name in
  tools) package=. binary=bin/deploy-tools ;;
  compose) package=github.com/docker/compose/v2/cmd binary=bin/docker-compose ;;
  *) echo "build.sh: there is no program $name" >&2; exit 2 ;;
esac
if [[ ! -x $out/$binary ]]; then
  . "$here/../go_toolchain.sh"
  use_go "$here/$name/go.mod"
  work=$(mktemp -d "$out/work.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  cp "$here/$name"/* "$work"
  export GOTOOLCHAIN=local GOFLAGS='-mod=readonly -modcacherw -buildvcs=false' CGO_ENABLED=0
  (cd "$work" && "$go" build -p "${JOBS:-2}" -trimpath -ldflags='-s -w' -o built "$package") >&2
  mkdir -p "$out/bin"
  mv "$work/built" "$out/$binary"
fi
echo "$out/$binary"
