#!/usr/bin/env bash
# Installs the packages of the Python gRPC client for tests, with pip.
#
#   scripts/grpc_client.sh fetch      installs missing packages, and prints their folder (for PYTHONPATH)
#   scripts/grpc_client.sh run ARGS   also runs scripts/grpc_client.py with these arguments
#
# They are installed in ${QUERYMEND_CACHE:-~/.cache/querymend}, separate from system packages, per Python version.
set -euo pipefail

cd "$(dirname "$0")/.."
STATE=$PWD/target/grpc_client
source scripts/servers.sh
GRPC_VERSION=1.85.1
PROTOBUF_VERSION=7.36.2

fetch() {
  command -v python3 >/dev/null || fail "python3 is not installed" "install Python with pip, or set QUERYMEND_TEST_CLIENTS=none"
  local tag folder; tag=$(python3 -c 'import sys; print(sys.implementation.cache_tag)')
  folder=$CACHE/grpc-$GRPC_VERSION-$tag
  if [ ! -d "$folder" ]; then
    echo "fetching grpcio $GRPC_VERSION" >&2
    working
    fetch_within_deadline "grpcio $GRPC_VERSION" python3 -m pip install "${PIP[@]}" --only-binary=:all: --target "$work/packages" \
      "grpcio==$GRPC_VERSION" "grpcio-tools==$GRPC_VERSION" "grpcio-status==$GRPC_VERSION" "grpcio-reflection==$GRPC_VERSION" \
      "grpcio-health-checking==$GRPC_VERSION" "protobuf==$PROTOBUF_VERSION" \
      || fail "pip cannot install grpcio $GRPC_VERSION" "is a Python package index reachable? QUERYMEND_TEST_CLIENTS=none skips it"
    worked packages "$folder"
  fi
  echo "$folder"
}

case ${1:-} in
  fetch) fetch ;;
  run) shift; folder=$(fetch); PYTHONPATH=$folder exec python3 scripts/grpc_client.py "$@" ;;
  *) sed -n '2,/^set -/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
