#!/usr/bin/env python3
"""Adversarial cases for `fix`, `check` and `ask`: queries and questions on which Querymend must not be confidently wrong.

    scripts/traps.py check [--bin PROGRAM]
    scripts/traps.py run --bin target/debug/querymend [--model MODEL] [--kind KIND] [--show]

`check` validates `datasets/traps/cases.jsonl`: valid queries run, unknown names are unknown, and silent errors and
alternative interpretations change the rows. The shop is checked on two schemas, `pages/shop.sql` and the demo shop, which
has rows only with `--bin`. `run` sends queries to `fix` (to `check` where abstaining is correct) and questions to `ask`;
`--show` prints every wrong case.
"""
import argparse
import collections
import functools
import json
import re
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRAPS, PAGES, DEMO = ROOT / "datasets/traps/cases.jsonl", ROOT / "crates/sql/tests/pages/shop.sql", ROOT / "crates/engine/src/demo.rs"
MIN_PER_KIND, TIMEOUT = 10, 300
EXPECT = {"comments": "verbatim", "literals": "verbatim", "unknown_table": "give_up", "misspelt_table": "repair",
          "unknown_column": "give_up repair", "missing_subject": "abstain verbatim", "uncovered_term": "abstain ask verbatim",
          "conversation": "words verbatim", "write_request": "refuse verbatim", "silent_error": "repair verbatim"}


def build(folder, program):
    """Creates every database in the folder; without a binary the demo shop has no rows."""
    demo = "" if program else re.search(r'const TABLES: &str = r#"(.*?)"#', DEMO.read_text(), re.DOTALL)[1]
    if program:
        subprocess.run([program, "demo", f"{folder}/shop.sqlite"], check=True, capture_output=True)
    scripts = {path.stem: path.read_text() for path in [PAGES, *(ROOT / "datasets/misleading").glob("*.sql")]}
    for name, script in (scripts | {"pages": scripts["shop"], "shop": demo}).items():
        with sqlite3.connect(f"{folder}/{name}.sqlite") as connection:
            connection.executescript(script)


@functools.cache
def rows(folder, database, sql):
    """Returns the rows as a multiset, numbers rounded, and the error of the database."""
    connection = sqlite3.connect(f"file:{folder}/{database}.sqlite?mode=ro&immutable=1", uri=True)
    rounded = lambda cell: round(float(cell), 6) if isinstance(cell, (int, float)) else cell
    try:
        return collections.Counter(tuple(map(rounded, row)) for row in connection.execute(sql)), None
    except (sqlite3.Error, sqlite3.Warning) as error:
        return None, str(error)


@functools.cache
def vocabulary(folder, database):
    """Returns the tables, and all names and values of the database in lower case."""
    schema = list(rows(folder, database, "SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view')")[0])
    values = [row for table, _ in schema for row in rows(folder, database, f'SELECT * FROM "{table}"')[0]]
    return [table for table, _ in schema], str(schema + values).lower()


def problems_of(case, folder, database):
    """Returns the problems of a case on a database."""
    kind, expect, closest, readings, sql = case["kind"], case["expect"], case.get("closest"), case.get("readings", []), case.get("sql", "")
    (tables, words), (question, missing) = vocabulary(folder, database), (case.get(key, "").lower() for key in ("question", "missing"))
    readings = [sql, case["right"]] if expect == "repair" and kind == "silent_error" else readings
    runs = [case["right"]] if expect == "repair" else [sql] if sql and expect in ("verbatim", "abstain") else []
    error = expect in ("give_up", "repair") and kind != "silent_error" and (rows(folder, database, sql)[1] or "it runs")
    unknown = re.fullmatch(r"no such (?:table|column): (.+)", error or "")
    others = [re.sub(rf"\b{re.escape(unknown[1])}\b", f'"{table}"', sql) for table in tables] if unknown else []
    results = [rows(folder, database, query)[0] for query in readings if rows(folder, database, f'SELECT 1 FROM "{tables[0]}"')[0]]
    failures = [(rows(folder, database, query)[1], f"does not run: {query}") for query in runs + readings]
    return [problem for is_so, problem in failures + [
        (expect not in EXPECT.get(kind, "").split() or not case["reason"] or not (sql or question), "a field is missing or wrong"),
        (error and (not unknown or ("column" in error) != (kind == "unknown_column")), f"no unknown table or column: {error}"),
        (kind == "unknown_table" and all(rows(folder, database, other)[1] for other in others), "no table has the columns"),
        (any(results.count(result) > 1 for result in results), "readings return the same rows"),
        (expect == "ask" and not 2 <= len(readings) <= 4, "needs two to four readings"),
        (missing not in question or missing and missing.rstrip("s") in words, f"`{missing}` is in the database, or not in the question"),
        (closest and closest not in tables or expect == "abstain" and not missing, f"`{closest}` is no table, or nothing is missing"),
    ] if is_so]


