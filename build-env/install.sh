#!/bin/bash
# Runs inside the container that becomes the build image: install.sh AT. build.sh mounts at AT this folder (env/), the
# machine's settings (settings/) and the page's package files (ui/). Nothing of AT is in the image. If a step fails, the
# last line says which and why.
set -euo pipefail
at=$1
lib=/usr/local/lib/tributary
fail() { echo "FAILED: $*"; exit 1; }

. /etc/os-release
[ "$ID ${VERSION_ID:-}" = "debian 12" ] || fail "the base is $ID ${VERSION_ID:-}; give a root file system of Debian 12 with --base"
[ "$(dpkg --print-architecture)" = amd64 ] || fail "the base is for $(dpkg --print-architecture); give one for amd64 with --base"

export APT_CONFIG=$at/settings/apt.conf DEBIAN_FRONTEND=noninteractive LC_ALL=C HOME=$at/settings/home
mkdir -p "$HOME"
# These files belong to root: outside, the user who made the folder could not remove them.
trap 'rm -rf "$at"/settings/{home,lists,archives}' EXIT
# Without --error-on, apt goes on although lists are missing.
apt-get update -q --error-on=any ||
  fail "apt-get update did not get all package lists; check the network and the proxy in this machine's apt settings"

[ -n "$(apt-get indextargets 'Created-By: Packages')" ] ||
  fail "neither this machine's apt nor the base has a repository of Debian 12; name a sources.list with --apt-sources"

mapfile -t packages < <(grep -v '^#' "$at/env/packages.lock" | grep -v ':arm64=')
gone=()
known=$(apt-cache madison "${packages[@]%%=*}" | awk '{print $1 "=" $3}'; dpkg-query -W -f '${Package}=${Version}\n')
for package in "${packages[@]}"; do
  grep -qxF "$package" <<<"$known" || gone+=("$package")
done
more=''
[ ${#gone[@]} -le 5 ] || more=" and $((${#gone[@]} - 5)) others"
[ ${#gone[@]} -eq 0 ] || fail "the mirror no longer has ${gone[*]:0:5}$more; either take today's versions with build-env/lock.sh," \
  "or give --apt-sources a sources.list of a snapshot that has them"
# Without a sync after each file: a half-made image is thrown away.
apt-get install -q -y --no-install-recommends --allow-downgrades -o Dpkg::Options::=--force-unsafe-io "${packages[@]}" ||
  fail "apt-get could not install the packages of packages.lock; its messages are above"

mkdir -p "$lib/ui"
cp "$at"/ui/{package.json,package-lock.json,.npmrc} "$lib/ui/"
export NPM_CONFIG_USERCONFIG=$at/settings/npmrc NODE_EXTRA_CA_CERTS=$at/settings/files/ca.crt
[ -r "$NODE_EXTRA_CA_CERTS" ] || unset NODE_EXTRA_CA_CERTS
(cd "$lib/ui" && npm ci --ignore-scripts --loglevel=error) ||
  fail "npm could not install the page's packages; check the network and this machine's npm settings"
rm -f "$lib/ui/node_modules/.package-lock.json"

TRIBUTARY_CACHE=$lib "$at/env/arm64-sysroot.sh" --lock ||
  fail "the arm64 libraries could not be fetched; apt's messages are above"

install -m 755 "$at/env/entry.py" /root/build.sh
cp "$at/env/packages.lock" "$lib/"
mkdir -p /root/src /root/out
# The source that is mounted belongs to another user. git reads this from its own files only, also when it clones.
git config --system safe.directory '*'

# What installing left behind: nothing that a build needs.
find /var/log /var/cache/apt /var/lib/apt/lists /tmp /root/.npm /root/.cache -mindepth 1 -delete 2>/dev/null || true
rm -f /var/cache/debconf/*-old /var/lib/dpkg/*-old
