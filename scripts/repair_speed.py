#!/usr/bin/env python3
"""How long one repair takes, without a database to ask: median and 95th percentile over the failing predictions on SQLite.

    cargo build --release && python3 scripts/repair_speed.py

One `querymend fix --batch` runs all the while; a query is sent, its answer is waited for, and the best of three is kept. The
schema is given as CREATE TABLE text, so that nothing is asked of a database. What a query costs that needs no mending (reading
the line, one review, writing the answer) is shown beside it.
"""
import collections, json, os, sqlite3, subprocess, sys, tempfile, time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
DATA = os.path.join(ROOT, "..", "shared", "data")
BINARY = os.path.join(ROOT, "target", "release", "querymend")


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


def main():
    for need in (DATA, BINARY):
        if not os.path.exists(need):
            sys.exit(f"{os.path.relpath(need, ROOT)} is not there: nothing was measured")
    with open(os.path.join(DATA, "predictions", "failures_sqlite.jsonl")) as f:
        rows = [json.loads(l) for l in f]
    times, schemas = collections.defaultdict(list), {}
    with tempfile.TemporaryDirectory() as folder:
        fix = subprocess.Popen([BINARY, "fix", "--batch", "-", "--root", "/"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for row in rows:
            path = os.path.abspath(os.path.join(DATA, row["db"]))
            if path not in schemas:
                schemas[path] = schema(path, folder)
            line = lambda sql: json.dumps({"id": 1, "sql": sql, "schema": schemas[path], "dialect": "sqlite", "question": row["question"]}) + "\n"
            took, status = asked(fix, line(row["pred"]))
            for key in ("all", row["db_id"]):
                times[key].append(took)
            times["nothing to mend"].append(asked(fix, line("SELECT 1"))[0])
        fix.stdin.close()
        fix.wait()
    print("| database | queries | median | p95 | longest |\n|---|---|---|---|---|")
    for key, t in sorted(times.items(), key=lambda x: -len(x[1])):
        t.sort()
        ms = lambda share: 1000 * t[min(len(t) - 1, int(len(t) * share))]
        print(f"| {key} | {len(t)} | {ms(0.5):.2f} ms | {ms(0.95):.2f} ms | {ms(1):.2f} ms |")


if __name__ == "__main__":
    main()
