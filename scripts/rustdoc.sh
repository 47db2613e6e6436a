#!/usr/bin/env bash
# Wraps rustdoc for ./test: when cargo runs the doctests of a crate, also builds its documentation, with warnings as errors.
# `cargo doc` would check all dependencies again; for doctests they are already compiled.
set -euo pipefail
documented=()
skip= tested=
for argument in "$@"; do
  if [ -n "$skip" ]; then skip=; continue; fi
  case $argument in
    --test) tested=1 ;;
    --test-run-directory | --test-runtool | --test-args | --test-runtool-arg) skip=1 ;;
    --test-*=* | --no-run | --no-capture | --nocapture) ;;
    *) documented+=("$argument") ;;
  esac
done
if [ -n "$tested" ]; then
  rustdoc "${documented[@]}" -D warnings --out-dir "${CARGO_TARGET_DIR:-target}/doc"
fi
exec rustdoc "$@"
