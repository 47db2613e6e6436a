#!/usr/bin/env python3
"""Reviews real queries and lets sqlglot qualify the same ones, in the same run.

    crates/sql/benches/review.py            installs sqlglot[c] into target/bench

The queries are those of Spider and TPC-DS in ../shared/data beside the checkout (or QUERYMEND_DATA, its path); where there is none, those of
the rules' pages.

Querymend: parse, bind every name, run every rule. sqlglot (compiled): parse and optimizer.qualify. Per query the best
of seven (sqlglot: three) runs; shown are the medians over the queries and their ratio.
"""
import csv, glob, json, os, re, sqlite3, subprocess, tempfile, venv

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
DATA = os.environ.get("QUERYMEND_DATA") or os.path.join(ROOT, "..", "shared", "data")
WORK = os.path.join(os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target"), "bench")

PEER = r"""
import json, sys, time
import sqlglot
from sqlglot.optimizer.qualify import qualify
out = []
for s in json.load(open(sys.argv[1])):
    schemas = []
    for ddl in s["schemas"]:
        d = {}
        for c in sqlglot.parse(ddl, read="sqlite"):
            if c is not None and c.key == "create":
                t = c.this.this.name
                d[t] = {e.name: (e.kind.sql() if e.kind else "TEXT") for e in c.this.expressions if e.key == "columndef"}
        schemas.append(sqlglot.schema.MappingSchema(d, dialect="sqlite"))
    times, failed = [], 0
    for i, q in s["queries"]:
        best = None
        for _ in range(3):
            t = time.perf_counter()
            try:
                qualify(sqlglot.parse_one(q, read="sqlite"), schema=schemas[i], dialect="sqlite")
            except Exception:
                failed += 1
                best = None
                break
            t = time.perf_counter() - t
            best = t if best is None else min(best, t)
        if best is not None:
            times.append(best)
    times.sort()
    out.append({"set": s["name"], "median_us": times[len(times) // 2] * 1e6, "p95_us": times[int(len(times) * .95)] * 1e6, "failed": failed})
print(json.dumps({"version": sqlglot.__version__, "sets": out}))
"""


def spider():
    schemas, index, queries = [], {}, []
    with open(os.path.join(DATA, "spider", "train_questions.csv")) as f:
        for row in csv.DictReader(f):
            db = os.path.join(DATA, "spider", "database", row["database"], row["database"] + ".sqlite")
            if not os.path.exists(db):
                continue
            if db not in index:
                with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as c:
                    tables = c.execute("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'").fetchall()
                    ddl = []
                    for (t,) in tables:
                        columns = c.execute(f'pragma table_info("{t}")').fetchall()
                        ddl.append(f'CREATE TABLE "{t}" (' + ", ".join(f'"{x[1]}" {re.sub(r"[^a-zA-Z]", "", x[2]) or "TEXT"}' for x in columns) + ")")
                index[db] = len(schemas)
                schemas.append(";\n".join(ddl))
            queries.append((index[db], row["sql"]))
    return {"name": "spider", "schemas": schemas, "queries": queries[::7]}


def tpcds():
    ddl = open(os.path.join(os.path.dirname(__file__), "tpcds.sql")).read()
    text = open(os.path.join(DATA, "parser_corpora", "sqlglot", "optimizer", "tpc-ds", "tpc-ds.sql")).read()
    queries = []
    for part in re.split(r"-{10,}\n-- TPC-DS \d+\n-{10,}\n", text)[1:]:
        sql = "\n".join(l for l in part.split(";")[0].splitlines() if not l.startswith("#"))
        queries.append((0, sql.strip()))
    return {"name": "tpc-ds", "schemas": [ddl], "queries": queries}


def pages():
    """The examples of the rules' pages: small, and half of them wrong."""
    ddl = open(os.path.join(ROOT, "crates", "sql", "tests", "pages", "shop.sql")).read()
    texts = [open(page).read() for page in sorted(glob.glob(os.path.join(ROOT, "crates", "sql", "src", "rules", "*", "*.md")))]
    return {"name": "pages", "schemas": [ddl], "queries": [(0, sql.strip()) for text in texts for sql in re.findall(r"^```sql\n(.*?)^```$", text, re.M | re.S)]}


def measure(bench, python, other=None):
    """For each set what the bench says of it, what sqlglot does and what another peer does that prints a line of JSON for each; and
    sqlglot's version."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "queries.json")
        with open(path, "w") as file:
            json.dump([spider(), tpcds()] if os.path.isdir(DATA) else [pages()], file)
        lines = lambda command: [json.loads(l) for l in subprocess.run([*command, path], cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines() if l.startswith("{")]
        ours = lines(bench)
        others = lines([other]) if other else [None] * len(ours)
        peer = json.loads(subprocess.run([python, "-c", PEER, path], check=True, capture_output=True, text=True).stdout)
    return list(zip(ours, peer["sets"], others)), peer["version"]


def main():
    os.makedirs(WORK, exist_ok=True)
    python = os.path.join(WORK, "venv", "bin", "python")
    if not os.path.exists(python):
        venv.create(os.path.join(WORK, "venv"), with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "sqlglot[c]"], check=True)
    sets, version = measure(["cargo", "bench", "-q", "-p", "querymend-sql", "--bench", "review", "--"], python)
    print(f"| set | queries | querymend median (p95) | the parser alone | SQLite's prepare | sqlglot {version} median (p95) | times faster |\n|---|---|---|---|---|---|---|")
    for a, b, _ in sets:
        print(f"| {a['set']} | {a['queries']} | {a['median_us']:.1f} µs ({a['p95_us']:.1f}) | {a['parser_median_us']:.1f} µs | {a['prepare_median_us']:.1f} µs ({a['prepared']} of them) "
              f"| {b['median_us']:.0f} µs ({b['p95_us']:.0f}), {b['failed']} failed | {b['median_us'] / a['median_us']:.0f} |")
    print(f"\nqueries with an error finding: {', '.join(str(a['with_errors']) + ' of ' + a['set'] for a, *_ in sets)}")


if __name__ == "__main__":
    main()
