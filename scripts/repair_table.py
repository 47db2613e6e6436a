#!/usr/bin/env python3
"""Counts, rule by rule, how often the fixes of `querymend fix` give the right rows, and writes docs/repair.md.

    cargo build --release && python3 scripts/repair_table.py [--wrong wrong.jsonl]

Predictions, databases and the maker of mutants lie beside the checkout in ../shared; its scorer decides what is right, so
that this table and the scorer's totals cannot drift apart. `--wrong` also writes every wrong claim, a line of JSON each.
"""
import argparse, collections, importlib.util, json, subprocess, sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT / ".." / "shared"
BINARY = ROOT / "target" / "release" / "querymend"
# What a fix called safe must reach where the right answer is known.
WANTED = 0.95

TOP = """# How often a fix is right

`querymend fix` claims a query `mended` when no error is left in it and the database would run it. That is not yet the right
answer, so what comes back is run and its rows are held against those of the right query: equal as a multiset, decimals to six
digits, the order of the columns counts. Two sets are mended without a model:

- **mutants**: right queries that were broken on purpose, one mistake each, in ways models break them (a letter lost, a wrong
  alias, a dropped join, prose around the query). What was meant is known, so a wrong result is the fault of the fix.
- **failures_sqlite**: queries of real models that SQLite rejects. Many are wrong beyond what made them fail, so a fix can be
  right and the rows still wrong: read these figures as a lower bound.

Only databases with rows can tell right from wrong; *with rows* says how many did. A query with several fixes counts once
for each rule, so a rule may also carry the blame of its neighbour: *alone* counts the queries that no other rule touched.
An empty result that should be empty counts as right, although it proves little; the totals say how many there are.
"""

BOTTOM = """
## How to reproduce

```sh
cargo build --release
python3 scripts/repair_table.py
```

The material is not part of this repository: predictions and databases are expected in `../shared/data`, the scorer that
makes the mutants and compares rows in `../shared/tools/score_repair.py`. Without them the script says so and leaves this
page as it is. The scorer's own tables come from
`python3 ../shared/tools/score_repair.py --bin target/release/querymend --data ../shared/data --set mutants` (or
`--set failures_sqlite`).
"""

def scorer():
    path = SHARED / "tools" / "score_repair.py"
    for needed in (path, SHARED / "data" / "predictions", BINARY):
        if not needed.exists():
            shown = Path("..", needed.relative_to(ROOT / "..")) if SHARED in needed.parents else needed.relative_to(ROOT)
            sys.exit(f"{shown} is absent, so nothing can be measured; docs/repair.md is left as it is.")
    spec = importlib.util.spec_from_file_location("score_repair", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

def mend(records, data):
    lines = (json.dumps({"id": i, "db": r["db"], "sql": r["pred"], "question": r.get("question"),
                         "evidence": r.get("evidence"), "error": r.get("error")}) for i, r in enumerate(records))
    done = subprocess.run([BINARY, "fix", "--batch", "-", "--root", data], input="\n".join(lines) + "\n",
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"fix --batch exited {done.returncode}: {done.stderr[-2000:]}")
    return {d["id"]: d for d in map(json.loads, filter(str.strip, done.stdout.splitlines()))}

def measure(name, score, wrong_file):
    """Totals of a set, and counts for each rule and applicability."""
    data = str((SHARED / "data").resolve())
    source = "controls_correct" if name == "mutants" else name
    records = [json.loads(l) for l in open(f"{data}/predictions/{source}.jsonl")]
    records = [r for r in records if Path(data, r["db"]).exists()]
    if name == "mutants":
        records = score.mutants(records, data)
    answers, connections = mend(records, data), {}
    total, rules = collections.Counter(), collections.defaultdict(collections.Counter)
    for i, record in enumerate(records):
        answer = answers.get(i, {"status": "missing"})
        total["n"] += 1
        total[answer["status"]] += 1
        if answer["status"] != "mended":
            continue
        path = f"{data}/{record['db']}"
        connection = connections.setdefault(path, score.connect(path))
        rows, data_known = bool(record.get("has_data", True)), {}
        if rows:
            got, error = score.rows_of(connection, answer["sql"])
            gold, gold_error = score.rows_of(connection, record["gold"])
            right = error is None and gold_error is None and got == gold
            data_known = {"rows": 1, "right": int(right), "empty": int(right and not gold)}
            if wrong_file and not right:
                wrong_file.write(json.dumps({"set": name, **record, "answer": answer, "error_now": error}) + "\n")
        fixes = {(f["code"], f["applicability"].lower()) for f in answer["fixes"]}
        total.update(data_known)
        for fix in fixes or {("(no fix)", "")}:
            rules[fix].update({"claimed": 1, **data_known})
            if len(fixes) == 1:
                rules[fix].update({f"alone_{k}": v for k, v in data_known.items()})
    return total, rules

def percent(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "–"

def table(name, total, rules):
    n, rows, right = total["n"], total["rows"], total["right"]
    out = [f"\n## {name}\n", f"{n} queries: {total['mended']} claimed mended ({percent(total['mended'], n)}), "
           f"{total['gave_up']} given up, {total['refused']} refused, {total['untouched']} untouched, {total['missing']} "
           f"without an answer. Of the claims {rows} are with rows: **{right} right, {rows - right} wrong "
           f"({percent(right, rows)} right)**; {total['empty']} of the right ones are empty.\n",
           "| rule | applicability | applied | with rows | right | wrong | right of those | alone: right of |  |",
           "|---|---|---|---|---|---|---|---|---|"]
    for (code, sure), c in sorted(rules.items(), key=lambda x: (-x[1]["claimed"], x[0])):
        low = name == "mutants" and sure == "safe" and c["rows"] and c["right"] / c["rows"] < WANTED
        out.append(f"| {code} | {sure} | {c['claimed']} | {c['rows']} | {c['right']} | {c['rows'] - c['right']} | "
                   f"{percent(c['right'], c['rows'])} | {c['alone_right']} of {c['alone_rows']} | {'**HARMFUL**' if low else ''} |")
    return "\n".join(out) + "\n"

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wrong", type=argparse.FileType("w"), help="also write every wrong claim there")
    arguments, score = parser.parse_args(), scorer()
    sets = {name: measure(name, score, arguments.wrong) for name in ("mutants", "failures_sqlite")}
    low = [f"`{code}` ({percent(c['right'], c['rows'])} of {c['rows']})" for (code, sure), c in sorted(sets["mutants"][1].items())
           if sure == "safe" and c["rows"] and c["right"] / c["rows"] < WANTED]
    verdict = f"\nSafe fixes under {WANTED:.0%} on mutants, marked HARMFUL below: {', '.join(low) or 'none'}.\n"
    page = TOP + verdict + "".join(table(name, *found) for name, found in sets.items()) + BOTTOM
    (ROOT / "docs" / "repair.md").write_text(page)
    print(page)

if __name__ == "__main__":
    main()
