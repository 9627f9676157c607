# shellcheck shell=bash
# For scripts that build Go programs, to be sourced.

# use_go FILE: sets $go to a go command that is as new as that go.mod needs. Any go of 1.16 or later will do: one that is
# older fetches a newer toolchain as a Go module, checked against Go's checksum database like any other.
use_go() {
  local toolchain=go1.26.8 minor need module empty root
  command -v go >/dev/null || { echo "no go: install golang-go (dev/deps does)" >&2; exit 1; }
  go=go
  # 1.N of "go version go1.N.M os/arch".
  minor=$(go version | sed -E 's/.*go1\.([0-9]+).*/\1/')
  need=$(sed -nE 's/^go 1\.([0-9]+).*/\1/p' "$1")
  ((minor < need)) || return 0
  module=golang.org/toolchain@v0.0.1-$toolchain.$(go env GOOS)-$(go env GOARCH)
  echo "go 1.$minor is too old, fetching $module" >&2
  # In an empty folder: a go this old does not read our go.mod.
  empty=$(mktemp -d)
  root=$(cd "$empty" && GO111MODULE=on GOFLAGS=-modcacherw go mod download -json "$module" |
    sed -nE 's/^\s*"Dir": "(.*)",?$/\1/p')
  rmdir "$empty"
  # Modules are unpacked without the right to be executed.
  find "$root/bin" "$root/pkg/tool" -type f ! -perm -u+x -exec chmod u+x {} +
  export GOROOT=$root
  go=$root/bin/go
}
