#!/usr/bin/env bash
# The page, as files that the server carries in itself: web/dist.
#
#   scripts/page.sh    builds it where a source is newer than what was built; otherwise does nothing
set -euo pipefail
cd "$(dirname "$0")/../web"
fail() { echo "error: $1" >&2; echo "hint: $2" >&2; exit 1; }

# Everything that the build reads. Tests and what they leave behind change nothing about the page.
sources() { find src public build index.html package.json package-lock.json ./*.ts ./*.json -type f -not -name '*.test.ts' "$@" 2>/dev/null; }
if [ -f dist/index.html ] && [ -z "$(sources -newer dist/index.html | head -n 1)" ]; then exit 0; fi

node=$(../scripts/node.sh fetch) || fail "the page cannot be built: there is no Node.js, and none could be fetched" "install Node.js 20 or newer"
PATH=$node:$PATH

# npm leaves this file behind when it is done: what it installed is what the lock asks for as long as that is not newer.
if [ ! -f node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  timeout --kill-after=10 "${QUERYMEND_FETCH_TIMEOUT:-900}" npm ci --no-audit --no-fund --fetch-timeout=60000 >&2 \
    || fail "npm cannot install what the page is built with, or not within ${QUERYMEND_FETCH_TIMEOUT:-900} s" "is a package registry reachable? \`npm --prefix web ci\` says more"
fi
npm run build >&2
# A build keeps the times of files that did not change; the next run goes by this one.
touch dist/index.html
