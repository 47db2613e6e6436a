#!/usr/bin/env bash
# Real database servers for the tests, on the loopback interface, installed from packages.
#
#   scripts/engines.sh up NAMES…     fetches missing files, starts the servers, prints a line "export QUERYMEND_TEST_NAME=…" for each
#   scripts/engines.sh down          stops the servers that `up` started, and deletes their data
#   scripts/engines.sh fetch NAMES…  fetches only
#   scripts/engines.sh kill NAME     kills a server, as in a crash
#   scripts/engines.sh start NAME    restarts it with its address and its data
#
# Each server has a file in scripts/engines/ that defines
#   NAME_fetch             downloads the server to $CACHE
#   NAME_set_up FOLDER     creates an empty server in a folder, and chooses its port
#   NAME_start FOLDER      starts it, waits until it responds, and writes its process id to $STATE/NAME.pid
#   NAME_fill FOLDER       creates the tables of the tests; once, after the first start
#   NAME_word, NAME_crash  a string in its command line, and the signal that simulates a crash
#   NAME_address           its URL for `--db`
# The line "# Started on request only." in it excludes the server from a plain ./test.
# Packages are only unpacked, not installed, except system packages. Each checkout has its own servers.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
STATE=$(cd "$HERE/.." && pwd)/target/engines
source "$HERE/servers.sh"
for file in "$HERE"/engines/*.sh; do source "$file"; done

known() { declare -F "$1_start" > /dev/null || fail "unknown server \`$1\`" "available: $(cd "$HERE/engines" && ls | sed 's/\.sh$//' | tr '\n' ' ')"; }
alive() { local word=$1_word; running "$(kept "$1.pid")" "${!word}"; }

up() {
  local name folder
  for name in "$@"; do
    known "$name"
    if ! alive "$name" || [ ! -e "$STATE/$name.ready" ]; then
      # Discard a server that an aborted run started but did not fill.
      [ ! -e "$STATE/$name.folder" ] || down_one "$name"
      "${name}_fetch"
      mkdir -p "$STATE"
      folder=$(mktemp -d "${TMPDIR:-/tmp}/querymend-engine.XXXXXX"); chmod a+rx "$folder"; echo "$folder" > "$STATE/$name.folder"
      ("${name}_set_up" "$folder" && "${name}_start" "$folder" && "${name}_fill" "$folder" && touch "$STATE/$name.ready") >&2 || { down_one "$name"; exit 1; }
    fi
    echo "export QUERYMEND_TEST_$(tr '[:lower:]' '[:upper:]' <<< "$name")='$("${name}_address")'"
  done
}

down_one() { # name
  local word=$1_word folder; folder=$(kept "$1.folder")
  end "$1" "${!word}" TERM
  case $folder in */querymend-engine.*) rm -rf "$folder" ;; esac
  rm -f "$STATE/$1".*
}

case ${1:-} in
  up) shift; up "$@" ;;
  down) for file in "$STATE"/*.folder; do [ -e "$file" ] && down_one "$(basename "$file" .folder)"; done; rm -rf "$STATE" ;;
  fetch) shift; for name in "$@"; do known "$name"; "${name}_fetch"; done ;;
  kill) known "$2"; word=$2_word crash=$2_crash; end "$2" "${!word}" "${!crash}" ;;
  start) known "$2"; alive "$2" || "$2_start" "$(kept "$2.folder")" ;;
  *) sed -n '2,/^set -/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
