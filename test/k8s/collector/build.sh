#!/bin/bash
# Builds the OpenTelemetry Collector with the k8sattributesprocessor that our attributes are compared with. The last line
# of stdout is its path. Cold it takes some 8 minutes on two cores; when it is there already, no time.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../otlp/build_otelcol.sh"
build_otelcol "$here" otelcol-k8s
