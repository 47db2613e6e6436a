#!/usr/bin/env python3
"""Counts, rule by rule, how often the fixes of `querymend fix` give the right rows, and writes docs/repair.md.

    cargo build --release && python3 scripts/repair_table.py [wrong.jsonl]      (QUERYMEND_BIN: another build)

The scorer beside the checkout makes the mutants and decides what is right, so that this table and its totals cannot drift
apart. With a file's name every wrong claim is written there, a line of JSON each.
"""
import collections, importlib.util, json, os, subprocess, sys
from pathlib import Path

import repair_sets

ROOT = Path(__file__).resolve().parent.parent
SCORER, DATA, BINARY = "../shared/tools/score_repair.py", "../shared/data", os.environ.get("QUERYMEND_BIN") or "target/release/querymend"
# What a fix called safe must reach where the right answer is known.
WANTED = 0.95

TOP = """# How often a fix is right

`querymend fix` claims a query `mended` when no error is left in it and the database would run it. That is not yet the right
answer, so what comes back is run and its rows are held against those of the right query: equal as a multiset, decimals to six
digits, the order of the columns counts. Four sets are mended without a model:

- **mutants**: right queries that were broken on purpose, one mistake each, in ways models break them (a letter lost, a wrong
  alias, a dropped join, prose around the query). What was meant is known, even where the broken query no longer says it.
- **failures_sqlite**: queries of real models that SQLite rejects. Many are wrong beyond what made them fail, so a fix can be
  right and the rows still wrong: read these figures as a lower bound.
- **other_databases**: mutants again, of Spider's training questions, on 137 databases that none of the rules was written on (a rule
  that was found wanting here was changed, so they are no longer unseen either).
- **other_dialects**: gold queries of defog for PostgreSQL, MySQL, BigQuery, SQL Server and Snowflake that SQLite refuses. defog's own
  query for SQLite says what was meant; where that asks for another shape (`'2023-01'` for a month that elsewhere is a date), a
  right translation counts as wrong.

Only databases with rows can tell right from wrong. A query with several fixes counts once for each rule, so a rule may carry
the blame of its neighbour; *alone* counts those that no other rule touched. Where wrapping was removed and an error mended,
only the first rule of the wrapping is named. All sets lie open while rules are written: expect less on unseen queries.

A query that is *given up* still comes back with SQL: as far as it was mended, or, where a guess makes the database run it, with
that guess, whose fix is `suggested`. Given up means that nothing is claimed: `success` is false, `corrected_sql` is empty and the
SQL stands in `best_attempt` (in batches in `sql`), to be held against the question by a person or a model. No rule below counts
it. Only the figure *run* of failures_sqlite does, which says no more than that the database takes the text; how many of
those run by a guess, and how many of these happen to be right, stands with the set.
"""
BOTTOM = """
## How to reproduce

```sh
cargo build --release
python3 scripts/repair_table.py
```

Predictions and databases are expected in `../shared/data`, the scorer that makes the mutants and compares the rows in
`../shared/tools/score_repair.py`. Neither is part of this repository; without them the script says so and changes nothing.
"""

