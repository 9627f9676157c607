#!/bin/bash
# Builds the OpenTelemetry Collector that the export is tested against, once for each state of this folder's recipe
# (main.go, go.mod, go.sum), into ${TRIBUTARY_CACHE:-~/.cache/tributary}. The last line of stdout is its path.
# Cold it takes some 6 minutes on two cores; when it is there already, no time.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

recipe=$(cat "$here"/{main.go,go.mod,go.sum} | sha256sum | cut -c1-16)
cache=${TRIBUTARY_CACHE:-${HOME:?set HOME or TRIBUTARY_CACHE}/.cache/tributary}
out=$cache/otelcol-$recipe
binary=$out/otelcol-profiles

if [[ ! -x $binary ]]; then
  mkdir -p "$out"
  exec 9>"$out/lock"
  flock 9 # two builds at once: the second finds the first one's result
fi
if [[ ! -x $binary ]]; then
  . "$here/../../go_toolchain.sh"
  use_go "$here/go.mod"
  work=$(mktemp -d "$out/work.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  cp "$here"/{main.go,go.mod,go.sum} "$work"
  (cd "$work" && GOTOOLCHAIN=local GOFLAGS='-mod=readonly -modcacherw -buildvcs=false' CGO_ENABLED=0 \
    "$go" build -trimpath -ldflags='-s -w' -o otelcol-profiles .) >&2
  mv "$work/otelcol-profiles" "$binary"
fi
echo "$binary"
