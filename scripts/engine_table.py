#!/usr/bin/env python3
"""What PostgreSQL says: predictions that it refused are mended and planned again, and gold answers are held against psql's own.

    scripts/engines.sh up postgres
    scripts/engine_table.py [--bin target/release/querymend] [--data ../shared/data]

The databases are made on the server of scripts/engines.sh, and are gone with it."""

import argparse, collections, csv, io, json, os, re, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STATE = os.path.join(ROOT, "target", "engines")


def kept(name):
    with open(os.path.join(STATE, name)) as file:
        return file.read().strip()


class Server:
    def __init__(self):
        self.port, self.bin = kept("postgres.port"), kept("postgres.bin")
        self.env = dict(os.environ, PGPASSWORD="querymend", PGOPTIONS="-c client_min_messages=error")

    def psql(self, database, *arguments, text=None):
        command = [self.bin + "/psql", "-q", "-X", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", self.port, "-U", "postgres", "-d", database]
        return subprocess.run(command + list(arguments), input=text, env=self.env, capture_output=True, text=True)

    def make(self, database, script):
        self.psql("postgres", "-c", f'DROP DATABASE IF EXISTS "{database}"')
        self.psql("postgres", "-c", f'CREATE DATABASE "{database}"')
        made = self.psql(database, text=script)
        if made.returncode:
            sys.exit(f"{database}: {made.stderr[:300]}")

    def address(self, database):
        return f"postgres://postgres:querymend@127.0.0.1:{self.port}/{database}"


def rows(server, database, sql, ordered=False):
    answer = server.psql(database, "--csv", "-t", "-c", "SET default_transaction_read_only = on", "-c", sql)
    if answer.returncode:
        return None
    found = [tuple(row) for row in csv.reader(io.StringIO(answer.stdout))]
    return found if ordered else sorted(found)


def failures(asked, server):
    with open(f"{asked.data}/predictions/failures_postgres.jsonl") as file:
        predictions = [json.loads(line) for line in file]
    for name in sorted({p["db_id"] for p in predictions}):
        with open(f"{asked.data}/bird/pg_schema/{name}.sql") as file:
            server.make(f"bird_{name}", file.read())
        folder = f"{asked.data}/bird/pg_data/{name}"
        for table in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            copied = server.psql(f"bird_{name}", "-c", f"\\copy \"{table[:-4]}\" from '{folder}/{table}' with (format csv, null '\\N')")
            if copied.returncode:
                sys.exit(copied.stderr)
    lines = "".join(
        json.dumps({"id": i, "sql": p["pred"], "db": server.address("bird_" + p["db_id"]), "dialect": "postgres",
                    "question": p["question"], "evidence": p.get("evidence")}) + "\n"
        for i, p in enumerate(predictions))
    mended = subprocess.run([asked.bin, "fix", "--batch", "-"], input=lines, capture_output=True, text=True)
    answers = [json.loads(line) for line in mended.stdout.splitlines()]
    if len(answers) != len(predictions):
        sys.exit(mended.stderr[-500:])
    counts = collections.Counter()
    for prediction, answer in zip(predictions, answers):
        database = "bird_" + prediction["db_id"]
        planned = server.psql(database, "-c", "EXPLAIN " + answer["sql"]).returncode == 0
        claimed = answer["status"] == "mended"
        counts["all"] += 1
        counts["planned"] += planned
        counts["claimed"] += claimed
        counts["claimed, refused"] += claimed and not planned
        if os.path.isdir(f"{asked.data}/bird/pg_data/{prediction['db_id']}"):
            gold = rows(server, database, prediction["gold"])
            if gold is not None:
                right = planned and rows(server, database, answer["sql"]) == gold
                counts["with rows"] += 1
                counts["right"] += right
                counts["claimed with rows"] += claimed
                counts["claimed, right"] += claimed and right
        if asked.misses and not planned:
            print(json.dumps({"db": database, "pred": prediction["pred"], "said": prediction["error"], "sql": answer["sql"], "gold": prediction["gold"],
                              "now": server.psql(database, "-c", "EXPLAIN " + answer["sql"]).stderr.strip()}), file=asked.misses)
    share = lambda part, whole: f"{counts[part]} of {counts[whole]} ({100 * counts[part] / max(1, counts[whole]):.1f} %)"
    print("failures_postgres, mended with the database as judge:")
    print("  planned without error", share("planned", "all"))
    print("  said to be mended", share("claimed", "all"), "- of these refused:", counts["claimed, refused"])
    print("  right, of those on rows", share("right", "with rows"), "- of those said to be mended", share("claimed, right", "claimed with rows"))


def gold(text):
    """The first of the queries, with all of the columns that may be left out."""
    query = re.split(r";", text)[0]
    columns = re.findall(r"\{([^{}]+)\}", query)
    return re.sub(r"\{([^{}]*)\}", lambda m: m.group(1) or (columns[0] if columns else ""), query)


def answers(asked, server):
    counts = collections.Counter()
    made = set()
    for name in ["questions_gen_postgres", "instruct_basic_postgres", "instruct_advanced_postgres"]:
        with open(f"{asked.data}/defog/questions/{name}.csv") as file:
            questions = list(csv.DictReader(file))
        for question in questions:
            database = question["db_name"]
            if database not in made:
                made.add(database)
                with open(f"{asked.data}/defog/sql_dumps/{database}.sql") as file:
                    server.make(f"defog_{database}", file.read())
            sql = gold(question["query"])
            theirs = server.psql(f"defog_{database}", "--csv", "-c", "SET TIME ZONE 'UTC'", "-c", sql)
            ours = subprocess.run([asked.bin, "run", "--db", server.address(f"defog_{database}"), "--format", "csv", "--sql", sql], capture_output=True, text=True)
            counts["all"] += 1
            if theirs.returncode:
                counts["refused by psql"] += 1
                continue
            read = lambda text: [tuple(row) for row in csv.reader(io.StringIO(text))]
            if ours.returncode:
                counts["refused by us"] += 1
                print(f"  refused: {database}: {sql[:200]}\n    {ours.stderr.strip()[:300]}")
            elif read(theirs.stdout) == read(ours.stdout) or sorted(read(theirs.stdout)) == sorted(read(ours.stdout)):
                counts["the same"] += 1
            elif floats(read(theirs.stdout)) == floats(read(ours.stdout)):
                counts["the same, floats, truths and zones written otherwise"] += 1
            else:
                counts["different"] += 1
                print(f"  different: {database}: {sql[:300]}\n    psql: {theirs.stdout[:300]!r}\n    ours: {ours.stdout[:300]!r}")
    print("defog's gold queries, beside psql:", dict(counts))


def floats(table):
    def one(cell):
        truth = {"t": "true", "f": "false"}.get(cell, cell)
        truth = re.sub(r"(:\d\d(?:\.\d+)?[+-]\d\d)$", r"\1:00", truth)
        try:
            return str(float(truth))
        except ValueError:
            return truth
    return sorted(tuple(one(cell) for cell in row) for row in table)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "target/release/querymend"))
    parser.add_argument("--data", default=os.path.join(ROOT, "../shared/data"))
    parser.add_argument("--misses", type=argparse.FileType("w"), help="writes what is still refused to a file")
    asked = parser.parse_args()
    server = Server()
    failures(asked, server)
    answers(asked, server)


main()
