"""The half of the static embedder that encodes the shape of a question, not its topic.

Words that occur in questions to many databases ("how many", "each", "at least") form the shape; all others are replaced by
one placeholder, "something". Each such word, and each bigram, has a vector, trained with a contrastive loss so that
questions to different databases with the same query template are close (questions of the same database are excluded).
"""

import numpy as np
from scipy import sparse

OTHER, NUMBER, START = 0, 1, 2  # ids of words that are not word pieces


class Features:
    """Selects the words and bigrams of the shape from questions of many databases."""

    def __init__(self, rows, databases, names, word_databases=5, pair_databases=5, most_pairs=6000):
        self.names = names
        seen = {}
        for row, database in zip(rows, databases):
            for piece in set(row):
                seen.setdefault(piece, set()).add(database)
        kept = sorted(p for p, d in seen.items() if len(d) >= word_databases and not names[p].lstrip("#").isdigit())
        self.word = {piece: 3 + i for i, piece in enumerate(kept)}
        pairs = {}
        for row, database in zip(rows, databases):
            mapped = self.mapped(row)
            for pair in zip(mapped, mapped[1:] + [START]):
                pairs.setdefault(pair, set()).add(database)
        good = sorted((p for p, d in pairs.items() if len(d) >= pair_databases), key=lambda p: (-len(pairs[p]), p))
        self.pair = {pair: 3 + len(kept) + i for i, pair in enumerate(sorted(good[:most_pairs]))}
        self.count = 3 + len(kept) + len(self.pair)

    def mapped(self, row):
        """Returns the words of the shape, with one placeholder or number for anything in between."""
        out = [START]
        for piece in row:
            digits = self.names[piece].lstrip("#").isdigit()
            word = NUMBER if digits else self.word.get(piece, OTHER)
            if word > START or word != out[-1]:
                out.append(word)
        return out

    def of(self, row):
        mapped = self.mapped(row)
        pairs = (self.pair.get(pair) for pair in zip(mapped, mapped[1:] + [START]))
        return mapped[1:] + [p for p in pairs if p is not None]

    def matrix(self, rows):
        of = [self.of(row) for row in rows]
        at = np.repeat(np.arange(len(rows)), [len(f) for f in of])
        flat = np.concatenate([np.array(f, int) for f in of])
        return sparse.csr_matrix((np.ones(len(flat), np.float32), (at, flat)), (len(rows), self.count))


def unit(z):
    length = np.linalg.norm(z, axis=1, keepdims=True) + 1e-9
    return z / length, length


def learn(x, skeletons, databases, dimensions=64, steps=400, batch=1024, rate=0.02, heat=0.07, decay=1e-4, drop=0.1, seed=1):
    """Trains the vectors of the features with Adam on the contrastive loss."""
    rng = np.random.default_rng(seed)
    s = rng.normal(0, 0.1, (x.shape[1], dimensions)).astype(np.float32)
    first, second = np.zeros_like(s), np.zeros_like(s)
    for step in range(1, steps + 1):
        some = rng.choice(x.shape[0], min(batch, x.shape[0]), replace=False)
        part = x[some]
        part.data = part.data * (rng.random(len(part.data)) >= drop) / (1 - drop)
        z, length = unit(part @ s)
        same = skeletons[some][:, None] == skeletons[some]
        apart = databases[some][:, None] != databases[some]
        e = np.exp((z @ z.T - 1) / heat) * apart
        good = e * same
        of_good, of_all = good.sum(1, keepdims=True), e.sum(1, keepdims=True) + 1e-9
        has = of_good > 1e-9
        # Gradient of -log(good / all) with respect to each similarity.
        slope = np.where(has, e / of_all - good / np.maximum(of_good, 1e-9), 0) / (heat * len(some))
        dz = slope @ z + slope.T @ z
        gradient = part.T @ ((dz - z * (z * dz).sum(1, keepdims=True)) / length) + decay / len(some) * s
        first += 0.1 * (gradient - first)
        second += 0.01 * (gradient * gradient - second)
        now = rate * 0.5 * (1 + np.cos(np.pi * step / steps))
        s -= now * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
    return s
