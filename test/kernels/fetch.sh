#!/bin/bash
# Fetches a Debian cloud kernel for the guests into a cache and prints its path: fetch.sh VERSION, VERSION one of the table below.
# Uses a private apt list and folder: the system's own package sources stay as they are.
set -euo pipefail

version=${1:?usage: fetch.sh 5.10|6.1|6.12}
case $version in
  5.10) suite=bullseye pattern='^linux-image-5\.10\.0-[0-9]+-cloud-amd64$' ;;
  6.1) suite=bookworm pattern='^linux-image-6\.1\.0-[0-9]+-cloud-amd64$' ;;
  6.12) suite=trixie pattern='^linux-image-6\.12\.[0-9+a-z]+-cloud-amd64$' ;;
  *) echo "fetch.sh: no kernel '$version' in the table" >&2; exit 2 ;;
esac
cache=${TRIBUTARY_CACHE:-$HOME/.cache/tributary}/kernels/$version
if [ -s "$cache/vmlinuz" ]; then
  echo "$cache/vmlinuz"
  exit 0
fi
mkdir -p "$cache/apt/lists/partial" "$cache/apt/archives/partial" "$cache/download"

# The mirror that this machine already uses, for another suite.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1)
[ -n "$mirror" ] || { echo "fetch.sh: this machine's apt has no package source; run apt-get update" >&2; exit 1; }
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [arch=amd64 signed-by=$keyring] $mirror $suite main" > "$cache/apt/sources.list"
options=(-o Dir::Etc::SourceList="$cache/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
         -o Dir::State::Lists="$cache/apt/lists" -o Dir::Cache="$cache/apt" -o APT::Get::List-Cleanup=0
         -o Acquire::Check-Valid-Until=false -o APT::Sandbox::User=root -o Acquire::Languages=none)
apt-get "${options[@]}" update -q >&2
package=$(apt-cache "${options[@]}" pkgnames linux-image- | grep -E "$pattern" | sort -V | tail -n 1)
[ -n "$package" ] || { echo "fetch.sh: $suite has no package like $pattern" >&2; exit 1; }
(cd "$cache/download" && apt-get "${options[@]}" download -q "$package" >&2)
dpkg-deb -x "$cache"/download/"$package"_*.deb "$cache/root"
cp "$cache"/root/boot/vmlinuz-* "$cache/vmlinuz.new"
mv "$cache/vmlinuz.new" "$cache/vmlinuz"
rm -rf "$cache/root" "$cache/download" "$cache/apt"
echo "$cache/vmlinuz"
