#!/bin/bash
# Builds the OpenTelemetry Collector that the export is tested against. The last line of stdout is its path. Cold it takes
# some 6 minutes on two cores; when it is there already, no time.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../build_otelcol.sh"
build_otelcol "$here" otelcol-profiles
