#!/bin/bash
# Fetches and builds what the tests of language runtimes need, into the cache: fetch.sh OFF, or ON for --all-runtimes.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$here/root.sh" trixie
if [ "${1:?usage: fetch.sh ON|OFF}" = ON ]; then
  for suite in bullseye bookworm sid; do "$here/root.sh" "$suite"; done
  for kind in static musl free-threaded; do "$here/build_python.sh" "$kind"; done
  "$here/py_spy.sh"
fi
