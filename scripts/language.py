#!/usr/bin/env python3
"""Counts how far the comments and names of the crates are from the style of CONTRIBUTING.md, and fails above its limits.

    scripts/language.py            print the figures; exit status 1 if one is above its limit
    scripts/language.py --show     print the lines and names behind the figures as well

Import cycles, surfaces and forbidden type names are checked by scripts/layout.py.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

COMMENT = re.compile(r"\s*//([/!]?)\s?(.*)")
# First words of doc comments that describe around a thing instead of naming it.
OPENING = re.compile(r"(What|Whether|How|Where|Who|Which|Why|By which|So many|That which|Whoever)\b")
VAGUE = re.compile(r"\b(stands|so many|nobody|somebody|whoever|told)\b", re.I)
TYPE = re.compile(r"^\s*(?:pub(?:\([a-z]+\))? )?(?:struct|enum|trait|type) (\w+)", re.M)

# Type names that several crates or modules define on purpose.
SHARED_NAMES = {
    "Error": "one error type per crate, or the associated type of a foreign trait",
    "Output": "associated type",
    "Value": "associated type of a serde visitor",
    "Rejection": "associated type of an axum extractor",
    "Break": "associated type of a sqlparser visitor",
    "Data": "associated type of an HTTP body",
    "WorkerState": "associated type of a batch task",
    "BoxFuture": "alias in each crate that has a dyn-compatible async trait",
}

LIMITS = {
    "doc lines that begin with what, whether, how, … (%)": 5.0,
    "comment lines wider than 100 columns (%)": 2.0,
    "vague words in comments (stands, so many, nobody, …)": 0,
    "type names defined more than once, without a reason": 20,
    "source files of more than 500 lines": 0,
}


def measure():
    """Returns the figures in the order of LIMITS, and the lines and names behind each."""
    comments, docs, wide, vague, opening, long_files = 0, 0, [], [], [], []
    types = collections.defaultdict(list)
    for file in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        name, text = file.relative_to(ROOT), file.read_text()
        lines = text.splitlines()
        if len(lines) > 500:
            long_files.append(f"{name}: {len(lines)} lines")
        for type_name in TYPE.findall(text):
            types[type_name].append(str(name))
        for number, line in enumerate(lines, 1):
            match = COMMENT.match(line)
            if not match:
                continue
            comments += 1
            place = f"{name}:{number}: {line.strip()}"
            if len(line) > 100:
                wide.append(place)
            if VAGUE.search(match.group(2)):
                vague.append(place)
            if match.group(1) and match.group(2):
                docs += 1
                if OPENING.match(match.group(2)):
                    opening.append(place)
    twice = [f"{name}: {', '.join(files)}" for name, files in types.items() if len(files) > 1 and name not in SHARED_NAMES]
    shares = [100 * len(opening) / max(docs, 1), 100 * len(wide) / max(comments, 1)]
    return [*shares, len(vague), len(twice), len(long_files)], [opening, wide, vague, twice, long_files]


def main():
    figures, details = measure()
    failed = False
    for (label, limit), figure, lines in zip(LIMITS.items(), figures, details):
        is_above = figure > limit
        failed |= is_above
        print(f"{label}: {figure:g}, at most {limit:g}" if isinstance(figure, int) else f"{label}: {figure:.1f}, at most {limit:g}")
        if is_above or "--show" in sys.argv:
            print(*(f"    {line}" for line in lines[:40]), sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
