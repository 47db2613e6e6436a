"""Measures what BM25 and diversification (MMR) add to vector retrieval: Spider train -> dev, with the metric of
scripts/embedder.

    python3 -m venv venv && venv/bin/pip install numpy scipy
    venv/bin/python scripts/ranking.py SPIDER [MINILM.npz]

MINILM.npz contains MiniLM's vectors of the same questions as `A` (train) and `B` (dev); without it only the built-in
embedder is measured. A hit is a training question with the same query template among the five retrieved ones.
"""

import struct
import sys
from pathlib import Path

import numpy as np

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here / "embedder"))
import measure
import shape
from distil import Fixed


def compiled_in():
    """The embedder of crates/model/data/embedder.bin; format in
    crates/model/src/embed/static_embedding.rs.
    """
    raw = (here.parent / "crates/model/data/embedder.bin").read_bytes()
    count, size, topic, words, pairs, shaped = struct.unpack("<6I", raw[8:32])
    (share,) = struct.unpack("<f", raw[32:36])
    at = 44

    def take(kind, n):
        nonlocal at
        numbers = np.frombuffer(raw, kind, n, at)
        at += numbers.nbytes
        return numbers

    names = take("u1", size).tobytes().decode().split("\n")
    word_of, pair = take("<u2", count), take("<u2", 2 * pairs).reshape(-1, 2)
    scales, shape_scales = take("<f4", count), take("<f4", words + pairs)
    rows = take("i1", count * topic).reshape(count, topic) * scales[:, None]
    learned = take("i1", (words + pairs) * shaped).reshape(-1, shaped) * shape_scales[:, None]
    features = shape.Features.__new__(shape.Features)
    features.names, features.count = names, words + pairs
    features.word = {i: int(w) for i, w in enumerate(word_of) if w > 2}
    features.pair = {tuple(map(int, p)): words + i for i, p in enumerate(pair)}
    return Fixed(names, rows, features, learned, share)


def shown(scores, vectors, have, want, repeated=0.0, variety=0.0, pool=64, most=5):
    """Returns the hits among the retrieved questions. Maximal marginal relevance (MMR): each selected
    question penalizes others, by `repeated` those with its template, and by `variety` times the
    similarity all of them.
    """
    hits = 0
    for row, wanted in zip(scores, want):
        near = np.argsort(-row, kind="stable")[:pool]
        score, kept = row[near].copy(), []
        for _ in range(most):
            best = int(np.argmax(score))
            kept.append(best)
            score[have[near] == have[near[best]]] -= repeated
            if variety:
                score = np.minimum(score, row[near] - variety * (vectors[near] @ vectors[near[best]]))
            score[kept] = -99
        hits += bool((have[near[kept]] == wanted).any())
    return 100 * hits / len(scores)


train, dev = measure.sets(sys.argv[1])
found = measure.Retrieval(train, dev)
words = found.bm25()
words /= words.max(1, keepdims=True) + 1e-9
embedder = compiled_in()
kinds = {"static": (embedder.embed([q for _, q, _ in train]), embedder.embed([q for _, q, _ in dev]))}
if len(sys.argv) > 2:
    taught = np.load(sys.argv[2])
    kinds["minilm"] = (taught["A"], taught["B"])
for name, (store, asked) in kinds.items():
    near = asked @ store.T
    rate = lambda scores, **kind: shown(scores, store, found.have, found.want, **kind)
    for weight in (0, 0.05, 0.1, 0.2, 0.3, 0.5):
        print(f"{name}: vectors + {weight} words: {rate(near + weight * words):.1f} %")
    place = lambda scores: np.argsort(np.argsort(-scores, 1), 1)
    print(f"{name}: reciprocal ranks (60): {rate(1 / (60 + place(near)) + 1 / (60 + place(words))):.1f} %")
    both = near + 0.1 * words
    for repeated in (0.02, 0.05, 0.1, 0.2, 9):
        print(f"{name}: + 0.1 words, each repeated skeleton - {repeated}: {rate(both, repeated=repeated):.1f} %")
    for variety in (0.2, 0.5):
        print(f"{name}: + 0.1 words, MMR {variety}: {rate(both, variety=variety):.1f} %")
