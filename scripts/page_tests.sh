#!/usr/bin/env bash
# The page in a real browser: Debian's Chromium, the program itself, and Pyodide, all on this machine.
#
#   scripts/page_tests.sh fetch    installs and fetches what is missing
#   scripts/page_tests.sh run      checks types, runs the page's own tests, then those in the browser (QUERYMEND_BIN is the program)
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
STATE=$HERE/../target/page
source "$HERE/servers.sh"

case ${1:-} in
  fetch)
    system_packages chromium chromium
    "$HERE/pyodide.sh" > /dev/null
    ;;
  run)
    node=$("$HERE/node.sh" fetch)
    export PATH=$node:$PATH QUERYMEND_PYODIDE=$CACHE/pyodide
    cd "$HERE/../web"
    npm run --silent check
    npm run --silent e2e
    ;;
  *) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
