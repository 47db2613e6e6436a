#!/usr/bin/env bash
# The Model Context Protocol's own client for Python, with which tests speak to `querymend mcp` as other people's programs do.
#
#   scripts/mcp_client.sh fetch     fetches it where it is missing, and prints which Python has it
#
# It comes from the Python package index that pip is configured for, by name and version, and is kept in a virtual environment of
# its own in ${QUERYMEND_CACHE:-~/.cache/querymend}.
#
# Settings, all from the environment:
#   QUERYMEND_CACHE    where things are kept
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
