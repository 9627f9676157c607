#!/bin/bash
# Builds helm, kustomize and kubeconform, once for each state of go.mod and go.sum, and copies cert-manager's definitions of
# custom resources from its Go module, into ${TRIBUTARY_CACHE:-~/.cache/tributary}. The last line of stdout is the folder
# with all of them. With an empty cache it takes some minutes on two idle cores. With a full cache it ends at once.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

recipe=$(cat "$here"/go.{mod,sum} "$here"/crds/go.{mod,sum} | sha256sum | cut -c1-16)
cache=${TRIBUTARY_CACHE:-${HOME:?set HOME or TRIBUTARY_CACHE}/.cache/tributary}
out=$cache/k8s-tools-$recipe
mkdir -p "$out"
exec 9>"$out/lock"
flock 9 # two builds at once: the second finds the first one's result

if [[ ! -e $out/complete ]]; then
  . "$here/../../go_toolchain.sh"
  use_go "$here/go.mod"
  export GOTOOLCHAIN=local GOFLAGS='-mod=readonly -modcacherw -buildvcs=false' CGO_ENABLED=0
  work=$(mktemp -d "$out/work.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  # The source tree may be read-only.
  cp -r "$here"/go.{mod,sum} "$here/crds" "$work"
  (cd "$work" && "$go" build -p "${JOBS:-1}" -trimpath -ldflags='-s -w' -o "$work/bin/" tool) >&2
  mv "$work/bin"/* "$out"
  (cd "$work/crds" && "$go" mod download github.com/cert-manager/cert-manager) >&2
  module=$(cd "$work/crds" && "$go" list -m -f '{{.Dir}}' github.com/cert-manager/cert-manager)
  rm -rf "$out/crds"
  cp -r "$module/deploy/crds" "$out/crds"
  chmod -R u+w "$out/crds"
  touch "$out/complete"
fi
echo "$out"
