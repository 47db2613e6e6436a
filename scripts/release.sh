#!/usr/bin/env bash
# Builds a release for Linux on x86_64: an archive with a static binary.
#
#   scripts/release.sh         builds and tests the binary, and writes dist/querymend-VERSION-linux-x86_64.tar.gz
#
# The C library is linked statically. That is a linker flag only, so an existing release build is reused; target/release/querymend
# is the static binary afterwards. The archive is reproducible byte for byte: order, timestamps and owners of its files are fixed
# (the timestamp is that of the last commit, or SOURCE_DATE_EPOCH).
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "error: $1" >&2; echo "hint: $2" >&2; exit 1; }

[ "$(uname -sm)" = "Linux x86_64" ] || fail "releases can be built on Linux x86_64 only" "run it on such a machine"
for tool in cargo cc strip readelf tar sha256sum python3; do
  command -v "$tool" > /dev/null || fail "$tool is not installed" "Debian: apt install build-essential python3; Rust: rustup"
done
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
name=querymend-$version-linux-x86_64
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

# The page is embedded into the binary.
command -v npm > /dev/null || PATH=$(scripts/node.sh fetch):$PATH
scripts/page.sh
# Set only for the archive: C dependencies would be rebuilt whenever it changes.
env --unset=SOURCE_DATE_EPOCH cargo rustc --release --locked --package querymend-cli --bin querymend -- -C target-feature=+crt-static

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
stage=$scratch/$name
mkdir -p "$stage/completions" "$stage/man/man1" dist
program=$stage/querymend
strip -o "$program" "$target/release/querymend"

# Verify that the binary is static.
if readelf --program-headers "$program" | grep -q INTERP || readelf --dynamic "$program" | grep -q NEEDED; then
  fail "the binary is not static" "is the C library's libc.a installed (Debian: libc6-dev)?"
fi

# Test it with an empty environment and, where permitted, in an empty chroot.
alone() { (cd "$scratch" && env -i HOME="$scratch" "$program" "$@"); }
[ "$(alone --version)" = "querymend $version" ] || fail "the binary does not report version $version" "is it an old build?"
alone demo shop.db > /dev/null 2>&1
alone check -q --db shop.db --sql "SELECT name FROM products" > /dev/null 2>&1 || fail "check rejects a valid query" "run it by hand"
if alone check --db shop.db --sql "SELECT nmae FROM products" > "$scratch/found" 2>&1; then fail "check accepts an invalid query" "is it an old build?"; fi
grep -q unknown-column "$scratch/found" || fail "check does not say what is wrong" "run it by hand"
[ "$(alone run -q --db shop.db --format csv --sql "SELECT count(*) AS n FROM customers")" = $'n\n60' ] || fail "run does not count the customers" "run it by hand"
# Test name resolution, which is part of the static C library: a connection to `localhost` at a closed port must be refused.
alone schema --db "postgres://nobody@localhost:1/none?sslmode=disable" > "$scratch/refused" 2>&1 && fail "port 1 is in use" "stop the server on it"
grep -qi refused "$scratch/refused" || fail "localhost cannot be resolved: $(cat "$scratch/refused")" "link with the C library of another system"
alone schema --db "postgres://nobody@nowhere.invalid/none" > "$scratch/unknown" 2>&1 && fail "nowhere.invalid was resolved" "use another DNS resolver"
grep -q "^error" "$scratch/unknown" || fail "an unknown host crashes the binary: $(cat "$scratch/unknown")" "link with the C library of another system"
world=$scratch/world
mkdir "$world" && cp "$program" "$world"
if unshare --user --map-root-user true 2> /dev/null; then
  [ "$(unshare --user --map-root-user chroot "$world" /querymend --version)" = "querymend $version" ] || fail "it does not run in an empty chroot" "readelf prints its dependencies"
fi

cp LICENSE README.md "$stage"
alone completions bash > "$stage/completions/querymend.bash"
alone completions zsh > "$stage/completions/_querymend"
alone completions fish > "$stage/completions/querymend.fish"
alone man --quiet --into "$stage/man/man1"
python3 scripts/supply_chain.py --sbom "$stage/sbom.cdx.json" > /dev/null
(cd "$stage" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum > "$scratch/sums" && mv "$scratch/sums" SHA256SUMS)
find "$stage" -type d -exec chmod 755 {} + -o -type f -exec chmod 644 {} + && chmod 755 "$program"
tar --create --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --directory "$scratch" "$name" | gzip -n -9 > "dist/$name.tar.gz"
(cd dist && sha256sum "$name.tar.gz" > "$name.tar.gz.sha256")
printf '%s: %s MB, the program %s MB, %s files\n' "dist/$name.tar.gz" "$(($(stat -c %s "dist/$name.tar.gz") / 1000000))" \
  "$(($(stat -c %s "$program") / 1000000))" "$(find "$stage" -type f | wc -l)"
