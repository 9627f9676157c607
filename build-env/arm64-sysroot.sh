#!/bin/bash
# Unpacks the arm64 packages of packages-arm64.txt, with all that they depend on, into a folder and prints it.
#   build-env/arm64-sysroot.sh [--lock]
# Nothing is installed and no foreign architecture is added to dpkg, so no package can conflict with one of this machine.
# The folder is ${TRIBUTARY_CACHE:-~/.cache/tributary}/arm64-sysroot. It is made anew if the package list changes. Like a real root,
# it has /var/lib/dpkg/status and the lists of files, which say what each library's package is.
# With --lock, versions are those of packages.lock, as the build image wants them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. ./private_apt.sh

packages=$(sed -n 's/^\([^# ]*\):arm64$/\1/p' packages-arm64.txt)
alone=$(sed -n 's/^\([^# ]*\):arm64 @alone$/\1/p' packages-arm64.txt)
if [ "${1:-}" = --lock ]; then
  locked=$(sed -n 's/^\([^# ]*\):arm64=/\1=/p' packages.lock)
  # shellcheck disable=SC2086  # one word a package
  single=$(printf '%s=\n' $alone)
  packages=$(grep -vF "$single" <<<"$locked")
  alone=$(grep -F "$single" <<<"$locked")
fi
sysroot=${TRIBUTARY_CACHE:-${HOME:?set HOME or TRIBUTARY_CACHE}/.cache/tributary}/arm64-sysroot
recipe=$(cat packages-arm64.txt arm64-sysroot.sh | sha256sum | cut -d ' ' -f 1)
if [ "$(cat "$sysroot/.recipe" 2>/dev/null)" = "$recipe" ]; then
  echo "$sysroot"
  exit 0
fi

mkdir -p "$(dirname "$sysroot")"
work=$(mktemp -d "$sysroot.XXXXXX")
trap 'rm -rf "$work"' EXIT
private_apt "$work/apt" arm64
# shellcheck disable=SC2086  # one word a package
apt-get "${apt_options[@]}" install -q -y --no-install-recommends --download-only $packages >&2
# shellcheck disable=SC2086
(cd "$work/apt/archives" && apt-get "${apt_options[@]}" download -q $alone >&2)

# Debian's merged /usr: packages may unpack into /lib, which is the same folder.
root=$work/root
mkdir -p "$root"/usr/{bin,sbin,lib} "$root/var/lib/dpkg/info"
for folder in bin sbin lib; do ln -s "usr/$folder" "$root/$folder"; done
for deb in "$work"/apt/archives/*.deb; do
  package=$(dpkg-deb -f "$deb" Package)
  dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" --keep-directory-symlink --no-same-owner
  dpkg-deb --fsys-tarfile "$deb" | tar -t | sed 's|^\.||; s|\(.\)/$|\1|' > "$root/var/lib/dpkg/info/$package:arm64.list"
  { dpkg-deb -f "$deb"; echo "Status: install ok installed"; echo; } >> "$root/var/lib/dpkg/status"
done

# Packages link to files by absolute names, which mean this machine's root when a compiler follows them.
find "$root" -type l -lname '/*' | while read -r link; do
  ln -sfn "$(realpath -m --relative-to "$(dirname "$link")" "$root$(readlink "$link")")" "$link"
done

echo "$recipe" > "$root/.recipe"
rm -rf "$sysroot"
mv "$root" "$sysroot"
echo "$sysroot"
