#!/usr/bin/env python3
"""Measures the similarity threshold at which a word counts as a synonym of a table or column name.

    scripts/synonym_threshold.py --data DIR [--show]

DIR contains `spider/train_questions.csv`, `spider/tables.json` and `train/spider_syn.jsonl.gz` (Spider and Spider-Syn). A
positive pair is a word of a Spider question that names a table or column, and its replacement in Spider-Syn: `head` and
`leader`. A negative pair is the same replacement and its most similar name in another database, unless the two share a word
or are synonyms elsewhere. Prints recall and precision (with one negative per positive) for each threshold; `--show` prints
the pairs close to it.
"""
import argparse
import csv
import difflib
import gzip
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from static_embedder import Embedder  # noqa: E402

THRESHOLDS = [0.30, 0.35, 0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70]


def words(text):
    """Returns the words of a question or a name in lower case."""
    return re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower())


def singular(word):
    """Returns the singular of regular plurals."""
    return re.sub(r"ies$", "y", word) if word.endswith("ies") else re.sub(r"(?<=[^su])s$", "", word)


def plural(name):
    """Returns the regular plural."""
    return re.sub(r"(?<![aeiou])y$", "ie", name) + ("es" if re.search(r"(s|x|ch|sh)$", name) else "s")


def norm(phrase):
    """Returns the words in normalized form, so that `Car_Names` equals `car names`."""
    return " ".join(singular(word) for word in phrase)


def names_of(schema):
    """Returns the names of the tables and columns of a database."""
    return {norm(words(name)) for name in schema["table_names_original"] + [column for _, column in schema["column_names_original"][1:]]}


def pairs_of(plain, synonymous, names):
    """Returns the replacements: pairs of a schema name and the words that replace it."""
    left, right = words(plain), words(synonymous)
    for tag, a, b, c, d in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "replace" and b - a <= 2 and d - c <= 2:
            name, substitute = norm(left[a:b]), norm(right[c:d])
            if name in names and substitute != name and substitute not in names:
                yield substitute, name


def similarity(embedder, left, right):
    """Returns the larger similarity of the singular and the plural forms, as rules compare names."""
    return max(embedder.similarity(left, right), embedder.similarity(plural(left), plural(right)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    embedder = Embedder()
    schemas = {schema["db_id"]: names_of(schema) for schema in json.loads((options.data / "spider/tables.json").read_text())}
    with open(options.data / "spider/train_questions.csv", newline="") as file:
        plain = {}
        for row in csv.DictReader(file):
            plain.setdefault((row["database"], norm(words(row["sql"]))), []).append(row["question"])
    found = set()
    with gzip.open(options.data / "train/spider_syn.jsonl.gz", "rt") as file:
        for row in map(json.loads, file):
            names = schemas.get(row["db_id"], set())
            candidates = plain.get((row["db_id"], norm(words(row["sql"]))), [])
            nearest = difflib.get_close_matches(row["question"], candidates, 1, 0.6)
            found |= {(row["db_id"], *pair) for question in nearest for pair in pairs_of(question, row["question"], names)}
    databases, positive, negative = sorted({pair[0] for pair in found}), [], []
    synonyms = {(substitute, name) for _, substitute, name in found} | {(name, substitute) for _, substitute, name in found}
    for database, substitute, name in sorted(found):
        other = databases[(databases.index(database) + len(databases) // 2) % len(databases)]
        related = lambda other_name: set(other_name.split()) & {*substitute.split(), *name.split()} or (substitute, other_name) in synonyms
        foreign = [other_name for other_name in schemas[other] if not related(other_name)]
        positive.append((similarity(embedder, substitute, name), substitute, name))
        negative.append(max((similarity(embedder, substitute, other_name), substitute, other_name) for other_name in foreign))
    print(f"{len(positive)} synonyms of names in {len(databases)} databases\nthreshold  recall  precision")
    for threshold in THRESHOLDS:
        right, wrong = (sum(pair[0] >= threshold for pair in side) for side in (positive, negative))
        print(f"{threshold:9.2f} {100 * right / len(positive):6.1f}%  {100 * right / max(1, right + wrong):8.1f}%")
    if options.show:
        for label, side in (("synonym", positive), ("other", negative)):
            for score, substitute, name in sorted(side, reverse=True):
                if 0.4 <= score <= 0.75:
                    print(f"{label:8} {score:.3f} {substitute} / {name}")


if __name__ == "__main__":
    main()
