#!/usr/bin/env python3
"""Compares the static analyzer with real databases. Prints the figures of docs/measurements/static-analysis.md that no other
scorer computes.

    scripts/check_table.py                                     SQLite's prepare, PostgreSQL's recorded errors, warnings on gold
    scripts/check_table.py --psql "psql -q -h HOST -p PORT -U USER"   also: what PostgreSQL plans after `fix` (requires a
                                                               database per schema in bird/pg_schema, created from that file)

Requires target/release/querymend and the evaluation data (docs/measurements/README.md).
"""
import argparse, collections, csv, json, os, shlex, sqlite3, subprocess, sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
DATA = os.path.join(ROOT, "..", "shared", "data")
BINARY = os.path.join(ROOT, "target", "release", "querymend")
SALVAGE = {"code-fence", "surrounding-prose", "escaped-characters", "continuation", "flattened-comment", "unescaped-apostrophe", "json-wrapped"}


def batch(command, items):
    lines = "".join(json.dumps({"id": i, **item}) + "\n" for i, item in enumerate(items))
    done = subprocess.run([BINARY, command, "--batch", "-", "--root", DATA], input=lines, text=True, capture_output=True)
    answers = [json.loads(l) for l in done.stdout.splitlines()]
    if len(answers) != len(items):
        sys.exit(f"{len(items)} sent, {len(answers)} answered: {done.stderr[-500:]}")
    return answers


def foreseen(answer):
    return any(f["severity"] == "error" or f["code"] in SALVAGE for f in answer["findings"])


def lines(name):
    with open(os.path.join(DATA, "predictions", name + ".jsonl")) as f:
        return [json.loads(l) for l in f]


def sqlite():
    rows = [r for name in ("failures_sqlite", "controls_correct", "silent_wrong") for r in lines(name)]
    connections, count = {}, collections.Counter()
    for row, answer in zip(rows, batch("check", [{"sql": r["pred"], "db": r["db"]} for r in rows])):
        path = os.path.join(DATA, row["db"])
        connection = connections.get(path) or connections.setdefault(path, sqlite3.connect(f"file:{path}?mode=ro", uri=True))
        try:
            connection.execute("EXPLAIN " + row["pred"])
            count["runs"] += 1
            count["false alarm"] += any(f["severity"] == "error" for f in answer["findings"])
        except (sqlite3.Error, sqlite3.Warning):
            count["fails"] += 1
            count["foreseen"] += foreseen(answer)
    print(f"SQLite {sqlite3.sqlite_version}: {count['foreseen']} of {count['fails']} rejections foreseen, {count['false alarm']} false alarms on {count['runs']} that it accepts")


def postgres(psql):
    schema = lambda r: f"bird/pg_schema/{r['db_id']}.sql"
    rows, states = lines("failures_postgres"), collections.defaultdict(collections.Counter)
    for row, answer in zip(rows, batch("check", [{"sql": r["pred"], "schema": schema(r), "dialect": "postgres"} for r in rows])):
        states[row["sqlstate"]].update(n=1, foreseen=int(foreseen(answer)))
    print("PostgreSQL by SQLSTATE:", ", ".join(f"{k} {v['foreseen']} of {v['n']}" for k, v in sorted(states.items())))
    with open(os.path.join(DATA, "bird", "mini_dev_postgresql.json")) as f:
        gold = [r for r in json.load(f) if os.path.exists(os.path.join(DATA, schema(r)))]
    alarms = [a for a in batch("check", [{"sql": r["SQL"], "schema": schema(r), "dialect": "postgres"} for r in gold]) if any(f["severity"] == "error" for f in a["findings"])]
    print(f"PostgreSQL gold: {len(alarms)} false alarms on {len(gold)}")
    asked = [{"sql": r["pred"], "schema": schema(r), "dialect": "postgres", "question": r["question"], "evidence": r.get("evidence")} for r in rows]
    fixed, count = batch("fix", asked), collections.Counter()
    for row, answer in zip(rows, fixed):
        count[answer["status"]] += 1
        if psql and answer["status"] == "mended":
            plan = subprocess.run([*shlex.split(psql), "-d", row["db_id"], "-c", "EXPLAIN " + answer["sql"]], capture_output=True)
            count["planned"] += plan.returncode == 0
    print(f"PostgreSQL after fix: {dict(count)}")


def warnings():
    items = []
    with open(os.path.join(DATA, "spider", "train_questions.csv")) as f:
        items += [(r["sql"], f"spider/database/{r['database']}/{r['database']}.sqlite") for r in csv.DictReader(f)]
    items += [(q, r["db"]) for r in lines("controls_correct") for q in {r["gold"], r["pred"]}]
    items = [{"sql": q, "db": db} for q, db in items if os.path.exists(os.path.join(DATA, db))]
    codes = collections.Counter(c for a in batch("check", items) for c in {f["code"] for f in a["findings"] if f["severity"] != "error"})
    print(f"warnings and infos on {len(items)} right queries:", ", ".join(f"{c} {100 * n / len(items):.2f} %" for c, n in codes.most_common()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--psql")
    asked = parser.parse_args()
    for need in (DATA, BINARY):
        if not os.path.exists(need):
            sys.exit(f"{os.path.relpath(need, ROOT)} is not there: nothing was measured")
    sqlite()
    postgres(asked.psql)
    warnings()


if __name__ == "__main__":
    main()
