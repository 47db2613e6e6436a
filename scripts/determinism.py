#!/usr/bin/env python3
"""Runs `check --batch` and `fix --batch` with and without a cached value index, idle and under load, and compares the output.

    scripts/determinism.py --bin target/release/querymend [--data DIR] [--limit 400] [--loops 4]

Two sets: queries on a generated database of twelve tables with 20,000 rows and six text columns each, which takes more than
three seconds to index; and, with --data, the first queries of predictions/silent_wrong.jsonl. Prints the share of queries
with a warning, a checksum of the output (without trace ids) and the time of each run. Exits with 1 if two runs differ.
"""
import argparse, hashlib, json, os, shutil, sqlite3, subprocess, sys, tempfile, time

TABLES, COLUMNS, ROWS = 12, 6, 20_000

def generated(folder):
    connection = sqlite3.connect(os.path.join(folder, "large.sqlite"))
    for t in range(TABLES):
        columns = ", ".join(f"c{c} TEXT" for c in range(COLUMNS))
        connection.execute(f"CREATE TABLE t{t} (id INTEGER PRIMARY KEY, {columns})")
        value = lambda c, r: f"Table {t} Column {c} Value {r * (c + 1) % (1500 + c * 100)}"
        rows = ((r, *(value(c, r) for c in range(COLUMNS))) for r in range(ROWS))
        connection.executemany(f"INSERT INTO t{t} VALUES (?{', ?' * COLUMNS})", rows)
    connection.commit()
    connection.close()
    # Each column contains the value in another case, or no similar value.
    return [{"db": "large.sqlite", "sql": f"SELECT id FROM t{t} WHERE c{c} = 'table {t} column {c} value {v}'"}
            for t in range(TABLES) for c in range(COLUMNS) for v in (3, 4)]

def predictions(data, limit):
    with open(os.path.join(data, "predictions", "silent_wrong.jsonl")) as lines:
        rows = [json.loads(line) for line in lines][:limit]
    return [{"db": row["db"], "sql": row["pred"], "question": row["question"]} for row in rows]

def run(binary, command, queries, root, cache):
    lines = "".join(json.dumps({"id": i, **query}) + "\n" for i, query in enumerate(queries))
    begun = time.monotonic()
    ended = subprocess.run([binary, command, "--batch", "-", "--root", root], input=lines, text=True, capture_output=True,
                           env={**os.environ, "QUERYMEND_CACHE": cache})
    took = time.monotonic() - begun
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    if len(answers) != len(queries):
        sys.exit(f"{len(queries)} sent, {len(answers)} answered: {ended.stderr[-1000:]}")
    for answer in answers:
        answer.pop("trace_id", None)
    warned = sum(any(f["severity"] in ("warning", "error") for f in answer["findings"]) for answer in answers)
    return warned / len(answers), hashlib.sha256(json.dumps(answers).encode()).hexdigest()[:12], took

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--data")
    parser.add_argument("--limit", type=int, default=400)
    parser.add_argument("--loops", type=int, default=4)
    options = parser.parse_args()
    binary, is_same = os.path.abspath(options.bin), True
    with tempfile.TemporaryDirectory() as folder:
        cache = os.path.join(folder, "cache")
        sets = [("generated", generated(folder), folder)]
        if options.data:
            sets.append(("silent_wrong", predictions(options.data, options.limit), os.path.abspath(options.data)))
        for name, queries, root in sets:
            for command in ("check", "fix"):
                sums = set()
                for load in (0, options.loops):
                    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(load)]
                    try:
                        shutil.rmtree(cache, ignore_errors=True)
                        for index in ("cold", "warm"):
                            share, checksum, took = run(binary, command, queries, root, cache)
                            sums.add(checksum)
                            print(f"{name:12} {command:5} {len(queries):4} queries, {load} busy loops, {index}: "
                                  f"{share:6.1%} with a warning, {checksum}, {took:5.1f} s", flush=True)
                    finally:
                        for loop in busy:
                            loop.kill()
                is_same &= len(sums) == 1
    print("the same in every run" if is_same else "NOT the same in every run")
    sys.exit(0 if is_same else 1)

main()
