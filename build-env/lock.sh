#!/bin/bash
# Writes packages.lock: the versions of the build image's packages, dependencies included, as Debian 12 has them today.
#   build-env/lock.sh
# Needs apt (a Debian 12 machine) and no root: nothing is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. ./private_apt.sh
[ $# -eq 0 ] || { sed -n '2,4p' lock.sh | cut -c3-; exit 2; }
command -v apt-get >/dev/null || { echo "lock.sh: there is no apt-get here; run this on Debian 12" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work" packages.lock.partial' EXIT

# plan ARCH SUFFIX PACKAGE…: prints NAME[SUFFIX]=VERSION of the packages and all that they depend on.
plan() {
  local arch=$1 suffix=$2
  shift 2
  private_apt "$work/$arch" "$arch" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    echo "lock.sh: apt-get update failed; check the network and the proxy in this machine's apt settings" >&2
    return 1
  }
  apt-get "${apt_options[@]}" -o Dir::Etc::preferencesparts=/dev/null install --simulate --no-install-recommends -q "$@" >"$work/plan" 2>&1 || {
    tail -n 20 "$work/plan" >&2
    echo "lock.sh: apt cannot install these packages together; correct packages.txt or packages-arm64.txt" >&2
    return 1
  }
  sed -nE "s/^Inst ([^ ]+) \(([^ ]+) .*/\1$suffix=\2/p" "$work/plan" | LC_ALL=C sort
}

mapfile -t native < <(sed '/^## tests/q' packages.txt | sed -E '/^(#|$)/d; s/ .*//')
mapfile -t alone < <(sed -n 's/^\([^# ]*\):arm64 @alone$/\1/p' packages-arm64.txt)
mapfile -t foreign < <(sed -n 's/^\([^# ]*\):arm64$/\1/p' packages-arm64.txt)
{
  echo "# Made by build-env/lock.sh: the packages of the build image and their dependencies. NAME:arm64 is for cross-compiling."
  # Besides what compiling needs: a compiler for arm64, and what makes packages.
  plan amd64 '' "${native[@]}" g++-aarch64-linux-gnu rpm zstd
  plan arm64 ':arm64' "${foreign[@]}"
  for package in "${alone[@]}"; do
    apt-cache "${apt_options[@]}" show --no-all-versions "$package" | sed -n "s/^Version: /$package:arm64=/p"
  done
} > packages.lock.partial
mv packages.lock.partial packages.lock
echo "packages.lock: $(grep -vc '^#' packages.lock) packages"
