# shellcheck shell=bash
# Scripts that build Go programs source this file.

# use_go FILE: sets $go to a go command that is new enough for it. The installed go must be 1.16 or later. If it
# is older than go.mod needs, the function fetches a newer toolchain as a Go module. Go checks that module against its
# checksum database, like any other module.
use_go() {
  local toolchain=go1.26.8 minor need module empty root
  command -v go >/dev/null || { echo "there is no go command: install golang-go, or run dev/deps" >&2; exit 1; }
  go=go
  # The N of "go version go1.N.M os/arch".
  minor=$(go version | sed -E 's/.*go1\.([0-9]+).*/\1/')
  need=$(sed -nE 's/^go 1\.([0-9]+).*/\1/p' "$1")
  ((minor < need)) || return 0
  module=golang.org/toolchain@v0.0.1-$toolchain.$(go env GOOS)-$(go env GOARCH)
  echo "go 1.$minor is too old, fetching $module" >&2
  # Run it in an empty folder, because such an old go cannot read our go.mod.
  empty=$(mktemp -d)
  root=$(cd "$empty" && GO111MODULE=on GOFLAGS=-modcacherw go mod download -json "$module" |
    sed -nE 's/^\s*"Dir": "(.*)",?$/\1/p')
  rmdir "$empty"
  # Go unpacks modules without execute permission.
  find "$root/bin" "$root/pkg/tool" -type f ! -perm -u+x -exec chmod u+x {} +
  export GOROOT=$root
  go=$root/bin/go
}
