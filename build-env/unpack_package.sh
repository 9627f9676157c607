#!/bin/bash
# Unpacks one Debian package of another architecture into a folder, without what it depends on. Installs nothing.
#   build-env/unpack_package.sh ARCH PACKAGE FOLDER
# Like a real root, the folder then has /var/lib/dpkg/status, which says what the package is.
set -euo pipefail
arch=$1 package=$2 folder=$3
. "$(dirname "${BASH_SOURCE[0]}")/private_apt.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
private_apt "$work/apt" "$arch"
(cd "$work" && apt-get "${apt_options[@]}" download -q "$package" >&2)
deb=$(echo "$work"/*.deb)
dpkg-deb -x "$deb" "$folder"
mkdir -p "$folder/var/lib/dpkg/info"
{ dpkg-deb -f "$deb"; echo "Status: install ok installed"; echo; } >"$folder/var/lib/dpkg/status"
