#!/usr/bin/env python3
"""Trains and measures the intent classifier: chat, questions about the data model, write requests, and questions about the data.

    scripts/intent.py train --data DIR      # writes crates/core/src/intent/weights.tsv
    scripts/intent.py measure --data DIR    # leave-group-out recall and false alarms on all questions under DIR

Softmax regression on vectors of the built-in embedder: the vector of the whole message, then the topic of its first word
(after polite openings). Phrases are in datasets/intent/phrases.tsv; questions of the training sets of Spider and BIRD are
examples of `data`. `measure` holds out phrases by group and first word, so that no paraphrase with the same beginning is in
the training set, and the questions of every other database.
"""
import argparse
import csv
import gzip
import json
import math
import operator
import random
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from static_embedder import Embedder  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
PHRASES, WEIGHTS = ROOT / "datasets/intent/phrases.tsv", ROOT / "crates/core/src/intent/weights.tsv"
INTENTS = ["data", "chat", "model", "write"]
# As in crates/core/src/intent.rs.
OPENINGS = set("please can could would you will i want to like d kindly now then and so well ok okay just us let s".split())
QUESTIONS, EPOCHS, RATE, DECAY, FOLDS, WEIGHT = 1500, 8, 0.5, 1e-4, 5, 4.0
THRESHOLDS = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]


def features(embedder, text):
    """Returns the vector of a message."""
    words = re.findall(r"\w+", text.lower())
    first = next((word for word in words if word not in OPENINGS), "")
    return embedder.vector(text) + embedder.topic(first) + [1.0]


def scores(weights, vector):
    """Returns the probability of each intent."""
    sums = [sum(map(operator.mul, row, vector)) for row in weights]
    powers = [math.exp(value - max(sums)) for value in sums]
    return [power / sum(powers) for power in powers]


def fit(examples):
    """Returns the weights: a row for each intent."""
    weights = [[0.0] * len(examples[0][0]) for _ in INTENTS]
    order, chance = list(range(len(examples))), random.Random(1)
    for epoch in range(EPOCHS):
        chance.shuffle(order)
        rate = RATE * (1 - epoch / EPOCHS) + 0.02
        for at in order:
            vector, label, weight = examples[at]
            for row, (share, intent) in enumerate(zip(scores(weights, vector), INTENTS)):
                step = rate * weight * ((intent == label) - share)
                if abs(step) > 1e-4:
                    weights[row] = [w * (1 - rate * DECAY) + step * x for w, x in zip(weights[row], vector)]
    return weights


def phrases():
    """Returns intent, group and text of every phrase."""
    lines = [line for line in PHRASES.read_text().splitlines() if line and not line.startswith("#")]
    return [tuple(line.split("\t")) for line in lines]


def questions(data):
    """Returns set, database and text of every question under the folder."""
    with open(data / "spider/train_questions.csv", newline="") as file:
        yield from (("spider train", row["database"], row["question"]) for row in csv.DictReader(file))
    with gzip.open(data / "train/bird_train.jsonl.gz", "rt") as file:
        yield from (("bird train", row["db_id"], row["question"]) for row in map(json.loads, file))
    for name, path in (("spider dev", "spider/questions_dev.json"), ("bird dev", "bird/dev.json"), ("geoquery", "geoquery/geography_questions.json")):
        yield from ((name, row["db_id"], row["question"]) for row in json.loads((data / path).read_text()))
    for path in sorted((data / "defog/questions").glob("*postgres.csv")):
        with open(path, newline="") as file:
            yield from (("defog", row["db_name"], row["question"]) for row in csv.DictReader(file))


def example(embedder, label, text):
    """Returns features, label and weight: intents other than `data` are rare among the examples."""
    return features(embedder, text), label, 1.0 if label == "data" else WEIGHT


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["train", "measure"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    embedder, written, asked = Embedder(), phrases(), list(questions(options.data))
    half, plain = set(), []
    for name in ("spider train", "bird train"):
        databases = sorted({database for of, database, _ in asked if of == name})[::2]
        pool = [text for of, database, text in asked if of == name and database in databases]
        plain += [example(embedder, "data", text) for text in random.Random(2).sample(pool, min(QUESTIONS, len(pool)))]
        half |= {(name, database) for database in databases}
    first = lambda text: next((word for word in re.findall(r"\w+", text.lower()) if word not in OPENINGS), "")
    known = [(f"{group} {first(text)}", intent, text, example(embedder, intent, text)) for intent, group, text in written]
    if options.verb == "train":
        weights = fit(plain + [one for *_, one in known])
        WEIGHTS.parent.mkdir(exist_ok=True)
        lines = ["\t".join([intent, *(f"{w:.3f}" for w in row)]) for intent, row in zip(INTENTS, weights)]
        WEIGHTS.write_text("\n".join(lines) + "\n")
        print(f"{len(known)} phrases and {len(plain)} questions; wrote {WEIGHTS.relative_to(ROOT)}")
        weights = [[float(f"{w:.3f}") for w in row] for row in weights]
    else:
        groups = sorted({group for group, *_ in known})
        results = []
        for fold in range(FOLDS):
            out = set(groups[fold::FOLDS])
            weights = fit(plain + [one for group, _, _, one in known if group not in out])
            results += [(intent, text, scores(weights, one[0])) for group, intent, text, one in known if group in out]
        print("threshold  " + "  ".join(f"{intent:>6}" for intent in INTENTS) + "   recall of groups that were left out; data: share kept")
        for threshold in THRESHOLDS:
            cells = []
            for intent in INTENTS:
                of = [result for label, _, result in results if label == intent]
                found = [max(zip(result[1:], INTENTS[1:])) for result in of]
                right = sum((share < threshold) if intent == "data" else (share >= threshold and name == intent) for share, name in found)
                cells.append(f"{100 * right / len(of):5.1f}%")
            print(f"{threshold:9.2f}  " + "  ".join(cells))
        weights = fit(plain + [one for *_, one in known])
    print("false alarms among questions about data (training sets: databases that were not trained on)")
    table = {}
    for name, database, text in asked:
        if (name, database) in half:
            continue
        share, intent = max(zip(scores(weights, features(embedder, text))[1:], INTENTS[1:]))
        table.setdefault(name, []).append(share)
        if options.show and share >= 0.7:
            print(f"  {share:.2f} {intent:5} {name}: {text}")
    for name, shares in table.items():
        cells = [f"{threshold}: {sum(share >= threshold for share in shares)}" for threshold in THRESHOLDS]
        print(f"{name:13} {len(shares):5}   " + "  ".join(cells))


if __name__ == "__main__":
    main()
