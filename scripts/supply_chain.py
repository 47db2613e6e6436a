#!/usr/bin/env python3
"""Checks the dependencies of the binary and the page: every license must permit redistribution, and every dependency must come
from a registry with a checksum.

    scripts/supply_chain.py                 checks the dependencies and prints their number
    scripts/supply_chain.py --sbom FILE     also writes the SBOM (CycloneDX 1.5, JSON)

Crates are those linked into the Linux binary (no dev-dependencies); packages of the page are those of `web/package-lock.json`
that are not dev-dependencies. Security advisories are not checked: no registry provides them.
"""
import argparse, json, pathlib, re, subprocess, sys, uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Licenses compatible with distribution under Apache-2.0. MPL-2.0 requires only that changes to its
# files be published, and there are none.
ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "CDLA-Permissive-2.0", "ISC",
    "MIT", "MIT-0", "MPL-2.0", "Unicode-3.0", "Unlicense", "Zlib", "bzip2-1.0.6",
}
# Crates with a license file instead of an identifier, reviewed by hand.
READ = {"ring": "Apache-2.0 AND ISC"}


def allowed(expression):
    """Returns whether a license expression is satisfied: OR needs one side, AND both."""
    words = re.findall(r"\(|\)|[^\s()/]+|/", expression.replace("/", " OR "))
    place = 0

    def either():
        nonlocal place
        fine = both()
        while place < len(words) and words[place] == "OR":
            place += 1
            fine = both() or fine
        return fine

    def both():
        nonlocal place
        fine = one()
        while place < len(words) and words[place] == "AND":
            place += 1
            fine = one() and fine
        return fine

    def one():
        nonlocal place
        if place >= len(words):
            return False
        word = words[place]
        place += 1
        if word == "(":
            fine = either()
            place += 1
            return fine
        if place + 1 < len(words) and words[place] == "WITH":
            word = f"{word} WITH {words[place + 1]}"
            place += 2
        return word in ALLOWED

    return either() and place == len(words)


def crates():
    """Returns the crates of the binary: the transitive dependencies of `querymend-cli`."""
    metadata = json.loads(subprocess.check_output(
        ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"], cwd=ROOT))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [package["id"] for package in metadata["packages"] if package["name"] == "querymend-cli"]
    seen = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for dependency in nodes[name]["deps"]:
            if any(kind["kind"] in (None, "build") for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    return [packages[name] for name in sorted(seen)]


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--sbom", metavar="FILE")
    asked = asked.parse_args()
    wrong, parts, versions = [], [], {}
    checksums = {}
    for block in (ROOT / "Cargo.lock").read_text().split("[[package]]"):
        field = dict(re.findall(r'^(\w+) = "([^"]*)"$', block, re.M))
        if "name" in field:
            checksums[field["name"], field["version"]] = field.get("checksum")
    for crate in crates():
        name, version, source = crate["name"], crate["version"], crate["source"]
        if source is None:
            continue
        licence = crate["license"] or READ.get(name, "")
        if not allowed(licence):
            wrong.append(f"{name} {version}: the licence `{licence or crate['license_file']}` is not one that we pass on")
        checksum = checksums.get((name, version))
        if not source.startswith("registry+") or not checksum:
            wrong.append(f"{name} {version}: it comes from {source}, without a checksum of a registry")
        versions.setdefault(name, []).append(version)
        parts.append(("cargo", name, version, licence, {"SHA-256": checksum}))
    lock = json.loads((ROOT / "web/package-lock.json").read_text())
    for path, package in lock["packages"].items():
        if not path or package.get("dev") or package.get("devOptional"):
            continue
        name, licence = path.split("node_modules/")[-1], package.get("license", "")
        if not allowed(licence):
            wrong.append(f"npm {name} {package['version']}: the licence `{licence}` is not one that we pass on")
        if not package.get("integrity"):
            wrong.append(f"npm {name} {package['version']}: it has no checksum")
        parts.append(("npm", name, package["version"], licence, {}))
    twice = {name: found for name, found in versions.items() if len(found) > 1}
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    cargo = [part for part in parts if part[0] == "cargo"]
    print(f"{len(cargo)} crates and {len(parts) - len(cargo)} packages of the page, {len({part[3] for part in parts})} licence texts; "
          f"{len(twice)} crates in several versions: {', '.join(f'{name} {len(found)}' for name, found in sorted(twice.items()))}")
    if asked.sbom:
        listed = [{
            "type": "library", "name": name, "version": version, "purl": f"pkg:{kind}/{name.replace('@', '%40')}@{version}",
            "licenses": [{"expression": licence.replace("/", " OR ")}],
            "hashes": [{"alg": alg, "content": content} for alg, content in hashes.items() if content],
        } for kind, name, version, licence, hashes in parts]
        document = {
            # Deterministic serial number, so that a release is reproducible byte for byte.
            "bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(listed))}", "version": 1,
            "metadata": {"component": {"type": "application", "name": "querymend", "licenses": [{"expression": "Apache-2.0"}]}},
            "components": listed,
        }
        pathlib.Path(asked.sbom).write_text(json.dumps(document, indent=1) + "\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
