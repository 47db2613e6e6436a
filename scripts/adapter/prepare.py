#!/usr/bin/env python3
"""Generates the chats that the LoRA adapter is trained on, with Querymend's own prompts.

    prepare.py --bin querymend --spider DIR --out DIR

The Spider folder contains train_questions.csv (database, question, sql), database/NAME/NAME.sqlite and, for scoring,
questions_dev.json. Writes train.json (the last message of each chat is the target) and eval.json (question, gold query,
messages).

Each pass contains every training question once, with data augmentation: tables in another order, few-shot examples of the
same database (as memory provides them), another dialect's name if the query is valid there too, or a conversation in which
a failing query is sent back, sometimes with advice.
"""
import argparse
import csv
import json
import os
import random
import re
import sqlite3
import subprocess
import time

SYSTEM = "You translate questions into one {} query. Answer with SQL only."
OTHERS = ["PostgreSQL", "MySQL", "Trino", "Spark SQL"]
ONLY_SQLITE = re.compile(r"`|\|\||\b(strftime|julianday|datetime|date|time|instr|substr|ifnull|iif|total|group_concat|glob)\b\s*\(?", re.I)
TOKEN = re.compile(r"'(?:[^']|'')*'|`[^`]*`|\"[^\"]*\"|[A-Za-z_][A-Za-z0-9_]*|\d+(?:\.\d+)?|<>|<=|>=|!=|\|\||\s+|.", re.S)
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")
RESERVED = set("""add all alter and as asc between by case check column commit create cross default delete desc distinct drop else
end except exists false for foreign from full group having if in index inner insert intersect into is join key left like limit
natural not null offset on or order outer over primary references right select set table then transaction to true union unique
update using values view when where with""".split())


def args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--spider", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--passes", type=int, default=3, help="number of passes over the questions, each with other augmentations")
    return parser.parse_args()


class Database:
    """Returns a database as rendered in the prompt."""

    def __init__(self, binary, path):
        self.path = path
        ddl = subprocess.run([binary, "schema", "--db", path, "--format", "ddl"], capture_output=True, text=True, check=True).stdout
        self.tables = re.findall(r"(?:-- a view\n)?CREATE TABLE .*?\n\);\n", ddl, re.S)
        self.connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        self.connection.text_factory = lambda data: data.decode("utf-8", "replace")
        self.columns = {}
        self.spelling = {}
        for (table,) in self.connection.execute("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'").fetchall():
            self.spelling.setdefault(table.lower(), table)
            for row in self.connection.execute(f'pragma table_info("{table}")').fetchall():
                self.spelling.setdefault(row[1].lower(), row[1])
                self.columns.setdefault(table, []).append(row[1])

    def rows(self, sql):
        end = time.monotonic() + 1
        self.connection.set_progress_handler(lambda: time.monotonic() > end, 10000)
        try:
            return self.connection.execute(sql).fetchmany(3), None
        except sqlite3.Error as error:
            return None, str(error)


def name(word):
    return word if PLAIN.match(word) and word.lower() not in RESERVED else f"`{word}`"


def tidy(sql, spelling):
    """Normalizes identifiers to the schema's spelling and quotes them only where required."""
    out = []
    for token in TOKEN.findall(sql.strip().rstrip(";")):
        if token.startswith("`"):
            word = spelling.get(token[1:-1].lower(), token[1:-1])
            out.append(name(word))
        elif token.startswith('"') and len(token) > 1:
            # SQLite treats an unknown double-quoted identifier as a string literal. No other
            # dialect does.
            word = token[1:-1]
            out.append(name(spelling[word.lower()]) if word.lower() in spelling else "'" + word.replace("'", "''") + "'")
        elif token.isspace():
            out.append(" ")
        else:
            out.append(token)
    return re.sub(r"\bt(\d)\b", r"T\1", "".join(out)).strip()


def broken(sql, database, rng):
    """Returns the query with one typical error, if that makes it fail."""
    tokens = TOKEN.findall(sql)
    places = [i for i, t in enumerate(tokens) if PLAIN.match(t) and t.lower() in database.spelling]
    aliases = [i for i, t in enumerate(tokens) if re.fullmatch(r"T\d", t) and i + 1 < len(tokens) and tokens[i + 1] == "."]
    kinds = ["spell", "other"] + (["alias"] * 2 if len({tokens[i] for i in aliases}) > 1 else [])
    for _ in range(4):
        changed = list(tokens)
        kind = rng.choice(kinds)
        if kind == "alias":
            i = rng.choice(aliases)
            changed[i] = rng.choice([a for a in {tokens[j] for j in aliases} if a != tokens[i]])
        elif places:
            i = rng.choice(places)
            word = tokens[i]
            if kind == "spell":
                changed[i] = rng.choice([word.replace("_", ""), word + "s", word.rstrip("s"), word + "_id", word + "_name"])
            else:
                table = rng.choice(list(database.columns))
                changed[i] = rng.choice(database.columns[table])
        attempt = "".join(changed)
        rows, error = database.rows(attempt)
        if rows is None and error != "interrupted":
            return attempt, error
    return None


