#!/usr/bin/env bash
# Programs of others that take what a server says about itself, for tests: a collector of OpenTelemetry (rotel), and the reader of
# figures that belongs to Prometheus' own library for Python.
#
#   scripts/telemetry.sh fetch                  fetches what is missing
#   scripts/telemetry.sh collector HTTP GRPC    listens on these ports of this machine and prints what it is sent, until it is ended
#   scripts/telemetry.sh read                   reads figures from standard input and prints them as JSON, or says what is wrong
#
# Both come from the Python package index that pip is configured for, by package name, and are kept in
# ${QUERYMEND_CACHE:-~/.cache/querymend}. Packages are only unpacked, never installed; the collector is a build for Linux on x86-64.
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
