#!/usr/bin/env bash
# Fuzzes a server with requests generated from its OpenAPI description (schemathesis).
#
#   scripts/schemathesis.sh fetch          installs it if it is missing
#   scripts/schemathesis.sh run URL        fuzzes the server whose description is at URL/openapi.json
#
# Installed with pip, by name and version, into a virtual environment in ${QUERYMEND_CACHE:-~/.cache/querymend}.
set -euo pipefail

source "$(dirname "$0")/servers.sh"
VERSION=4.32.5

fetch() {
  local programs; programs=$(environment schemathesis $VERSION)
  echo "$programs/schemathesis"
}

run() { # url
  local program work; program=$(fetch)
  # It stores its state in a temporary folder.
  work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
  cd "$work"
  "$program" --no-color run "$1/openapi.json" --phases examples,coverage,fuzzing --max-examples "${EXAMPLES:-15}" --seed 7 --request-timeout 600 \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance \
    --continue-on-failure --suppress-health-check all --warnings off
}

case ${1:-} in
  fetch) fetch ;;
  run) run "$2" ;;
  *) sed -n '2,/^set -/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
