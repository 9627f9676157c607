#!/bin/bash
# Builds the Go programs of the tests of deploy/kubernetes and deploy/helm, once for each state of go.mod and go.sum, into
# ${TRIBUTARY_CACHE:-~/.cache/tributary}. The last line of stdout is the folder with them.
#   test/k8s/tools/build.sh kustomize   kustomize
#   test/k8s/tools/build.sh all         also helm, kubeconform, and cert-manager's definitions of custom resources from its
#                                       Go module. With an empty cache this takes some minutes on two idle cores
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
set_name=${1:?give kustomize or all}
case $set_name in
  kustomize) packages=(sigs.k8s.io/kustomize/kustomize/v5) ;;
  all) packages=(tool) ;;
  *) echo "build.sh: there is no set of programs $set_name" >&2; exit 2 ;;
esac

recipe=$(cat "$here"/go.{mod,sum} "$here"/crds/go.{mod,sum} | sha256sum | cut -c1-16)
cache=${TRIBUTARY_CACHE:-${HOME:?set HOME or TRIBUTARY_CACHE}/.cache/tributary}
out=$cache/k8s-tools-$set_name-$recipe
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
  (cd "$work" && "$go" build -p "${JOBS:-1}" -trimpath -ldflags='-s -w' -o "$work/bin/" "${packages[@]}") >&2
  mv "$work/bin"/* "$out"
  if [[ $set_name = all ]]; then
    (cd "$work/crds" && "$go" mod download github.com/cert-manager/cert-manager) >&2
    module=$(cd "$work/crds" && "$go" list -m -f '{{.Dir}}' github.com/cert-manager/cert-manager)
    rm -rf "$out/crds"
    cp -r "$module/deploy/crds" "$out/crds"
    chmod -R u+w "$out/crds"
  fi
  touch "$out/complete"
fi
echo "$out"
