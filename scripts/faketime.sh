#!/usr/bin/env bash
# libfaketime, for the test in which the clock of a server jumps.
#
#   scripts/faketime.sh fetch    installs it if it is missing (Debian: `faketime`), and prints where the library lies
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
STATE=$HERE/../target/faketime
source "$HERE/servers.sh"

case ${1:-} in
  fetch)
    system_packages faketime faketime
    dpkg -L libfaketime | grep '/libfaketimeMT\.so\.1$' || fail "libfaketime is not where Debian has it" "the test is left out"
    ;;
  *) sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
