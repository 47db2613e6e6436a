#!/usr/bin/env bash
# DataFusion's own package for Python, with which a test asks what it makes of approved queries (scripts/datafusion_check.py).
#
#   scripts/datafusion_check.sh fetch     fetches it where it is missing, and prints which Python has it
#
# It comes from the Python package index that pip is configured for, by name and version, and is kept in a virtual environment of
# its own in ${QUERYMEND_CACHE:-~/.cache/querymend}.
#
# Settings, all from the environment:
#   QUERYMEND_CACHE    where things are kept
set -euo pipefail

source "$(dirname "$0")/servers.sh"
VERSION=54.0.0

fetch() {
  local programs; programs=$(environment datafusion $VERSION)
  echo "$programs/python"
}

case ${1:-} in
  fetch) fetch ;;
  *) sed -n '2,/^set -/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
