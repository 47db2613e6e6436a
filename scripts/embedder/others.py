"""Two more measurements: BM25 and MiniLM with all words masked that do not belong to the shape, and questions of another set.

    python scripts/embedder/others.py TEACHER SPIDER BIRD_MINI_DEV.json
"""

import json
import sys
from pathlib import Path

import numpy as np

import measure
import shape
from reference import FromFile
from teacher import Teacher

if __name__ == "__main__":
    teacher = Teacher(sys.argv[1])
    train, dev = measure.sets(sys.argv[2])
    bird = [(r["db_id"], r["question"], r["SQL"]) for r in json.loads(Path(sys.argv[3]).read_text())]
    rows = [teacher.tokens(q) for _, q, _ in train]
    features = shape.Features(rows, [r[0] for r in train], teacher.list, 12, 20)
    piece = {word: number for number, word in features.word.items()}
    piece |= {shape.OTHER: teacher.vocabulary["something"], shape.NUMBER: teacher.vocabulary["5"]}

    def masked(part):
        ids = [[piece[w] for w in features.mapped(teacher.tokens(q))[1:]] for _, q, _ in part]
        return ids, [(d, " ".join(teacher.list[i] for i in row), sql) for (d, _, sql), row in zip(part, ids)]

    (have, have_text), (want, want_text) = masked(train), masked(dev)
    found = measure.Retrieval(have_text, want_text)
    for name, scores in (
        ("BM25, masked", found.bm25()),
        ("MiniLM, masked", teacher.embed_ids(want) @ teacher.embed_ids(have).T),
    ):
        print(f"{name}: {found.rate(scores, 1):.1f} {found.rate(scores):.1f}", flush=True)

    fixed = FromFile(Path(__file__).parents[2] / "crates/model/data/embedder.bin")
    static = lambda part: np.array([fixed.embed(q) for _, q, _ in part])
    full = lambda part: teacher.embed([q for _, q, _ in part])
    found = measure.Retrieval(train, bird)
    print(f"BIRD, {len(bird)} questions: possible {100 * found.possible:.1f}, random {found.random():.1f}, BM25 {found.rate(found.bm25()):.1f}")
    print(f"MiniLM {found.rate(full(bird) @ full(train).T):.1f}, static {found.rate(static(bird) @ static(train).T):.1f}")
