# shellcheck shell=bash
# Scripts that build an OpenTelemetry Collector with chosen parts source this file.
. "$(dirname "${BASH_SOURCE[0]}")/../go_toolchain.sh"

# build_otelcol FOLDER NAME [MAIN]: builds the Collector of FOLDER (go.mod, go.sum, and main.go or MAIN) once per state
# of these files, into ${TRIBUTARY_CACHE:-~/.cache/tributary}, and prints its path. Builds $JOBS packages at a time.
build_otelcol() {
  local folder=$1 name=$2 main=${3:-$1/main.go} recipe out binary work
  recipe=$(cat "$main" "$folder"/{go.mod,go.sum} | sha256sum | cut -c1-16)
  out=${TRIBUTARY_CACHE:-${HOME:?set HOME or TRIBUTARY_CACHE}/.cache/tributary}/otelcol-$recipe
  binary=$out/$name
  if [[ ! -x $binary ]]; then
    mkdir -p "$out"
    exec 9>"$out/lock"
    flock 9 # two builds at once: the second finds the first one's result
  fi
  if [[ ! -x $binary ]]; then
    use_go "$folder/go.mod"
    work=$(mktemp -d "$out/work.XXXXXX")
    cp "$main" "$folder"/{go.mod,go.sum} "$work"
    if ! (cd "$work" && GOTOOLCHAIN=local GOFLAGS='-mod=readonly -modcacherw -buildvcs=false' CGO_ENABLED=0 \
      "$go" build -p "${JOBS:-$(nproc)}" -trimpath -ldflags='-s -w' -o "$name" .) >&2; then
      rm -rf "$work"
      return 1
    fi
    mv "$work/$name" "$binary"
    rm -rf "$work"
  fi
  echo "$binary"
}
