"""Reads the built-in static embedder (crates/model/data/embedder.bin) with the standard library only, for scripts that measure
or train on its vectors. The format is described in crates/model/src/embed/static_embedding.rs.
"""
import array
import functools
import math
import re
import struct
import unicodedata
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "crates/model/data/embedder.bin"
OTHER, NUMBER, EDGE = 0, 1, 2


def unit(vector):
    """Returns the unit vector, or zeros."""
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector] if length > 1e-12 else vector


class Embedder:
    """Vectors of word pieces, words and bigrams."""

    def __init__(self, path=FILE):
        data = path.read_bytes()
        count, size, self.topic_size, words, pairs, self.shape_size = struct.unpack("<6I", data[8:32])
        self.share, at = struct.unpack("<f", data[32:36])[0], 44
        self.pieces = {piece: i for i, piece in enumerate(data[at:at + size].decode().split("\n"))}
        at += size
        self.word_of = struct.unpack(f"<{count}H", data[at:at + 2 * count])
        at += 2 * count
        flat = struct.unpack(f"<{2 * pairs}H", data[at:at + 4 * pairs])
        self.pairs = {pair: words + i for i, pair in enumerate(zip(flat[::2], flat[1::2]))}
        at += 4 * pairs
        scales = struct.unpack(f"<{count + words + pairs}f", data[at:at + 4 * (count + words + pairs)])
        self.topic_scales, self.shape_scales = scales[:count], scales[count:]
        at += 4 * len(scales)
        self.topic_rows = array.array("b", data[at:at + count * self.topic_size])
        self.shape_rows = array.array("b", data[at + count * self.topic_size:])
        self.topic = functools.lru_cache(100_000)(self._topic)

    def tokens(self, text):
        """Returns the word piece ids of a text."""
        text = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(c))
        for word in re.findall(r"[^\W_]+|[^\w\s]|_", text):
            start, found = 0, []
            while start < len(word):
                ends = range(len(word), start, -1)
                piece = next((p for p in (("##" if start else "") + word[start:end] for end in ends) if p in self.pieces), None)
                if piece is None:
                    found = [self.pieces["[UNK]"]]
                    break
                found.append(self.pieces[piece])
                start += len(piece) - (2 if start else 0)
            yield from found

    def _topic(self, text):
        total = [0.0] * self.topic_size
        for piece in self.tokens(text):
            scale, row = self.topic_scales[piece], self.topic_rows[piece * self.topic_size:(piece + 1) * self.topic_size]
            for i, number in enumerate(row):
                total[i] += number * scale
        return unit(total)

    def vector(self, text):
        """Returns the full vector of a text: its topic and its shape."""
        shape, last = [0.0] * self.shape_size, EDGE

        def add(row):
            scale = self.shape_scales[row]
            for i, number in enumerate(self.shape_rows[row * self.shape_size:(row + 1) * self.shape_size]):
                shape[i] += number * scale

        for word in [self.word_of[piece] for piece in self.tokens(text)] + [EDGE]:
            if word == EDGE or word != last or word not in (OTHER, NUMBER):
                if word != EDGE:
                    add(word)
                if (last, word) in self.pairs and not (last == word == EDGE):
                    add(self.pairs[last, word])
                last = word
        topic = [x * math.sqrt(1 - self.share) for x in self._topic(text)]
        return unit(topic + [x * math.sqrt(self.share) for x in unit(shape)])

    def similarity(self, left, right):
        """Returns the similarity of two phrases, from 0 to 1, as `querymend::similarity` computes it."""
        return min(1.0, max(0.0, sum(a * b for a, b in zip(self.topic(left), self.topic(right)))))
