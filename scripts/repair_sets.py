"""Sets of failing queries with known answers for repair_table.py, generated from questions with gold queries, so that rules are
also measured on databases that were not used to develop them.

`other_databases` mutates the gold queries of Spider's training questions with the scorer's mutations. `other_dialects` takes
defog's gold queries for PostgreSQL, MySQL, BigQuery, SQL Server and Snowflake that SQLite rejects; its gold query for SQLite
provides the expected result.
"""
import csv, json, random, re
from pathlib import Path

#: Maximum number of gold queries, in a deterministic order.
MOST = 4000
DIALECTS = ("postgres", "mysql", "bigquery", "tsql", "snowflake")


def other_databases(score, data):
    used = set()
    for name in ("controls_correct", "failures_sqlite"):
        used |= {json.loads(line)["db"] for line in open(f"{data}/predictions/{name}.jsonl")}
    rows = list(csv.DictReader(open(f"{data}/spider/train_questions.csv")))
    random.Random(3).shuffle(rows)
    controls, seen, connections = [], set(), {}
    for row in rows:
        db = f"spider/database/{row['database']}/{row['database']}.sqlite"
        # The training queries quote every name with backticks, which no model does.
        sql = re.sub(r"`(\w+)`", r"\1", row["sql"])
        if db in used or (db, sql) in seen or not Path(data, db).exists():
            continue
        seen.add((db, sql))
        connection = connections.setdefault(db, score.connect(f"{data}/{db}"))
        if score.rows_of(connection, sql, 3)[0] and len(controls) < MOST:
            controls.append({"db": db, "question": row["question"], "pred": sql, "gold": sql})
    return score.mutants(controls, data)


def other_dialects(score, data):
    def queries(kind, dialect):
        path = Path(data, "defog/questions", f"{kind}_{dialect}.csv")
        return {(r["db_name"], r["question"]): r["query"] for r in csv.DictReader(open(path))} if path.exists() else {}

    def first(query):
        return re.sub(r"\{([^}]*)\}", r"\1", query).split(";")[0].strip()

    records, seen, connections = [], set(), {}
    for kind in ("questions_gen", "instruct_basic", "instruct_advanced"):
        gold = queries(kind, "sqlite")
        for dialect in DIALECTS:
            for key, query in queries(kind, dialect).items():
                # `{}` marks alternatives in the gold query.
                if key not in gold or "{}" in query or (key[0], first(query)) in seen:
                    continue
                db = f"defog/sqlite/{key[0]}.sqlite"
                connection = connections.setdefault(db, score.connect(f"{data}/{db}"))
                right, error = score.rows_of(connection, first(gold[key]), 5)
                refused = score.rows_of(connection, first(query), 5)[1]
                if error is None and right and refused is not None:
                    seen.add((key[0], first(query)))
                    records.append({"db": db, "question": key[1], "pred": first(query), "gold": first(gold[key]), "error": refused, "dialect": dialect})
    return records
