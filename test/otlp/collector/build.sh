#!/bin/bash
# Builds the OpenTelemetry Collector that the export is tested against, once for each state of this folder's recipe
# (main.go, go.mod, go.sum), into ${TRIBUTARY_CACHE:-~/.cache/tributary}. The last line of stdout is its path.
# Cold it takes some 6 minutes on two cores; when it is there already, no time.
# Any go of 1.16 or later will do: one older than the recipe needs fetches a newer toolchain as a Go module, checked
# against Go's checksum database like any other.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
toolchain=go1.26.8

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
  command -v go >/dev/null || { echo "build.sh: no go: install golang-go (dev/deps does)" >&2; exit 1; }
  go=go
  # 1.N of "go version go1.N.M os/arch".
  minor=$(go version | sed -E 's/.*go1\.([0-9]+).*/\1/')
  need=$(sed -nE 's/^go 1\.([0-9]+).*/\1/p' "$here/go.mod")
  if ((minor < need)); then
    module=golang.org/toolchain@v0.0.1-$toolchain.$(go env GOOS)-$(go env GOARCH)
    echo "build.sh: go 1.$minor is too old, fetching $module" >&2
    # In an empty folder: a go this old does not read our go.mod.
    empty=$(mktemp -d)
    root=$(cd "$empty" && GO111MODULE=on GOFLAGS=-modcacherw go mod download -json "$module" |
      sed -nE 's/^\s*"Dir": "(.*)",?$/\1/p')
    rmdir "$empty"
    # Modules are unpacked without the right to be executed.
    find "$root/bin" "$root/pkg/tool" -type f ! -perm -u+x -exec chmod u+x {} +
    export GOROOT=$root
    go=$root/bin/go
  fi
  work=$(mktemp -d "$out/work.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  cp "$here"/{main.go,go.mod,go.sum} "$work"
  (cd "$work" && GOTOOLCHAIN=local GOFLAGS='-mod=readonly -modcacherw -buildvcs=false' CGO_ENABLED=0 \
    "$go" build -trimpath -ldflags='-s -w' -o otelcol-profiles .) >&2
  mv "$work/otelcol-profiles" "$binary"
fi
echo "$binary"
