#!/bin/bash
# Writes into the folder DIR the settings of this machine's apt that a build image needs while it is made:
#   sources.list    Debian's own repositories, on the mirror that this machine uses; empty if it uses none of Debian 12
#   apt.conf        proxies, certificates, retries; AT is where apt will see DIR
#   files/          what those settings point to (certificates, auth.conf)
# apt_settings.sh DIR AT [SOURCES]: SOURCES, a sources.list, replaces the machine's own.
set -euo pipefail
umask 077  # proxies and mirrors may have passwords in them

dir=$1 at=$2 sources=${3:-}
mkdir -p "$dir/files" "$dir/lists/partial" "$dir/archives/partial"
fail() { echo "$*" >&2; exit 1; }

if [ -n "$sources" ]; then
  [ -r "$sources" ] || fail "cannot read $sources; give --apt-sources a sources.list"
  cp "$sources" "$dir/sources.list"
else
  # Other vendors' repositories are left out: their packages would replace Debian's.
  { apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null || true; } |
    awk '$1 == "Debian" && $3 ~ /^bookworm/ {print "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]", $2, $3, $4}' |
    sort -u > "$dir/sources.list"
fi

# A path in a setting is one of this machine: the file comes along.
bring() {
  local name
  name=$(printf '%s' "$1" | tr / _)
  cp -rL "$1" "$dir/files/$name"
  printf '%s' "$at/files/$name"
}
{
  if command -v apt-config >/dev/null; then
    apt-config dump Acquire | grep -Ev '^Acquire(::(IndexTargets|Changelogs|CompressionTypes|Languages|cdrom)[^ ]*)? ' |
      while IFS= read -r line; do
        value=${line#*\"} value=${value%\";}
        case $value in /*) [ ! -f "$value" ] || line="${line%%\"*}\"$(bring "$value")\";" ;; esac
        printf '%s\n' "$line"
      done
  fi
  for certificates in "${SSL_CERT_FILE:-}" /etc/ssl/certs/ca-certificates.crt; do
    [ -r "$certificates" ] || continue
    cp -L "$certificates" "$dir/files/ca.crt"
    apt-config dump Acquire::https::CAInfo 2>/dev/null | grep -q . || echo "Acquire::https::CAInfo \"$at/files/ca.crt\";"
    break
  done
  mkdir "$dir/files/auth.conf.d"
  for login in /etc/apt/auth.conf /etc/apt/auth.conf.d/*.conf; do
    [ ! -r "$login" ] || cp "$login" "$dir/files/auth.conf.d/$(basename "$login" .conf).conf"
  done
  cat <<END
Acquire::Languages "none";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
Dir::Etc::netrcparts "$at/files/auth.conf.d";
Dir::State::Lists "$at/lists";
Dir::Cache "$at";
END
  # Without repositories of this machine, the base's own are used.
  [ ! -s "$dir/sources.list" ] || printf 'Dir::Etc::Source%s;\n' "List \"$at/sources.list\"" 'Parts "/dev/null"'
} > "$dir/apt.conf"
