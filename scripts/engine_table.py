#!/usr/bin/env python3
"""Repairs predictions that PostgreSQL rejected and plans them again; compares gold answers with those of psql and mariadb.

    scripts/engines.sh up postgres mysql
    scripts/engine_table.py [--only postgres|mysql] [--bin target/release/querymend] [--data DIR]

Creates the databases on the server of scripts/engines.sh; they are deleted with it. The evaluation data is described in
docs/measurements/README.md; docs/measurements/engines.md has the figures.
"""

import argparse, collections, csv, io, json, os, re, sqlite3, subprocess, sys
from xml.etree import ElementTree

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
    print("failures_postgres, repaired with the database as oracle:")
    print("  planned without error", share("planned", "all"))
    print("  reported as `mended`", share("claimed", "all"), "- of these rejected:", counts["claimed, refused"])
    print("  right, of those on rows", share("right", "with rows"), "- of those reported as `mended`", share("claimed, right", "claimed with rows"))


def gold(text):
    """Returns the first query, with all optional columns."""
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


class MariaDb:
    """Creates the tables of PostgreSQL from their SQLite form. Names are spelled as in PostgreSQL's
    dump, and databases as in the queries: here the case matters.
    """

    KINDS = {"INTEGER": "BIGINT", "REAL": "DOUBLE", "TIMESTAMP": "DATETIME", "DATE": "DATE", "BOOLEAN": "BOOLEAN"}

    def __init__(self):
        self.port = kept("mysql.port")

    def client(self, database, *arguments, text=None):
        command = ["mariadb", "--no-defaults", "--default-character-set=utf8mb4", "-h127.0.0.1", "-P" + self.port, "-uowner", "-powner"]
        return subprocess.run(command + list(arguments) + [database], input=text, capture_output=True, text=True)

    def make(self, database, file, dump):
        with open(dump) as opened:
            names = {name.lower(): name for name in re.findall(r"CREATE TABLE (?:public\.)?\"?(\w+)", opened.read())}
        script = [f"CREATE OR REPLACE DATABASE `{database}` CHARACTER SET utf8mb4; USE `{database}`; SET sql_mode = '';"]
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as source:
            for (table,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                described = source.execute(f'PRAGMA table_info("{table}")').fetchall()
                columns = [(row[1], row[2].upper()) for row in described]
                # Functionally dependent columns need not be in GROUP BY.
                key = [row[1] for row in sorted(described, key=lambda row: row[5]) if row[5]]
                target = names.get(table.lower(), table)
                kinds = ", ".join(f"`{name}` {self.KINDS.get(kind.split('(')[0], 'DECIMAL(20, 4)' if kind.startswith('NUM') else 'TEXT')}" for name, kind in columns)
                whole = all(kind.startswith("INT") for name, kind in columns if name in key)
                script.append(f"CREATE TABLE `{target}` ({kinds}{', PRIMARY KEY (' + ', '.join(f'`{name}`' for name in key) + ')' if key and whole else ''});")
                for row in source.execute(f'SELECT * FROM "{table}"'):
                    script.append(f"INSERT INTO `{target}` VALUES ({', '.join(map(self.literal, row))});")
        made = self.client("mysql", text="\n".join(script))
        if made.returncode:
            sys.exit(f"{database}: {made.stderr[:300]}")

    def literal(self, value):
        if value is None:
            return "NULL"
        return str(value) if isinstance(value, (int, float)) else "'" + str(value).replace("\\", "\\\\").replace("'", "''") + "'"

    def rows(self, database, sql):
        """Returns None on an error; distinguishes NULL from an empty string."""
        answer = self.client(database, "-X", "--init-command=SET time_zone = '+00:00', max_statement_time = 30", "-e", sql)
        self.said = answer.stderr
        if answer.returncode:
            return None
        nil = "{http://www.w3.org/2001/XMLSchema-instance}nil"
        cell = lambda field: None if field.get(nil) == "true" else field.text or ""
        result = ElementTree.fromstring(answer.stdout[answer.stdout.index("<?xml"):]) if "<?xml" in answer.stdout else []
        return [tuple(cell(field) for field in row) for row in result]


def mysql_answers(asked):
    server, counts, made = MariaDb(), collections.Counter(), set()
    for name in ["questions_gen_mysql", "instruct_basic_mysql", "instruct_advanced_mysql"]:
        with open(f"{asked.data}/defog/questions/{name}.csv") as file:
            questions = list(csv.DictReader(file))
        for question in questions:
            database = question["db_name"]
            if database not in made:
                made.add(database)
                server.make(database, f"{asked.data}/defog/sqlite/{question['db_name']}.sqlite", f"{asked.data}/defog/sql_dumps/{question['db_name']}.sql")
            sql = gold(question["query"])
            theirs = server.rows(database, sql)
            address = f"mysql://owner:owner@127.0.0.1:{server.port}/{database}"
            ours = subprocess.run([asked.bin, "run", "--db", address, "--format", "json", "--sql", sql], capture_output=True, text=True)
            counts["all"] += 1
            if theirs is None or ours.returncode:
                outcome = "refused by both" if theirs is None and ours.returncode else "refused by the client alone" if theirs is None else "refused by us alone"
                counts[outcome] += 1
                counts.update(f"error {code}" for code in re.findall(r"^ERROR (\d+)", server.said, re.M))
                if outcome != "refused by both":
                    print(f"  {outcome}: {database}: {sql[:200]}\n    {ours.stderr.strip()[:300]}")
                continue
            found = [tuple(row) for row in json.loads(ours.stdout)["rows"]]
            order = lambda rows: sorted(rows, key=repr)
            if order(map(written, theirs)) == order(map(written, found)):
                counts["the same"] += 1
            elif order(map(rounded, theirs)) == order(map(rounded, found)):
                counts["the same, floats written otherwise"] += 1
            else:
                counts["different"] += 1
                print(f"  different: {database}: {sql[:300]}\n    mariadb: {theirs[:5]!r}\n    ours: {found[:5]!r}")
    print("defog's gold queries for MySQL, beside mariadb:", dict(counts))


def written(row):
    """Returns the cells as text; NULL stays None."""
    return tuple(None if cell is None else str(int(cell)) if isinstance(cell, bool) else str(cell) for cell in row)


def rounded(row):
    def one(cell):
        try:
            return f"{float(cell):.12g}"
        except ValueError:
            return cell
    return tuple(None if cell is None else one(cell) for cell in written(row))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "target/release/querymend"))
    parser.add_argument("--data", default=os.path.join(ROOT, "../shared/data"))
    parser.add_argument("--misses", type=argparse.FileType("w"), help="write queries that are still rejected to this file")
    parser.add_argument("--only", choices=["postgres", "mysql"])
    asked = parser.parse_args()
    if asked.only != "mysql":
        server = Server()
        failures(asked, server)
        answers(asked, server)
    if asked.only != "postgres":
        mysql_answers(asked)


main()
