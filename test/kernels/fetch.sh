#!/bin/bash
# Fetches a Debian cloud kernel for the guests into a cache and prints the folder: fetch.sh VERSION [amd64|arm64].
# VERSION must be in the table below. The folder contains vmlinuz, release (the output of uname -r), and the unpacked
# modules of a virtio network card. The file modules lists the modules' names in the order in which they load.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../build-env/private_apt.sh"

version=${1:?usage: fetch.sh 5.10|6.1|6.12|newest [amd64|arm64]}
arch=${2:-amd64}
case $version in
  5.10) suite=bullseye pattern='5\.10\.0-[0-9]+' ;;
  6.1) suite=bookworm pattern='6\.1\.0-[0-9]+' ;;
  6.12) suite=trixie pattern='6\.12\.[0-9+a-z]+' ;;
  newest) suite=sid pattern='[0-9][0-9+.a-z]+' ;;
  *) echo "fetch.sh: unknown kernel '$version': give 5.10, 6.1, 6.12 or newest" >&2; exit 2 ;;
esac
case $arch in
  amd64) folder=$version ;;
  arm64) folder=$version-arm64 ;;
  *) echo "fetch.sh: unknown architecture '$arch': give amd64 or arm64" >&2; exit 2 ;;
esac

cache=${TRIBUTARY_CACHE:-$HOME/.cache/tributary}/kernels/$folder
# The script looks for a newer kernel after a week.
if [ -s "$cache/release" ] && { [ "$version" != newest ] || [ -z "$(find "$cache/release" -mtime +7)" ]; }; then
  echo "$cache"
  exit 0
fi
mkdir -p "$(dirname "$cache")"
work=$(mktemp -d "$cache.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/download" "$work/ready"

private_apt "$work/apt" "$arch" "$suite"
package=$(apt-cache "${apt_options[@]}" search --names-only "^linux-image-$pattern-cloud-$arch\$" | cut -d ' ' -f 1 | sort -V | tail -n 1)
[ -n "$package" ] || { echo "fetch.sh: $suite has no package like linux-image-$pattern-cloud-$arch" >&2; exit 1; }
# Newer suites have the image and its modules in separate packages. The first package depends on them.
parts=$(apt-cache "${apt_options[@]}" show "$package" | sed -n 's/^Depends: //p' | grep -oE 'linux-(binary|modules)-[^ ,]+' || true)
# shellcheck disable=SC2086  # one word per package
(cd "$work/download" && apt-get "${apt_options[@]}" download -q "$package" $parts >&2)
for deb in "$work"/download/*.deb; do dpkg-deb -x "$deb" "$work/root"; done

only() { find "$work/root" -path "$1" -type f -print -quit; }
image=$(only "*/boot/vmlinuz-*")
[ -n "$image" ] || image=$(only "*/lib/modules/*/vmlinuz")
[ -n "$image" ] || { echo "fetch.sh: $package has no vmlinuz" >&2; exit 1; }
cp "$image" "$work/ready/vmlinuz"

# add_module NAME: adds the module after the modules that it depends on. A module built into the kernel has no file.
add_module() {
  local file dependency
  [ ! -e "$work/ready/$1.ko" ] || return 0
  file=$(only "*/lib/modules/*/kernel/*/$1.ko*")
  case $file in
    '') return 0 ;;
    *.ko) cp "$file" "$work/ready/$1.ko" ;;
    *.xz) xz -dc "$file" > "$work/ready/$1.ko" ;;
    *) echo "fetch.sh: $file has an unknown compression" >&2; exit 1 ;;
  esac
  for dependency in $(tr '\0' '\n' < "$work/ready/$1.ko" | sed -n 's/^depends=//p' | tr , ' '); do add_module "$dependency"; done
  echo "$1" >> "$work/ready/modules"
}
add_module virtio_pci
add_module virtio_net
echo "${package#linux-image-}" > "$work/ready/release"
rm -rf "$cache"
mv "$work/ready" "$cache"
echo "$cache"
