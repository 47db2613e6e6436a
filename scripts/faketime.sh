#!/usr/bin/env bash
# Installs libfaketime, for the test in which the clock of a server jumps.
#
#   scripts/faketime.sh fetch    installs it if it is missing (Debian: `faketime`), and prints the path of the library
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
STATE=$HERE/../target/faketime
source "$HERE/servers.sh"

case ${1:-} in
  fetch)
    system_packages faketime faketime
    dpkg -L libfaketime | grep '/libfaketimeMT\.so\.1$' || fail "libfaketime is not in Debian's default location" "the test is skipped"
    ;;
  *) sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
