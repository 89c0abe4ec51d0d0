"""all-MiniLM-L6-v2 in NumPy: six layers of BERT, the mean of the last states, normalised. Reads the model's own files.

A batch is always 32 texts of one length (the last one of a length is filled up with repetitions): no padding, no mask,
and the bytes of a vector do not depend on which texts are encoded with it.
"""

import hashlib
import json
import pathlib

import numpy as np
from scipy.special import erf

# The weights as their authors published them; a package that holds other ones is refused.
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
LAYERS, HEADS, WIDTH = 6, 12, 384
BATCH = 32


class MiniLM:
    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.words = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]
        data = (folder / "model.safetensors").read_bytes()
        if hashlib.sha256(data).hexdigest() != WEIGHTS_SHA256:
            raise SystemExit(f"{folder}: these are not the weights of all-MiniLM-L6-v2")
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])

        def tensor(name):
            begin, end = header[name]["data_offsets"]
            return np.frombuffer(data[8 + size + begin : 8 + size + end], "<f4").reshape(header[name]["shape"])

        def norm(name):
            return tensor(name + ".weight"), tensor(name + ".bias")

        def linear(*names):
            weight = np.concatenate([tensor(name + ".weight") for name in names])
            return np.ascontiguousarray(weight.T), np.concatenate([tensor(name + ".bias") for name in names])

        self.word = tensor("embeddings.word_embeddings.weight")
        self.place = tensor("embeddings.position_embeddings.weight")
        self.place = self.place + tensor("embeddings.token_type_embeddings.weight")[0]
        self.first_norm = norm("embeddings.LayerNorm")
        self.layers = []
        for number in range(LAYERS):
            at = f"encoder.layer.{number}."
            self.layers.append((
                linear(*(at + "attention.self." + name for name in ("query", "key", "value"))),
                linear(at + "attention.output.dense"),
                norm(at + "attention.output.LayerNorm"),
                linear(at + "intermediate.dense"),
                linear(at + "output.dense"),
                norm(at + "output.LayerNorm"),
            ))
        self.begin, self.end = self.words.index("[CLS]"), self.words.index("[SEP]")

    def encode(self, tokens):
        """Vectors (n, 384) of lists of token numbers, given without [CLS] and [SEP]."""
        vectors = np.zeros((len(tokens), WIDTH), np.float32)
        order = sorted(range(len(tokens)), key=lambda i: len(tokens[i]))
        at = 0
        while at < len(order):
            length = len(tokens[order[at]])
            batch = [i for i in order[at : at + BATCH] if len(tokens[i]) == length]
            full = (batch * BATCH)[:BATCH]
            encoded = self._run(np.array([[self.begin, *tokens[i], self.end] for i in full]))
            vectors[batch] = encoded[: len(batch)]
            at += len(batch)
        return vectors

    def _run(self, ids):
        count, length = ids.shape
        x = _norm(self.word[ids] + self.place[:length], self.first_norm).reshape(count * length, WIDTH)
        for attend, project, norm, widen, narrow, last_norm in self.layers:
            q, k, v = _linear(x, attend).reshape(count, length, 3, HEADS, WIDTH // HEADS).transpose(2, 0, 3, 1, 4)
            weights = q @ k.transpose(0, 1, 3, 2) * np.float32((WIDTH // HEADS) ** -0.5)
            weights -= weights.max(-1, keepdims=True)
            np.exp(weights, out=weights)
            weights /= weights.sum(-1, keepdims=True)
            mixed = (weights @ v).transpose(0, 2, 1, 3).reshape(count * length, WIDTH)
            x = _norm(x + _linear(mixed, project), norm)
            x = _norm(x + _linear(_gelu(_linear(x, widen)), narrow), last_norm)
        mean = x.reshape(count, length, WIDTH).mean(1)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)


def _linear(x, layer):
    x = x @ layer[0]
    x += layer[1]
    return x


def _norm(x, layer):
    x = x - x.mean(-1, keepdims=True)
    x /= np.sqrt(np.einsum("...i,...i->...", x, x)[..., None] / WIDTH + np.float32(1e-12))
    x *= layer[0]
    x += layer[1]
    return x


def _gelu(x):
    half = erf(x * np.float32(0.5**0.5))
    half += 1
    half *= x
    half *= np.float32(0.5)
    return half
