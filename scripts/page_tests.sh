#!/usr/bin/env bash
# Tests of the page: unit tests, and end-to-end tests in Chromium with the real binary and Pyodide.
#
#   scripts/page_tests.sh fetch    installs what is missing: Chromium, Pyodide, Node.js
#   scripts/page_tests.sh check    checks types and runs the unit tests; requires no binary
#   scripts/page_tests.sh run      runs the tests in the browser (QUERYMEND_BIN is the path of the binary)
#
# QUERYMEND_TEST_FULL=1 runs every combination of views and layouts, and prints times; QUERYMEND_TEST_SLOWDOWN scales every timeout.
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
STATE=$HERE/../target/page
source "$HERE/servers.sh"

# Changes to the web folder with Node.js on PATH. `page.sh` installs the npm packages, unless it had nothing to build.
enter() {
  local node; node=$("$HERE/node.sh" fetch)
  export PATH=$node:$PATH
  cd "$HERE/../web"
  mkdir -p "$STATE"
  exec 7> "$STATE/npm.lock"
  flock 7
  if [ ! -f node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
    local registry; registry=$(npm config get registry)
    fetch_within_deadline "the page's npm packages, from $registry," npm ci --no-audit --no-fund --fetch-timeout=60000 \
      || fail "npm cannot install the page's packages from $registry" "is it reachable? \`npm --prefix web ci\` prints more"
  fi
  exec 7>&-
}

case ${1:-} in
  fetch)
    system_packages chromium chromium
    "$HERE/pyodide.sh" > /dev/null
    "$HERE/node.sh" fetch > /dev/null
    ;;
  check)
    enter
    npm run --silent check
    ;;
  run)
    [ -z "${QUERYMEND_BIN:-}" ] || export QUERYMEND_BIN=$(realpath "$QUERYMEND_BIN")
    enter
    export QUERYMEND_PYODIDE=${QUERYMEND_PYODIDE:-$CACHE/pyodide}
    npm run --silent e2e
    ;;
  *) sed -n '2,/^set -/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
