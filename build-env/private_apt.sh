# Sourced by scripts that need Debian packages of another architecture or suite. The system's own package sources stay as they are.
#   private_apt FOLDER ARCH [SUITE]
# Makes package lists of their own below FOLDER, from the mirrors that this machine's apt uses already, and sets the array
# `apt_options`, which apt-get and apt-cache then take. SUITE is another suite of the mirror; without it these are the machine's own
# suites, security updates included. No package counts as installed, so apt-get resolves dependencies down to glibc.
private_apt() {
  local folder=$1 arch=$2 suite=${3:-} sources
  local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  sources=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' 'Component: main')
  if [ -n "$suite" ]; then
    sources=$(grep -v security <<<"$sources" | head -n 1)
    sources=${sources:+${sources%% *} $suite main}
  fi
  [ -n "$sources" ] || { echo "$(basename "$0"): this machine's apt knows no Debian package source; run apt-get update" >&2; return 1; }
  mkdir -p "$folder/lists/partial" "$folder/archives/partial"
  sed "s|^|deb [arch=$arch signed-by=$keyring] |" <<<"$sources" > "$folder/sources.list"
  apt_options=(-o Dir::Etc::SourceList="$folder/sources.list" -o Dir::Etc::SourceParts=/dev/null
               -o Dir::State::Lists="$folder/lists" -o Dir::State::status=/dev/null -o Dir::Cache="$folder"
               -o APT::Architecture="$arch" -o APT::Architectures="$arch"
               -o Acquire::Check-Valid-Until=false -o APT::Sandbox::User=root -o Acquire::Languages=none)
  apt-get "${apt_options[@]}" update -q --error-on=any >&2
}
