"""Measures retrieval, Spider train -> dev: how often one of the five nearest training questions has
the same query template.
"""

import csv
import json
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np

from teacher import words

KEPT = set(
    "select distinct from join on where group by having order asc desc limit offset union all except intersect and or not "
    "in like between is null exists case when then else end count sum avg min max abs round length lower upper substr "
    "cast strftime left".split()
)
TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`|\[[^\]]*\]|[A-Za-z_][A-Za-z_0-9]*|\d+(?:\.\d+)?|<>|!=|<=|>=|\|\||\S")


def skeleton(sql):
    """Returns the query template: `?` for literals, `_` for names, without aliases and redundant keywords."""
    out, previous = [], ""
    tokens = TOKEN.findall(sql.strip().rstrip(";"))
    i = 0
    while i < len(tokens):
        t = tokens[i]
        low = t.lower()
        if low in ("as",):
            i += 2
            continue
        if low in ("inner", "outer"):
            i += 1
            continue
        if t[0] == "'" or t[0].isdigit():
            out.append("?")
        elif t[0] == '"':
            # Spider also double-quotes values; after a comparison the token is one.
            out.append("?" if out and out[-1] in ("=", "<>", "<", ">", "<=", ">=", "like", "between", "and", "in", "(", ",")
                       and previous != "." and any(o in ("where", "having", "on") for o in out) else "_")
        elif t[0] in "`[" or (t[0].isalpha() or t[0] == "_") and low not in KEPT:
            if out and out[-1] == "_":  # an alias without AS
                pass
            else:
                out.append("_")
        elif t == "." and out and out[-1] == "_":
            out.pop()
        else:
            out.append("<>" if t == "!=" else low)
        previous = t
        i += 1
    text = " ".join(word for word in out if word != "asc")
    return re.sub(r"not _ (like|in|between)", r"_ not \1", text)


def sets(folder):
    folder = Path(folder)
    with open(folder / "train_questions.csv", encoding="utf-8", newline="") as f:
        train = [(r["database"], r["question"], r["sql"]) for r in csv.DictReader(f)]
    dev = [(r["db_id"], r["question"], r["gold"]) for r in json.loads((folder / "questions_dev.json").read_text())]
    return train, dev


class Retrieval:
    """Queries `store` with `asked`. A hit is a stored question with the same template among the
    nearest `top`.
    """

    def __init__(self, store, asked):
        self.store, self.asked = store, asked
        names = {}
        number = lambda sql: names.setdefault(skeleton(sql), len(names))
        self.have = np.array([number(sql) for _, _, sql in store])
        self.want = np.array([number(sql) for _, _, sql in asked])
        self.possible = float(np.isin(self.want, self.have).mean())

    def rate(self, scores, top=5):
        nearest = np.argsort(-scores, axis=1, kind="stable")[:, :top]
        return 100 * float((self.have[nearest] == self.want[:, None]).any(1).mean())

    def random(self, top=5):
        share = np.array([(self.have == w).mean() for w in self.want])
        return 100 * float((1 - (1 - share) ** top).mean())

    def bm25(self, k1=1.2, b=0.75):
        docs = [Counter(words(q)) for _, q, _ in self.store]
        lengths = np.array([sum(d.values()) for d in docs])
        post = {}
        for i, d in enumerate(docs):
            for w, n in d.items():
                post.setdefault(w, ([], []))
                post[w][0].append(i)
                post[w][1].append(n)
        scores = np.zeros((len(self.asked), len(docs)), np.float32)
        for row, (_, q, _) in enumerate(self.asked):
            for w in words(q):
                if w in post:
                    at, n = np.array(post[w][0]), np.array(post[w][1])
                    idf = math.log(1 + (len(docs) - len(at) + 0.5) / (len(at) + 0.5))
                    scores[row, at] += idf * n * (k1 + 1) / (n + k1 * (1 - b + b * lengths[at] / lengths.mean()))
        return scores


def paraphrases(questions, vectors):
    """For questions with two phrasings: returns how often the nearest other question is the other
    phrasing.
    """
    key = {}
    same = np.array([key.setdefault((d, re.sub(r"\s", "", sql.lower())), len(key)) for d, _, sql in questions])
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -9)
    twice = np.bincount(same)[same] > 1
    return 100 * float((same[scores.argmax(1)] == same)[twice].mean())


if __name__ == "__main__":
    # python scripts/embedder/measure.py SPIDER OUT.json: questions and templates for `cargo bench
    # --bench embed`.
    import sys

    train, dev = sets(sys.argv[1])
    found = Retrieval(train, dev)
    rows = lambda part, numbers: [[q, int(n)] for (_, q, _), n in zip(part, numbers)]
    Path(sys.argv[2]).write_text(json.dumps({"store": rows(train, found.have), "asked": rows(dev, found.want)}))
