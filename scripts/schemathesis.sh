#!/usr/bin/env bash
# Explores a server by its own description, with requests that nobody thought of (schemathesis).
#
#   scripts/schemathesis.sh fetch          fetches it where it is missing
#   scripts/schemathesis.sh run URL        explores the server whose description is at URL/openapi.json
#
# It comes from the Python package index that pip is configured for, by name and version, and is kept in a virtual environment of
# its own in ${QUERYMEND_CACHE:-~/.cache/querymend}.
set -euo pipefail

source "$(dirname "$0")/servers.sh"
VERSION=4.32.5

fetch() {
  local programs; programs=$(environment schemathesis $VERSION)
  echo "$programs/schemathesis"
}

run() { # url
  local program work; program=$(fetch)
  # What it keeps of a run lies in a folder that goes away.
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
