#!/usr/bin/env python3
"""Fits the confidence weights of `crates/core/src/confidence.rs`, and measures each level by cross-validation.

    python3 $EVAL/tools/score_ask.py --bin … --data … --set spider --out answers.jsonl
    scripts/calibrate.py [--high 0.87] [--medium 0.55] NAME=answers.jsonl …

A line of an answers file is a line of `ask --batch` (`confidence_features`, `status`) with `right` and `db`. Answers of
several models are fitted together, one file per model. Leave-one-database-out cross-validation: the answers of each database
are rated with weights fitted on all others, and the table shows the share of right answers per level. The final weights are
fitted on all databases. `$EVAL` is the folder of docs/measurements/README.md.
"""
import argparse
import collections
import json
import math

LEVELS = ["low", "medium", "high"]
NAMES = ["question_words", "unused_words", "unused_numbers", "missing_operations", "extra_values", "guessed", "fixed", "empty",
         "warnings", "joins", "grouped"]
RIDGE, STEPS = 1.0, 25


def solve(matrix, vector):
    """Solves a linear system by Gaussian elimination with pivoting."""
    rows = [row[:] + [value] for row, value in zip(matrix, vector)]
    for i in range(len(rows)):
        pivot = max(range(i, len(rows)), key=lambda j: abs(rows[j][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for j in range(len(rows)):
            if j != i:
                factor = rows[j][i] / rows[i][i]
                rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i])]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


def probability(weights, features):
    return 1 / (1 + math.exp(-sum(w * x for w, x in zip(weights, features))))


def fit(answers):
    """Fits a logistic regression by Newton's method. Databases with many answers are weighted down."""
    sizes = collections.Counter(answer["db"] for answer in answers)
    weights = [0.0] * (len(NAMES) + 1)
    for _ in range(STEPS):
        size = len(weights)
        gradient = [RIDGE * w if i else 0.0 for i, w in enumerate(weights)]
        hessian = [[RIDGE * (i == j and i > 0) for j in range(size)] for i in range(size)]
        for answer in answers:
            x, share = answer["x"], 1 / math.sqrt(sizes[answer["db"]])
            p = probability(weights, x)
            for i in range(size):
                if x[i]:
                    gradient[i] += share * (p - answer["right"]) * x[i]
                    for j in range(size):
                        hessian[i][j] += share * p * (1 - p) * x[i] * x[j]
        step = solve(hessian, gradient)
        weights = [w - s for w, s in zip(weights, step)]
        if max(map(abs, step)) < 1e-6:
            break
    return weights


def level(weights, answer, high, medium):
    p = probability(weights, answer["x"])
    rated = 2 if p >= high else 1 if p >= medium else 0
    return LEVELS[min(rated, LEVELS.index(answer["cap"]))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--high", type=float, default=0.87)
    parser.add_argument("--medium", type=float, default=0.55)
    args = parser.parse_args()
    answers = []
    for argument in args.answers:
        name, _, path = argument.rpartition("=")
        for line in open(path):
            answer = json.loads(line)
            features = answer.get("confidence_features")
            if answer["status"] == "answered" and features:
                answers.append({"x": [1.0] + [features[key] for key in NAMES], "cap": features.get("cap", "high"),
                                "right": float(answer["right"]), "db": answer["db"], "model": name or path})
    table = collections.Counter()
    for database in sorted({answer["db"] for answer in answers}):
        weights = fit([answer for answer in answers if answer["db"] != database])
        for answer in answers:
            if answer["db"] == database:
                rated = level(weights, answer, args.high, args.medium)
                table[answer["model"], rated, "n"] += 1
                table[answer["model"], rated, "right"] += answer["right"]
    print("| model | " + " | ".join(f"{name}: right of answers" for name in reversed(LEVELS)) + " |\n|---|---:|---:|---:|")
    for model in dict.fromkeys(answer["model"] for answer in answers):
        cells = []
        for name in reversed(LEVELS):
            n, right = table[model, name, "n"], int(table[model, name, "right"])
            cells.append(f"{right} of {n} ({100 * right / n:.0f} %)" if n else "none")
        print(f"| {model} | " + " | ".join(cells) + " |")
    weights = fit(answers)
    print(f"\nbias: {weights[0]:.2f},")
    for name, weight in zip(NAMES, weights[1:]):
        print(f"{name}: {weight:.2f},")


if __name__ == "__main__":
    main()