def scorer():
    for needed in (SCORER, DATA, BINARY):
        if not (ROOT / needed).exists():
            sys.exit(f"{needed} is absent, so nothing can be measured; docs/repair.md is left as it is.")
    spec = importlib.util.spec_from_file_location("score_repair", ROOT / SCORER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

def mend(records, data):
    asked = ("id", "db", "sql", "question", "evidence", "error")
    lines = [json.dumps({k: v for k, v in {**r, "id": i, "sql": r["pred"]}.items() if k in asked}) for i, r in enumerate(records)]
    done = subprocess.run([ROOT / BINARY, "fix", "--batch", "-", "--root", data], input="\n".join(lines) + "\n",
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"fix --batch exited {done.returncode}: {done.stderr[-2000:]}")
    return {d["id"]: d for d in map(json.loads, filter(str.strip, done.stdout.splitlines()))}

def measure(name, score, wrong_claims):
    """Totals of a set, and counts for each rule and applicability."""
    data = str((ROOT / DATA).resolve())
    if hasattr(repair_sets, name):
        records = getattr(repair_sets, name)(score, data)
    else:
        source = "controls_correct" if name == "mutants" else name
        records = map(json.loads, open(f"{data}/predictions/{source}.jsonl"))
        records = [r for r in records if Path(data, r["db"]).exists()]
    if name == "mutants":
        records = score.mutants(records, data)
    answers, connections = mend(records, data), {}
    total, rules = collections.Counter(n=len(records)), collections.defaultdict(collections.Counter)
    for i, record in enumerate(records):
        answer = answers.get(i, {"status": "missing"})
        total[answer["status"]] += 1
        if answer["status"] != "mended":
            if any(f["applicability"].lower() == "suggested" for f in answer.get("fixes", [])):
                total["guessed"] += 1
                if record.get("has_data", True):
                    connection = connections.setdefault(f"{data}/{record['db']}", score.connect(f"{data}/{record['db']}"))
                    got, gold = (score.rows_of(connection, sql)[0] for sql in (answer["sql"], record["gold"]))
                    total.update(guessed_rows=1, guessed_right=int(got is not None and got == gold))
            continue
        known = {}
        if record.get("has_data", True):
            path = f"{data}/{record['db']}"
            connection = connections.setdefault(path, score.connect(path))
            (got, error), (gold, gold_error) = (score.rows_of(connection, sql) for sql in (answer["sql"], record["gold"]))
            right = error is None and gold_error is None and got == gold
            known = {"rows": 1, "right": int(right), "empty": int(right and not gold)}
            if not right:
                wrong_claims.append({"set": name, **record, "answer": answer})
        total.update(known)
        if known and all(f["applicability"].lower() == "safe" for f in answer["fixes"]):
            total.update(safe_rows=1, safe_right=known["right"])
        fixes = {(f["code"], f["applicability"].lower()) for f in answer["fixes"]}
        for fix in fixes or {("(no fix)", "")}:
            alone = {f"alone_{k}": v for k, v in known.items()} if len(fixes) == 1 else {}
            rules[fix].update({"claimed": 1, **known, **alone})
    return total, rules

def percent(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "–"

def too_low(name, sure, c):
    return name in ("mutants", "other_databases") and sure == "safe" and c["right"] < WANTED * c["rows"]

def table(name, t, rules):
    out = f"""\n## {name}\n
{t['n']} queries: {t['mended']} claimed mended ({percent(t['mended'], t['n'])}), {t['gave_up']} given up, {t['refused']} refused, \
{t['untouched']} untouched, {t['missing']} without an answer. Of those given up {t['guessed']} run by a guess ({t['guessed_rows']} on databases with rows, {t['guessed_right']} right). {t['rows']} claims are on databases with rows: **{t['right']} right, \
{t['rows'] - t['right']} wrong ({percent(t['right'], t['rows'])} right)**; with Safe fixes only {t['safe_right']} of {t['safe_rows']} right. Right only in that both results are empty: {t['empty']}.\n
| rule | applicability | applied | with rows | right | wrong | right of those | alone: right of | |\n|---|---|---|---|---|---|---|---|---|\n"""
    for (code, sure), c in sorted(rules.items(), key=lambda x: (-x[1]["claimed"], x[0])):
        mark = f"**UNDER {100 * WANTED:.0f} %**" if too_low(name, sure, c) else ""
        out += (f"| {code} | {sure} | {c['claimed']} | {c['rows']} | {c['right']} | {c['rows'] - c['right']} | "
                f"{percent(c['right'], c['rows'])} | {c['alone_right']} of {c['alone_rows']} | {mark} |\n")
    return out

score, wrong_claims = scorer(), []
sets = {name: measure(name, score, wrong_claims) for name in ("mutants", "failures_sqlite", "other_databases", "other_dialects")}
low = [f"`{code}` ({c['right']} of {c['rows']})" for name in sets for (code, sure), c in sets[name][1].items() if too_low(name, sure, c)]
verdict = f"\nSafe fixes that are right in less than {100 * WANTED:.0f} % of the mutants, marked below: {', '.join(sorted(low)) or 'none'}.\n"
page = TOP + verdict + "".join(table(name, *found) for name, found in sets.items()) + BOTTOM
(ROOT / "docs" / "repair.md").write_text(page)
if sys.argv[1:]:
    Path(sys.argv[1]).write_text("".join(json.dumps(w) + "\n" for w in wrong_claims))
print(page)
