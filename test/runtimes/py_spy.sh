#!/bin/bash
# Fetches py-spy, at the version and with the hash of py_spy.txt, and prints the path of the program. It is cached.
set -euo pipefail
list=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/py_spy.txt
cache=${TRIBUTARY_CACHE:-$HOME/.cache/tributary}/runtimes/py-spy-$(sha256sum "$list" | cut -c 1-16)
if [ ! -x "$cache/py-spy" ]; then
  mkdir -p "$(dirname "$cache")"
  work=$(mktemp -d "$cache.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  /usr/bin/python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes -r "$list" -d "$work" >&2
  /usr/bin/python3 -m zipfile -e "$work"/*.whl "$work/wheel"
  mkdir "$work/ready"
  cp "$work"/wheel/*/scripts/py-spy "$work/ready/"
  chmod 755 "$work/ready/py-spy"
  rm -rf "$cache"
  mv "$work/ready" "$cache"
fi
echo "$cache/py-spy"
