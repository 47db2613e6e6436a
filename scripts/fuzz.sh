#!/usr/bin/env bash
# Runs every fuzz target for some seconds, in sequence: scripts/fuzz.sh [--coverage] [SECONDS] [TARGET...]
# Prints a table and writes minimized failures to target/fuzz-found. docs/design/fuzzing.md has the details.
#
# --coverage builds the targets of querymend-sql with branch counters, in a separate folder, so that inputs that reach new code
# are mutated further (coverage-guided fuzzing). It requires only the stable compiler.
set -euo pipefail
cd "$(dirname "$0")/.."

coverage=
if [ "${1:-}" = --coverage ]; then coverage=1; shift; fi
seconds=${1:-60}; shift || true
case $seconds in '' | *[!0-9]*) echo "error: \`$seconds\` is not a number of seconds; hint: scripts/fuzz.sh 60" >&2; exit 2 ;; esac

target=${CARGO_TARGET_DIR:-$PWD/target}
found=$target/fuzz-found
log=$(mktemp)
trap 'rm -f "$log"' EXIT

if [ -n "$coverage" ]; then
  host=$(rustc -vV | sed -n 's/^host: //p')
  pass="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
  # With an explicit --target, the flags do not apply to build scripts and macros, which have no runtime for the counters.
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
