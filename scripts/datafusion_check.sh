#!/usr/bin/env bash
# Installs DataFusion's Python package, for the test that classifies approved queries with it (scripts/datafusion_check.py).
#
#   scripts/datafusion_check.sh fetch     installs it if it is missing, and prints the path of its Python
#
# Installed with pip, by name and version, into a virtual environment in ${QUERYMEND_CACHE:-~/.cache/querymend}.
#
# Environment:
#   QUERYMEND_CACHE    cache folder
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
