#!/usr/bin/env python3
"""Runs `fix` on adversarial queries: counts how many it repairs as intended, and how many it repairs wrongly.

    scripts/misleading.py [--bin PROGRAM] [--show]

`datasets/misleading/` contains six small databases as SQL and, one per line, queries with the intended query (`meant`).
Cases that cannot be decided are marked `unknowable`: giving up is correct there, and `meant` is a placeholder; `either`
marks cases with two equally good interpretations. Results are compared as sets of rows. `--show` prints every wrong repair.
"""
import argparse
import collections
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "datasets/misleading"
#: Timeout of a query in seconds.
SECONDS = 5


def rows(folder, database, sql):
    """Returns the rows as a multiset with rounded numbers, or the error."""
    connection = sqlite3.connect(f"file:{folder}/{database}.sqlite?mode=ro&immutable=1", uri=True)
    end = time.monotonic() + SECONDS
    connection.set_progress_handler(lambda: int(time.monotonic() > end), 20_000)
    plain = lambda cell: round(float(cell), 6) if isinstance(cell, (int, float)) else cell
    try:
        return collections.Counter(tuple(map(plain, row)) for row in connection.execute(sql)), None
    except sqlite3.Error as error:
        return None, str(error)
    finally:
        connection.close()


def verdict(case, answer, folder):
    """Classifies the result of a case."""
    meant, _ = rows(folder, case["db"], case["meant"])
    got, error = rows(folder, case["db"], answer["sql"] or "")
    right = error is None and got == meant
    if case["sql"] == case["meant"]:
        return "unchanged, correct" if answer["status"] == "untouched" else "CHANGED a correct query"
    if answer["status"] == "mended":
        return "mended, right" if right else "mended, either reading" if case.get("either") else "mended, WRONG"
    if answer["status"] == "gave_up":
        return "given up, undecidable" if case.get("unknowable") else "given up"
    return f"{answer['status']}, right" if right else f"{answer['status']}, wrong"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=ROOT / "target/release/querymend", type=Path)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if not options.bin.exists():
        sys.exit(f"error: there is no program {options.bin}\nhint: build it with cargo build --release, or name one with --bin")
    cases = [json.loads(line) for line in (CASES / "cases.jsonl").read_text().splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        for script in CASES.glob("*.sql"):
            with sqlite3.connect(f"{folder}/{script.stem}.sqlite") as connection:
                connection.executescript(script.read_text())
        lines = []
        for case in cases:
            error = rows(folder, case["db"], case["sql"])[1]
            line = {"id": case["id"], "db": f"{case['db']}.sqlite", "sql": case["sql"], "question": case.get("question"), "error": error}
            lines.append(json.dumps({key: value for key, value in line.items() if value}))
        done = subprocess.run([options.bin, "fix", "--batch", "-", "--root", folder], input="\n".join(lines) + "\n", capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"error: fix --batch ended with {done.returncode}: {done.stderr[-500:]}")
        answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
        counts = collections.Counter()
        for case in cases:
            said = verdict(case, answers[case["id"]], folder)
            counts[said] += 1
            if options.show and said == "mended, WRONG":
                print(f"{case['id']}\n  in    {case['sql']}\n  meant {case['meant']}\n  out   {answers[case['id']]['sql']}")
    for said, count in counts.most_common():
        print(f"{count:5}  {said}")


if __name__ == "__main__":
    main()