def portable(sql):
    """Returns whether the query is portable: no SQLite-specific syntax, and all non-aggregated columns
    are grouped.
    """
    if ONLY_SQLITE.search(sql):
        return False
    groups = re.findall(r"\bSELECT (.*?) FROM .*?GROUP BY (.*?)(?: HAVING| ORDER| LIMIT| EXCEPT| UNION| INTERSECT|\)|$)", sql, re.I | re.S)
    if len(groups) != len(re.findall(r"\bGROUP BY\b", sql, re.I)):
        return False
    words = lambda text: {part.strip().lower() for part in text.split(",")}
    return all(part in words(by) for selected, by in groups for part in words(selected) if "(" not in part)


def advice(faults, given):
    """Returns the advice of Querymend's rules for each failing query; None for uncommon errors."""
    lines = [json.dumps({"id": i, "db": os.path.join("database", db, f"{db}.sqlite"), "sql": sql}) for i, (db, sql) in enumerate(faults)]
    done = subprocess.run([given.bin, "check", "--batch", "-", "--root", given.spider], input="\n".join(lines) + "\n",
                          capture_output=True, text=True, check=True)
    out = [None] * len(faults)
    for line in done.stdout.splitlines():
        answer = json.loads(line)
        errors = [f for f in answer.get("findings", []) if f["severity"] == "error"]
        if len(errors) != 1:
            continue
        said, instead = errors[0]["message"], errors[0]["suggestion"]
        if found := re.fullmatch(r"`.*` has no column `(.*)` \(`(.*)` has it\)", said):
            out[answer["id"]] = f"{found[1]} is a column of {found[2]}: write {instead}."
        elif found := re.fullmatch(r"`(.*)` has no column `(.*)` \(did you mean `(.*)`\?\)", said):
            out[answer["id"]] = f"{found[2]} is not a column of {found[1]}; the nearest is {found[3]}."
        elif found := re.fullmatch(r"no table of the query has a column `(.*)` \(did you mean `(.*)`\?\)", said):
            out[answer["id"]] = f"There is no column {found[1]}; the nearest is {found[2]}."
        elif found := re.fullmatch(r"there is no table `(.*)` \(did you mean `(.*)`\?\)", said):
            out[answer["id"]] = f"There is no table {found[1]}; the nearest is {instead}."
    return out


def prompt(database, question, rng=None, dialect="SQLite", examples=()):
    tables = list(database.tables)
    if rng and rng.random() < 0.2:
        rng.shuffle(tables)
    text = "".join(tables).strip()
    before = "".join(f"Question: {asked}\n{sql}\n\n" for asked, sql in examples)
    return [{"role": "system", "content": SYSTEM.format(dialect)}, {"role": "user", "content": f"{text}\n\n{before}Question: {question}"}]


def main():
    given = args()
    rng = random.Random(7)
    os.makedirs(given.out, exist_ok=True)
    known = {}

    def database(db):
        if db not in known:
            known[db] = Database(given.bin, os.path.join(given.spider, "database", db, f"{db}.sqlite"))
        return known[db]

    with open(os.path.join(given.spider, "train_questions.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    asked, refused = {}, 0
    for row in rows:
        db = database(row["database"])
        sql = tidy(row["sql"], db.spelling)
        if db.rows(sql)[0] is None:
            refused += 1
        else:
            asked.setdefault(row["database"], []).append((row["question"], sql))

    train, faults, counts = [], [], {"with examples": 0, "other dialects": 0, "with advice": 0}
    for name_of, pairs in asked.items():
        db = database(name_of)
        for question, sql in pairs:
            others = [pair for pair in pairs if pair[0] != question]
            for take in range(given.passes):
                examples = rng.sample(others, min(len(others), rng.randint(1, 3))) if rng.random() < 0.15 else []
                dialect = rng.choice(OTHERS) if rng.random() < 0.1 and portable(sql) else "SQLite"
                counts["with examples"] += bool(examples)
                counts["other dialects"] += dialect != "SQLite"
                chat = prompt(db, question, rng, dialect, examples)
                fault = broken(sql, db, rng) if dialect == "SQLite" and rng.random() < 0.12 else None
                if fault:
                    chat += [{"role": "assistant", "content": fault[0]}, {"role": "user", "content": f"The query failed: {fault[1]}.\n"}]
                    faults.append((name_of, fault[0], chat[-1]))
                train.append({"db": name_of, "take": take, "gold": sql, "messages": chat + [{"role": "assistant", "content": sql}]})
    advices = advice([(db, sql) for db, sql, _ in faults], given)
    for (_, _, message), line in zip(faults, advices):
        if line and rng.random() < 0.5:
            message["content"] += f"{line}\n"
            counts["with advice"] += 1
        message["content"] += "Answer with the corrected query only."
    json.dump(train, open(os.path.join(given.out, "train.json"), "w"))
    evaluation = []
    for question in json.load(open(os.path.join(given.spider, "questions_dev.json"))):
        db = database(question["db_id"])
        evaluation.append({"db": question["db_id"], "gold": question["gold"], "messages": prompt(db, question["question"])})
    json.dump(evaluation, open(os.path.join(given.out, "eval.json"), "w"))
    print(json.dumps({"train": len(train), "corrections": len(faults), **counts, "refused": refused, "eval": len(evaluation)}))


if __name__ == "__main__":
    main()
