#!/usr/bin/env bash
# Real database servers for the tests, on this machine alone, each from packages.
#
#   scripts/engines.sh up NAMES…     fetches what is missing, starts them, prints a line "export QUERYMEND_TEST_NAME=…" for each
#   scripts/engines.sh down          stops those that `up` started, and throws away what they kept
#   scripts/engines.sh fetch NAMES…  fetches only
#   scripts/engines.sh kill NAME     ends one as a crash would
#   scripts/engines.sh start NAME    starts it again where it was, with what it kept
#
# There are: mysql, postgres, presto, spark, trino. Each has a file in scripts/engines/ that defines
#   NAME_fetch             brings what is needed into $CACHE
#   NAME_set_up FOLDER     makes an empty server in a folder, and chooses its port
#   NAME_start FOLDER      starts it, waits until it answers, and writes its number to $STATE/NAME.pid
#   NAME_fill FOLDER       makes the tables of the tests; once, after the first start
#   NAME_word, NAME_crash  a word of its command line, and the signal that a crash is like
#   NAME_address           its address, as `--db` takes it
# Packages are only unpacked, never installed, except those of the system. Each checkout has servers of its own.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
STATE=$(cd "$HERE/.." && pwd)/target/engines
source "$HERE/servers.sh"
for file in "$HERE"/engines/*.sh; do source "$file"; done

known() { declare -F "$1_start" > /dev/null || fail "there is no server \`$1\`" "they are $(cd "$HERE/engines" && ls | sed 's/\.sh$//' | tr '\n' ' ')"; }
alive() { local word=$1_word; running "$(kept "$1.pid")" "${!word}"; }

up() {
  local name folder
  for name in "$@"; do
    known "$name"
    if ! alive "$name" || [ ! -e "$STATE/$name.ready" ]; then
      # One that was started and not filled, by a run that was killed, is no use.
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
