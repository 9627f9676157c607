#!/bin/bash
# Prints "VERSION COMMIT EPOCH" of this source tree: the project's version, the commit's hash, the commit's time as Unix seconds.
#   deploy/version.sh
# A source archive has no git history. Its file .version contains the same text. If SOURCE_DATE_EPOCH is set, it
# replaces the time.
# COMMIT ends in "-modified" if tracked files differ from the commit. Without history and .version it is "unknown".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(sed -n 's/^project(tributary VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
[ -n "$version" ] || { echo "version.sh: CMakeLists.txt names no version; restore its line project(tributary VERSION …)" >&2; exit 1; }

# The source may belong to another user (a container's read-only mount), and git must not write to it.
in_git() { git -c safe.directory='*' --no-optional-locks "$@"; }

commit=unknown epoch=315532800  # the start of 1980, the first year that every archive format can express
if [ -e .git ] && found=$(in_git log -1 --format='%H %ct' 2>/dev/null); then
  read -r commit epoch <<<"$found"
  [ -z "$(in_git status --porcelain --untracked-files=no)" ] || commit=$commit-modified
elif [ -e .version ]; then
  read -r version commit epoch < .version
fi
echo "$version $commit ${SOURCE_DATE_EPOCH:-$epoch}"
