#!/usr/bin/env bash
# Installs the official Python SDK of the Model Context Protocol, with which tests call `querymend mcp`.
#
#   scripts/mcp_client.sh fetch     installs it if it is missing, and prints the path of its Python
#
# Installed with pip, by name and version, into a virtual environment in ${QUERYMEND_CACHE:-~/.cache/querymend}.
#
# Environment:
#   QUERYMEND_CACHE    cache folder
set -euo pipefail

source "$(dirname "$0")/servers.sh"
VERSION=2.3.0

fetch() {
  local programs; programs=$(environment mcp $VERSION)
  echo "$programs/python"
}

case ${1:-} in
  fetch) fetch ;;
  *) sed -n '2,/^set -/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
