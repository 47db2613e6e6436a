#!/usr/bin/env python3
"""Measures the time of one repair without a database: median and 95th percentile over the failing predictions on SQLite.

    cargo build --release --bin querymend && python3 scripts/repair_speed.py

The predictions are part of the evaluation data (docs/measurements/README.md; QUERYMEND_DATA names its folder). Without them,
the queries of crates/cli/benches are repaired, half of which need it.

A single `querymend fix --batch` process receives one query at a time; the best of three times counts. The schema is given as
CREATE TABLE text, so that no database is accessed. The time of a query that needs no repair (reading the line, one review,
writing the answer) is printed as the baseline.
"""
import collections, json, os, sqlite3, subprocess, sys, tempfile, time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
DATA = os.environ.get("QUERYMEND_DATA") or os.path.join(ROOT, "..", "shared", "data")


def schema(path, folder):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as c:
        rows = c.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").fetchall()
    name = os.path.join(folder, os.path.basename(path) + ".sql")
    with open(name, "w") as f:
        f.write(";\n".join(r[0] for r in rows) + ";\n")
    return name


def asked(fix, item):
    best = None
    for _ in range(3):
        start = time.perf_counter()
        fix.stdin.write(item)
        fix.stdin.flush()
        answer = fix.stdout.readline()
        took = time.perf_counter() - start
        best = took if best is None else min(best, took)
    return best, json.loads(answer)["status"]


def broken(folder):
    """Yields the inputs: database name, query, schema file, question."""
    if not os.path.isdir(DATA):
        tables = os.path.join(ROOT, "crates", "sql", "tests", "pages", "shop.sql")
        with open(os.path.join(ROOT, "crates", "cli", "benches", "queries.jsonl")) as f:
            return [("shop", json.loads(line)["sql"], tables, None) for line in f]
    with open(os.path.join(DATA, "predictions", "failures_sqlite.jsonl")) as f:
        rows = [json.loads(line) for line in f]
    paths = {row["db_id"]: os.path.abspath(os.path.join(DATA, row["db"])) for row in rows}
    schemas = {name: schema(path, folder) for name, path in paths.items()}
    return [(row["db_id"], row["pred"], schemas[row["db_id"]], row["question"]) for row in rows]


def measure(binary):
    """Returns sorted times in seconds: of all repairs, per database, and of a query that needs no repair."""
    times = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        fix = subprocess.Popen([binary, "fix", "--batch", "-", "--root", "/"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for name, text, tables, question in broken(folder):
            line = lambda sql: json.dumps({"id": 1, "sql": sql, "schema": tables, "dialect": "sqlite", "question": question}) + "\n"
            took, _ = asked(fix, line(text))
            for key in ("all", name):
                times[key].append(took)
            times["no repair needed"].append(asked(fix, line("SELECT 1"))[0])
        fix.stdin.close()
        fix.wait()
    return {key: sorted(of) for key, of in times.items()}


def at(times, share):
    """Returns a percentile of sorted times, in milliseconds."""
    return 1000 * times[min(len(times) - 1, int(len(times) * share))]


def main():
    binary = os.path.join(os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target"), "release", "querymend")
    if not os.path.exists(binary):
        sys.exit("there is no release build: nothing was measured")
    print("| database | queries | median | p95 | longest |\n|---|---|---|---|---|")
    for key, times in sorted(measure(binary).items(), key=lambda one: -len(one[1])):
        print(f"| {key} | {len(times)} | {at(times, 0.5):.2f} ms | {at(times, 0.95):.2f} ms | {at(times, 1):.2f} ms |")


if __name__ == "__main__":
    main()