def check(cases, options, folder):
    """Prints the counts and every problem; returns the number of problems."""
    counts, found = collections.Counter((case["kind"], case["expect"]) for case in cases), []
    for case in cases:
        for database in ["pages", "shop"] if case["database"] == "shop" else [case["database"]]:
            found += [f"{case['id']} on {database}: {problem}" for problem in problems_of(case, folder, database)]
    found += [f"{name}: used twice" for name, count in collections.Counter(case["id"] for case in cases).items() if count > 1]
    for kind in EXPECT:
        parts = {expect: count for (of, expect), count in sorted(counts.items()) if of == kind}
        print(f"{sum(parts.values()):5}  {kind:16} {', '.join(f'{count} {expect}' for expect, count in parts.items())}")
        found += [f"{kind}: fewer than {MIN_PER_KIND}"] * (sum(parts.values()) < MIN_PER_KIND and options.kind in (None, kind))
    print(f"{len(cases):5}  in all, {len(found)} problems", *found, sep="\n       ")
    return len(found)


def answer_of(case, options, folder):
    """Runs one case through the command line and returns the answer as JSON."""
    database, question = f"{folder}/{case['database']}.sqlite", case.get("question")
    arguments = ["check" if case["expect"] == "abstain" else "fix", "--batch", "-"]
    if "sql" not in case:
        arguments = ["ask", "--db", database, "--no-memory", "--format", "json", *filter(None, [options.model]), "--", question]
    line = json.dumps({"id": case["id"], "db": database, "sql": case.get("sql"), "question": question})
    try:
        return json.loads(subprocess.run([options.bin, *arguments], input=line, capture_output=True, text=True, timeout=TIMEOUT).stdout)
    except (subprocess.TimeoutExpired, ValueError) as error:
        return {"status": f"no answer ({error})"}


def is_right(case, answer, folder):
    """Returns whether the answer is what the case expects."""
    status, expect, database = answer.get("status"), case["expect"], case["database"]
    if expect == "abstain":
        return status != "answered" and case["missing"].lower() in str([answer.get(key) for key in ("text", "problem", "findings")]).lower()
    if expect == "repair":
        return status == "mended" and rows(folder, database, answer["sql"]) == rows(folder, database, case["right"])
    if expect == "refuse" and "sql" not in case:  # Before any SQL is drafted.
        return status in ("refused", "gave_up", "chat") and not answer["metadata"]["llm_calls"]
    if expect == "verbatim":
        return status == "untouched" and answer["sql"] == case["sql"]
    return status == {"give_up": "gave_up", "refuse": "refused", "words": "chat", "ask": "ask_user"}[expect]


def run(cases, options, folder):
    """Prints right and wrong per kind; returns the number of wrong cases."""
    counts = collections.Counter()
    for case, answer in ((case, answer_of(case, options, folder)) for case in cases):
        counts[case["kind"], right := is_right(case, answer, folder)] += 1
        if options.show and not right:
            print(f"{case['id']}: not {case['expect']} but {answer.get('status', answer.get('verdict'))}: {answer.get('sql')}")
    lines = [f"{kind:16} {counts[kind, True]:5}  {counts[kind, False]:5}" for kind in dict.fromkeys(case["kind"] for case in cases)]
    print(f"{'kind':16} right  wrong", *lines, sep="\n")
    return sum(counts[kind, False] for kind in EXPECT)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["check", "run"])
    parser.add_argument("--bin", type=lambda path: Path(path).resolve(strict=True))
    parser.add_argument("--model", type="--model={}".format)
    parser.add_argument("--kind", choices=EXPECT)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if options.verb == "run" and not options.bin:
        parser.error("run needs a program: build it with cargo build, and name it with --bin target/debug/querymend")
    cases = [case for case in map(json.loads, TRAPS.read_text().splitlines()) if options.kind in (None, case["kind"])]
    with tempfile.TemporaryDirectory() as folder:
        build(folder, options.bin)
        sys.exit(1 if {"check": check, "run": run}[options.verb](cases, options, folder) else 0)
