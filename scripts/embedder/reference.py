"""Writes crates/model/tests/embed/reference.json: vectors of the teacher and of the static embedder, computed in Python, for
the Rust tests.

    python scripts/embedder/reference.py TEACHER
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np

from shape import NUMBER, OTHER, START, unit
from teacher import Teacher, pieces

TEXTS = [
    "How many singers do we have?",
    "What are the names, countries, and ages for every singer in descending order of age?",
    "Show the stadium's name & location with a capacity between 5,000 and 10000!",
    "Café São Paulo: naïve résumé",
    "internationalization of pseudopseudohypoparathyroidism",
    "x",
]


class FromFile:
    """Reads the file in the format described in crates/model/src/embed/static_embedding.rs."""

    def __init__(self, path):
        raw = Path(path).read_bytes()
        assert raw[:8] == b"QMEMBED1"
        count, size, topic, words, pairs, shape, self.share, _ = struct.unpack_from("<IIIIIIfQ", raw, 8)
        at = 44
        def take(n, kind):
            nonlocal at
            out = np.frombuffer(raw, kind, n, at)
            at += out.nbytes
            return out
        names = take(size, "u1").tobytes().decode().split("\n")
        self.vocabulary = {n: i for i, n in enumerate(names)}
        self.word_of = take(count, "<u2")
        self.pairs = {tuple(p): words + i for i, p in enumerate(take(2 * pairs, "<u2").reshape(-1, 2).tolist())}
        scales, shape_scales = take(count, "<f4"), take(words + pairs, "<f4")
        self.topic = take(count * topic, "i1").reshape(count, topic) * scales[:, None]
        self.shape = take((words + pairs) * shape, "i1").reshape(-1, shape) * shape_scales[:, None]
        assert at == len(raw)

    def embed(self, text):
        row = pieces(text, self.vocabulary, self.vocabulary["[UNK]"])
        mapped = [START]
        for piece in row:
            word = int(self.word_of[piece])
            if word not in (OTHER, NUMBER) or word != mapped[-1]:
                mapped.append(word)
        found = mapped[1:] + [self.pairs[p] for p in zip(mapped, mapped[1:] + [START]) if p in self.pairs]
        halves = [unit(t[r].sum(0, keepdims=True))[0][0] for t, r in ((self.topic, row), (self.shape, found))]
        return np.hstack([np.sqrt(1 - self.share) * halves[0], np.sqrt(self.share) * halves[1]])


if __name__ == "__main__":
    model = Path(__file__).parents[2] / "crates/model"
    short = lambda rows: [[round(float(v), 4) for v in row] for row in rows]
    fixed = FromFile(model / "data/embedder.bin")
    out = {"texts": TEXTS, "minilm": short(Teacher(sys.argv[1]).embed(TEXTS)), "fixed": short(map(fixed.embed, TEXTS))}
    (model / "tests/embed/reference.json").write_text(json.dumps(out, separators=(",", ":")).replace("]],", "]],\n") + "\n")
