#!/usr/bin/env bash
# Builds the web page that is embedded into the server: web/dist.
#
#   scripts/page.sh    builds it if a source file is newer than the last build
set -euo pipefail
cd "$(dirname "$0")/../web"
fail() { echo "error: $1" >&2; echo "hint: $2" >&2; exit 1; }

# Inputs of the build. Tests and their output do not affect the page.
sources() { find src public build index.html package.json package-lock.json ./*.ts ./*.json -type f -not -name '*.test.ts' "$@" 2>/dev/null; }
if [ -f dist/index.html ] && [ -z "$(sources -newer dist/index.html | head -n 1)" ]; then exit 0; fi

node=$(../scripts/node.sh fetch) || fail "the page cannot be built: Node.js is not installed and could not be downloaded" "install Node.js 20 or newer"
PATH=$node:$PATH

# npm writes this file last: the installed packages match the lock file unless that is newer.
if [ ! -f node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  timeout --kill-after=10 "${QUERYMEND_FETCH_TIMEOUT:-900}" npm ci --no-audit --no-fund --fetch-timeout=60000 >&2 \
    || fail "npm cannot install the packages of the page, or not within ${QUERYMEND_FETCH_TIMEOUT:-900} s" "is a package registry reachable? \`npm --prefix web ci\` prints more"
fi
npm run build >&2
# The build keeps the timestamps of unchanged files; the check above compares with this one.
touch dist/index.html
