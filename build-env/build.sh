#!/bin/bash
# Makes the Docker image `build-env`, which builds Tributary without a network (docs/build-image.md).
#   build-env/build.sh [--base BASE] [--tag NAME] [--apt-sources FILE]
# BASE is an image, or a tar file or a folder with a root file system of Debian 12; debian:12-slim by default. FILE is
# a sources.list, used instead of this machine's own. The machine's settings of apt and npm, its proxies and
# certificates are in force while the image is made, and are not in it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
fail() { echo "build.sh: $*" >&2; exit 1; }

base=debian:12-slim tag=build-env sources=''
while [ $# -gt 0 ]; do
  case $1 in
    --base) base=${2:?build.sh: --base needs an image, a tar file or a folder}; shift 2 ;;
    --tag) tag=${2:?build.sh: --tag needs a name}; shift 2 ;;
    --apt-sources) sources=${2:?build.sh: --apt-sources needs a file}; shift 2 ;;
    *) sed -n '2,6p' "$0" | cut -c3-; [ "$1" = --help ] && exit 0; exit 2 ;;
  esac
done

command -v docker >/dev/null || fail "there is no docker command; install Docker (on Debian: apt-get install docker.io)"
docker version >/dev/null 2>&1 || fail "docker does not answer at ${DOCKER_HOST:-its default socket}; start it or set DOCKER_HOST"

work=$(mktemp -d)
container=build-env-$$-$RANDOM
imported=''
clean() {
  docker rm --force --volumes "$container" >/dev/null 2>&1 || true
  [ -z "$imported" ] || docker rmi "$imported" >/dev/null 2>&1 || true
  rm -rf "$work" 2>/dev/null || true
}
trap clean EXIT
trap 'exit 130' INT TERM

at=/mnt
mkdir -p "$work/settings" "$work/ui" "$work/env"
"$here/apt_settings.sh" "$work/settings" "$at/settings" "$sources" 2>"$work/log" || fail "$(tail -n 1 "$work/log")"
cp "$here"/{install.sh,arm64-sysroot.sh,private_apt.sh,packages-arm64.txt,packages.lock,entry.py} "$work/env/"
cp "$here"/../ui/{package.json,package-lock.json,.npmrc} "$work/ui/"
npmrc=${NPM_CONFIG_USERCONFIG:-${npm_config_userconfig:-$HOME/.npmrc}}
if [ -r "$npmrc" ]; then cp "$npmrc" "$work/settings/npmrc"; else : > "$work/settings/npmrc"; fi
chmod 755 "$work"

# A base that is a file or a folder becomes an image for as long as this takes.
if [ -d "$base" ]; then
  imported=$(tar -C "$base" --one-file-system -c . | docker import - 2>"$work/log") || fail "docker could not import $base: $(tail -n 1 "$work/log")"
elif [ -f "$base" ]; then
  imported=$(docker import "$base" 2>"$work/log") || fail "docker could not import $base: $(tail -n 1 "$work/log")"
elif ! docker image inspect "$base" >/dev/null 2>&1; then
  docker pull -q "$base" >"$work/log" 2>&1 ||
    fail "docker cannot pull $base; check the network, or make a root file system (mmdebstrap --variant=minbase bookworm base.tar)" \
      "and give it with --base base.tar"
fi

# Settings that are variables, by name: docker takes their values from here.
variables=()
for name in $(compgen -e); do
  case ${name,,} in http_proxy | https_proxy | no_proxy | npm_config_registry | npm_config__auth*) variables+=(--env "$name") ;; esac
done
echo "Installing the packages of packages.lock into ${imported:-$base} …"
docker run --name "$container" --network host "${variables[@]}" --mount "type=bind,source=$work,destination=$at" \
  "${imported:-$base}" "$at/env/install.sh" "$at" >"$work/log" 2>&1 || {
  reason=$(sed -n 's/^FAILED: //p' "$work/log" | tail -n 1)
  tail -n 30 "$work/log" >&2
  if grep -q "No space left on device" "$work/log"; then reason="the disk of Docker's data is full; free about 4 GB and start again"; fi
  fail "${reason:-the base cannot run $at/env/install.sh; give a root file system of Debian 12 for amd64 with --base}"
}

# Through an archive: an image made from it has one layer, without a history and without the container's variables.
docker export "$container" | docker import \
  --change 'WORKDIR /root/out' --change 'CMD ["/root/build.sh","--help"]' \
  --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
  --change "LABEL org.opencontainers.image.title=build-env org.opencontainers.image.description=\"Builds Tributary\"" \
  - "$tag" >"$work/log" 2>&1 || fail "docker could not store the image: $(tail -n 1 "$work/log"); free about 4 GB and start again"
echo "Made the image $tag: $(docker image inspect --format '{{.Size}}' "$tag" | awk '{printf "%.2f GB", $1 / 1e9}')"
