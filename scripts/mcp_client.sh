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
  local home=$CACHE/mcp-client-$VERSION
  # A virtual environment knows where it lies, and cannot be moved. The word that it is complete comes last instead.
  if [ ! -e "$home/complete" ]; then
    echo "fetching mcp $VERSION" >&2
    mkdir -p "$CACHE"
    exec 9> "$home.lock"
    flock 9
    if [ ! -e "$home/complete" ]; then
      rm -rf "$home"
      python3 -m venv "$home" >&2 || fail "python3 cannot make a virtual environment" "install the package python3-venv"
      "$home/bin/python" -m pip install --quiet --disable-pip-version-check "mcp==$VERSION" >&2 \
        || fail "pip cannot install mcp $VERSION" "is a Python package index reachable? It needs Python 3.10 or later"
      touch "$home/complete"
    fi
  fi
  echo "$home/bin/python"
}

case ${1:-} in
  fetch) fetch ;;
  *) sed -n '2,/^set -/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
