#!/usr/bin/env python3
"""Checks docs/requirements.md: every test that it names exists, in a file of that name.

    scripts/requirements.py    exit status 1 with the missing tests
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "requirements.md"
ROW = re.compile(r"^\| ([A-Z]\d\d) \| [^|]+ \| (.+) \|$", re.M)
TEST = re.compile(r"`([\w/]+)::(\w+)`")


def tests():
    """Returns (file stem, function) of every Rust function, and the text of the tests of the page."""
    functions = set()
    for file in [*(ROOT / "crates").rglob("*.rs"), *(ROOT / "examples").rglob("*.rs")]:
        functions |= {(file.stem, name) for name in re.findall(r"\bfn (\w+)", file.read_text())}
    return functions


def main():
    functions, failed = tests(), False
    rows = ROW.findall(PAGE.read_text())
    for requirement, cell in rows:
        for path, name in TEST.findall(cell):
            if (path.split("/")[-1], name) not in functions:
                print(f"{PAGE.relative_to(ROOT)}: {requirement} names {path}::{name}, which does not exist")
                failed = True
    if not rows:
        print(f"{PAGE.relative_to(ROOT)}: no requirements found")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
