"""all-MiniLM-L6-v2 in plain numpy: WordPiece tokenizer and forward pass. The teacher of the static embedder, and the reference
for the Rust code in `crates/model/tests/integration/embed.rs`.
"""

import json
import struct
import unicodedata
from pathlib import Path

import numpy as np


def is_punctuation(c):
    o = ord(c)
    return 33 <= o <= 47 or 58 <= o <= 64 or 91 <= o <= 96 or 123 <= o <= 126 or unicodedata.category(c).startswith("P")


def words(text):
    """Splits into lower-case words without accents; each punctuation character is a word."""
    out, word = [], []
    for c in unicodedata.normalize("NFD", text.lower()):
        if unicodedata.category(c) == "Mn":
            continue
        wide = 0x3400 <= ord(c) <= 0x9FFF or 0xF900 <= ord(c) <= 0xFAFF
        if c.isspace() or is_punctuation(c) or wide:
            if word:
                out.append("".join(word))
                word = []
            if not c.isspace():
                out.append(c)
        elif unicodedata.category(c)[0] != "C":
            word.append(c)
    if word:
        out.append("".join(word))
    return out


def pieces(text, vocabulary, unknown):
    """WordPiece tokenization: greedy longest match from the left. Words without a match are unknown."""
    out = []
    for word in words(text):
        start, found = 0, []
        while start < len(word):
            end = min(len(word), start + 40)
            while end > start:
                piece = vocabulary.get(("##" if start else "") + word[start:end])
                if piece is not None:
                    break
                end -= 1
            if end == start:
                found = [unknown]
                break
            found.append(piece)
            start = end
        out += [unknown] if len(word) > 100 else found
    return out


def gelu(x):
    """GELU with an approximation of erf accurate to 1.5e-7. In place, and in blocks that fit the CPU
    cache.
    """
    flat = x.reshape(-1)
    for at in range(0, flat.size, 1 << 14):
        v = flat[at : at + (1 << 14)]
        z = np.abs(v) * np.float32(0.7071067811865476)
        t = 1 / (1 + np.float32(0.3275911) * z)
        p = np.float32(1.061405429) * t
        for c in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
            p += np.float32(c)
            p *= t
        z *= z
        p *= np.exp(np.negative(z, out=z), out=z)
        v *= np.where(v > 0, 1 - np.float32(0.5) * p, np.float32(0.5) * p)
    return x


class Teacher:
    def __init__(self, folder):
        folder = Path(folder)
        raw = (folder / "model.safetensors").read_bytes()
        n = struct.unpack("<Q", raw[:8])[0]
        self.w = {}
        for name, t in json.loads(raw[8 : 8 + n]).items():
            if name != "__metadata__" and t["dtype"] == "F32":
                a, b = t["data_offsets"]
                self.w[name] = np.frombuffer(raw[8 + n + a : 8 + n + b], np.float32).reshape(t["shape"])
        self.list = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
        self.list = self.list[: self.w["embeddings.word_embeddings.weight"].shape[0]]
        self.vocabulary = {piece: i for i, piece in enumerate(self.list)}
        self.heads = 12

    def tokens(self, text):
        return pieces(text, self.vocabulary, self.vocabulary["[UNK]"])

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12) * self.w[name + ".weight"] + self.w[name + ".bias"]

    def line(self, x, name):
        # A single matrix product: numpy would multiply each row of the batch separately.
        y = x.reshape(-1, x.shape[-1]) @ self.w[name + ".weight"].T
        y += self.w[name + ".bias"]
        return y.reshape(*x.shape[:-1], -1)

    def forward(self, ids):
        """Returns token vectors for a batch of rows of equal length, including [CLS] and [SEP]."""
        w, (b, n) = self.w, ids.shape
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][:n]
        x = self.norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        d = x.shape[-1] // self.heads
        for i in range(6):
            p = f"encoder.layer.{i}."
            q, k, v = (
                np.ascontiguousarray(
                    self.line(x, p + f"attention.self.{m}").reshape(b, n, self.heads, d).transpose(0, 2, 1, 3)
                )
                for m in ("query", "key", "value")
            )
            a = q @ k.transpose(0, 1, 3, 2) / np.float32(np.sqrt(d))
            a = np.exp(a - a.max(-1, keepdims=True))
            a = (a / a.sum(-1, keepdims=True)) @ v
            a = a.transpose(0, 2, 1, 3).reshape(b, n, -1)
            x = self.norm(x + self.line(a, p + "attention.output.dense"), p + "attention.output.LayerNorm")
            h = self.line(gelu(self.line(x, p + "intermediate.dense")), p + "output.dense")
            x = self.norm(x + h, p + "output.LayerNorm")
        return x

    def embed_ids(self, rows, most=254, batch=4096):
        """Returns unit-length sentence vectors for rows of token ids; rows of equal length are batched."""
        out = np.zeros((len(rows), 384), np.float32)
        by_length = {}
        for i, row in enumerate(rows):
            by_length.setdefault(len(row[:most]), []).append(i)
        for n, members in by_length.items():
            step = max(1, batch // (n + 2))
            for at in range(0, len(members), step):
                some = members[at : at + step]
                ids = np.array([[101, *rows[i][:most], 102] for i in some])
                out[some] = self.forward(ids).mean(1)
        return out / np.linalg.norm(out, axis=1, keepdims=True)

    def embed(self, texts):
        return self.embed_ids([self.tokens(text) for text in texts])
