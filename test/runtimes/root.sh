#!/bin/bash
# Makes a folder with Python and its libraries of another Debian suite, and prints its path. A program runs in it with chroot.
#   root.sh bullseye|bookworm|trixie|sid
# The folder is cached: TRIBUTARY_CACHE, or ~/.cache/tributary. Nothing in it is configured, so it is ready within a minute.
set -euo pipefail

suite=${1:?usage: root.sh bullseye|bookworm|trixie|sid}
case $suite in
  bullseye) packages=python3,libpython3.9 ;;
  bookworm) packages=libpython3.11 ;;
  trixie) packages=python3 ;;
  sid) packages=python3-all ;;  # every version that sid supports
  *) echo "root.sh: unknown suite '$suite': give bullseye, bookworm, trixie or sid" >&2; exit 2 ;;
esac

cache=${TRIBUTARY_CACHE:-$HOME/.cache/tributary}/runtimes/$suite-$(sha256sum "${BASH_SOURCE[0]}" | cut -c 1-16)
# The script looks for newer packages of sid after a week.
if [ -e "$cache/ready" ] && { [ "$suite" != sid ] || [ -z "$(find "$cache/ready" -mtime +7)" ]; }; then
  echo "$cache/root"
  exit 0
fi
mkdir -p "$(dirname "$cache")"
work=$(mktemp -d "$cache.XXXXXX")
trap 'rm -rf "$work"' EXIT

# The mirror that this machine's apt uses already.
mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' | grep -v security |
  head -n 1 | cut -d ' ' -f 1)
[ -n "$mirror" ] || { echo "root.sh: this machine's apt knows no Debian package source; run apt-get update" >&2; exit 1; }
if [ "$(id -u)" = 0 ]; then mode=root; else mode=unshare; fi
# A mirror may be older than its package lists allow.
mmdebstrap --quiet --variant=extract --mode="$mode" --include="$packages" --aptopt='Acquire::Check-Valid-Until "false"' \
  "$suite" "$work/root.tar" "deb $mirror $suite main" >&2
mkdir "$work/root"
tar -x --no-same-owner --exclude='./dev/*' -f "$work/root.tar" -C "$work/root"
rm "$work/root.tar"
# The symbolic links of merged /usr belong to a package that is not unpacked.
for folder in bin lib lib64 sbin; do
  if [ -e "$work/root/usr/$folder" ] && [ ! -e "$work/root/$folder" ]; then ln -s "usr/$folder" "$work/root/$folder"; fi
done
mkdir -p "$work/root/proc" "$work/root/work"
touch "$work/ready"
rm -rf "$cache"
mv "$work" "$cache"
trap - EXIT
echo "$cache/root"
