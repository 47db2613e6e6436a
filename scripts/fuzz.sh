#!/usr/bin/env bash
# Tries every fuzz target for so many seconds, one after the other: scripts/fuzz.sh [--coverage] [SECONDS] [TARGET...]
# Prints a table, and leaves what failed, made as short as it could be, in target/fuzz-found. docs/fuzzing.md says more.
#
# --coverage builds the targets of the critic anew with a counter at each branch, in a folder of its own, so that inputs which
# reach new code are damaged further. That takes no other compiler than the stable one.
set -euo pipefail
cd "$(dirname "$0")/.."

coverage=
if [ "${1:-}" = --coverage ]; then coverage=1; shift; fi
seconds=${1:-60}; shift || true
case $seconds in '' | *[!0-9]*) echo "error: \`$seconds\` is no number of seconds; hint: scripts/fuzz.sh 60" >&2; exit 2 ;; esac

target=${CARGO_TARGET_DIR:-$PWD/target}
found=$target/fuzz-found
log=$(mktemp)
trap 'rm -f "$log"' EXIT

if [ -n "$coverage" ]; then
  host=$(rustc -vV | sed -n 's/^host: //p')
  pass="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
  # With a target named, flags do not reach build scripts and macros, which have nowhere to report to.
  built=$(CARGO_TARGET_DIR=$target/fuzz CARGO_PROFILE_DEV_OPT_LEVEL=2 RUSTFLAGS="$pass" \
    cargo test --locked -p querymend-sql --test integration --target "$host" --no-run 2>&1) || { echo "$built" >&2; exit 1; }
else
  built=$(cargo test --locked --workspace --lib --test fuzz --test integration --no-run 2>&1) || { echo "$built" >&2; exit 1; }
fi

failed=0
printf '| target | inputs | seconds | places reached | kept inputs | slowest, ms | findings |\n|---|---|---|---|---|---|---|\n'
for program in $(sed -n 's/^ *Executable.*(\(.*\))$/\1/p' <<<"$built"); do
  for test in $("$program" --list --format terse | sed -n 's/: test$//p' | grep -E '(^|::)fuzz_' || true); do
    name=${test##*fuzz_}
    if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
    QUERYMEND_FUZZ_SECONDS=$seconds QUERYMEND_FUZZ_FOUND=$found RUST_BACKTRACE=0 \
      nice "$program" --exact "$test" --nocapture >"$log" 2>&1 || failed=1
    sed -n 's/^fuzz \(| .*\)$/\1 |/p' "$log"
    grep -q '^fuzz | ' "$log" && grep -q ' ok\. ' "$log" || cat "$log" >&2
  done
done
exit $failed
