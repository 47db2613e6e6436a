#!/usr/bin/env python3
"""Counts, rule by rule, how often the fixes of `querymend fix` are correct, and writes docs/measurements/repair-by-rule.md.

    cargo build --release && python3 scripts/repair_table.py [wrong.jsonl]      (QUERYMEND_BIN: another build)

The external scorer makes the mutants and compares rows, so that this table and its totals cannot drift apart. With a file name,
every wrong claim is written there, one JSON object per line.
"""
import collections, importlib.util, json, os, subprocess, sys
from pathlib import Path

import repair_sets

ROOT = Path(__file__).resolve().parent.parent
SCORER, DATA, BINARY = "../shared/tools/score_repair.py", "../shared/data", os.environ.get("QUERYMEND_BIN") or "target/release/querymend"
PAGE = "docs/measurements/repair-by-rule.md"
# Minimum share of correct repairs for a fix that is called safe.
WANTED = 0.95

TOP = """# How often is the fix of each rule correct?

Safe fixes are correct on at least 95 % of the mutants, unless marked otherwise below. `scripts/repair_table.py`
writes this page; totals and their discussion are in [repair.md](repair.md), the meaning of each status in
[design/repair.md](../design/repair.md).

```sh
cargo build --release
python3 scripts/repair_table.py
```

It needs the [evaluation data](README.md#evaluation-data); without it the script reports that and changes nothing.

A repair is correct if its rows equal those of the gold query as a multiset: decimals to six digits, and the order of
columns counts. Four sets are repaired without a model:

- **mutants**: correct queries, broken on purpose with one error each, of the kinds that models make (a lost letter, a
  wrong alias, a dropped join, prose around the query). The intent is known, even if the broken query no longer shows
  it.
- **failures_sqlite**: queries of real models that SQLite rejects. Many are wrong beyond the reported error, so a fix
  can be right and the rows still wrong: a lower bound.
- **other_databases**: mutants of Spider's training questions, on 137 databases that no rule was developed on. A rule
  that failed here was changed, so this set is not unseen either.
- **other_dialects**: defog's gold queries for PostgreSQL, MySQL, BigQuery, SQL Server and Snowflake that SQLite
  rejects. The reference is defog's own query for SQLite; where it asks for another shape (`'2023-01'` for a month
  that is a date elsewhere), a correct translation counts as wrong.

How to read the tables:

- Correctness can only be judged on databases with rows (*with rows*).
- A query with several fixes counts once for each rule, so that a rule may be charged with the error of another;
  *alone* counts queries that no other rule touched.
- Where a wrapper was removed and an error was fixed, only the first rule of the wrapper is named.
- Queries that were given up are not counted. They come back with SQL too: partially repaired, or with a guess that
  makes the query run, whose fix is `suggested`.
- All sets were available while rules were developed: expect less on unseen queries.
"""

def scorer():
    for needed in (SCORER, DATA, BINARY):
        if not (ROOT / needed).exists():
            sys.exit(f"{needed} is missing: nothing was measured, and {PAGE} is unchanged")
    spec = importlib.util.spec_from_file_location("score_repair", ROOT / SCORER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

def repair(records, data):
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
    answers, connections = repair(records, data), {}
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
{t['n']} queries: {t['mended']} claimed `mended` ({percent(t['mended'], t['n'])}), {t['gave_up']} given up, {t['refused']} refused, \
{t['untouched']} untouched, {t['missing']} without an answer.\n
- Claims on databases with rows: {t['rows']}; **{t['right']} correct, {t['rows'] - t['right']} wrong \
({percent(t['right'], t['rows'])} correct)**.
- Correct only in that both results are empty: {t['empty']}.
- Claims with safe fixes only: {t['safe_right']} of {t['safe_rows']} correct.
- Given up, but running by a guess: {t['guessed']} ({t['guessed_rows']} on databases with rows, {t['guessed_right']} correct).\n
| rule | applicability | applied | with rows | correct | wrong | share correct | alone: correct of | |
|---|---|---:|---:|---:|---:|---:|---:|---|\n"""
    for (code, sure), c in sorted(rules.items(), key=lambda x: (-x[1]["claimed"], x[0])):
        mark = f"**UNDER {100 * WANTED:.0f} %**" if too_low(name, sure, c) else ""
        out += (f"| {code} | {sure} | {c['claimed']} | {c['rows']} | {c['right']} | {c['rows'] - c['right']} | "
                f"{percent(c['right'], c['rows'])} | {c['alone_right']} of {c['alone_rows']} | {mark} |\n")
    return out

score, wrong_claims = scorer(), []
sets = {name: measure(name, score, wrong_claims) for name in ("mutants", "failures_sqlite", "other_databases", "other_dialects")}
low = [f"`{code}` ({c['right']} of {c['rows']})" for name in sets for (code, sure), c in sets[name][1].items() if too_low(name, sure, c)]
verdict = f"\nSafe fixes that are correct on less than {100 * WANTED:.0f} % of the mutants: {', '.join(sorted(low)) or 'none'}.\n"
page = TOP + verdict + "".join(table(name, *found) for name, found in sets.items())
(ROOT / PAGE).write_text(page)
if sys.argv[1:]:
    Path(sys.argv[1]).write_text("".join(json.dumps(w) + "\n" for w in wrong_claims))
print(page)
