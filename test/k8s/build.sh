#!/bin/bash
# Builds the kube-apiserver for the tests of k8s-collector, once for each state of apiserver/go.mod and go.sum, and
# unpacks Debian's etcd, into ${TRIBUTARY_CACHE:-~/.cache/tributary}. The last line of stdout is the folder with both.
# With an empty cache it takes 6 minutes on two idle cores and a minute of downloads. With a full cache it ends at once.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=$(sed -nE 's/^\s*(require )?k8s.io\/kubernetes v([0-9.]+)$/\2/p' "$here/apiserver/go.mod")

recipe=$(cat "$here"/apiserver/{go.mod,go.sum} | sha256sum | cut -c1-16)
cache=${TRIBUTARY_CACHE:-${HOME:?set HOME or TRIBUTARY_CACHE}/.cache/tributary}
out=$cache/kube-apiserver-$recipe
mkdir -p "$out"
exec 9>"$out/lock"
flock 9 # two builds at once: the second finds the first one's result

if [[ ! -x $out/etcd ]]; then
  # Unpack the package instead of installing it: an installation would start a service.
  work=$(mktemp -d "$out/etcd.XXXXXX")
  (cd "$work" && apt-get download -q etcd-server >&2 && dpkg-deb -x etcd-server_*.deb .)
  mv "$work/usr/bin/etcd" "$out/etcd"
  rm -rf "$work"
fi

if [[ ! -x $out/kube-apiserver ]]; then
  . "$here/../go_toolchain.sh"
  use_go "$here/apiserver/go.mod"
  work=$(mktemp -d "$out/work.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  cp "$here"/apiserver/go.{mod,sum} "$work"
  minor=$(cut -d. -f2 <<<"$version")
  stamp="-X k8s.io/component-base/version.gitVersion=v$version -X k8s.io/component-base/version.gitMajor=1"
  (cd "$work" && GOTOOLCHAIN=local GOFLAGS='-mod=readonly -modcacherw -buildvcs=false' CGO_ENABLED=0 "$go" build -p "${JOBS:-1}" -trimpath \
    -ldflags="-s -w $stamp -X k8s.io/component-base/version.gitMinor=$minor" -o kube-apiserver \
    k8s.io/kubernetes/cmd/kube-apiserver) >&2
  mv "$work/kube-apiserver" "$out/kube-apiserver"
fi
echo "$out"
