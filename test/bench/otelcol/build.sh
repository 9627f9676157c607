#!/bin/bash
# Builds the OpenTelemetry Collector for `dev/bench export`. The last line of stdout is its path.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../otlp/build_otelcol.sh"
build_otelcol "$here" otelcol-relay
