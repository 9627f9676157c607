#!/bin/bash
# Builds the OpenTelemetry Collector for the tests of the export. The last line of stdout is its path. With an empty
# cache it takes about 6 minutes on two cores, with a full cache no time.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../build_otelcol.sh"
build_otelcol "$here" otelcol-profiles
