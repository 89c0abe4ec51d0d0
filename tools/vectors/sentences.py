"""Sentence vectors of many texts, kept in a file: encoding takes minutes, and a fit is often tried again."""

import hashlib
import os

import numpy as np

from minilm import WIDTH

SAVE_EVERY = 16384
# Bytes of a text's hash.
KEY = 16


def encode(model, tokens, path):
    """Vectors (n, 384) of lists of token numbers. Those not yet in the file `path` are computed and added to it."""
    keys = [hashlib.sha256(np.array(text, "<u4").tobytes()).digest()[:KEY] for text in tokens]
    all_keys, all_vectors = np.zeros((0, KEY), np.uint8), np.zeros((0, WIDTH), np.float16)
    if os.path.exists(path):
        with np.load(path) as known:
            all_keys, all_vectors = known["keys"], known["vectors"]
    rows = {bytes(key): row for row, key in enumerate(all_keys)}
    missing = sorted({key: text for key, text in zip(keys, tokens) if key not in rows}.items())
    for at in range(0, len(missing), SAVE_EVERY):
        part = missing[at : at + SAVE_EVERY]
        rows.update((key, len(all_keys) + i) for i, (key, _) in enumerate(part))
        all_keys = np.concatenate([all_keys, np.array([list(key) for key, _ in part], np.uint8)])
        all_vectors = np.concatenate([all_vectors, model.encode([text for _, text in part]).astype(np.float16)])
        np.savez(path + ".new.npz", keys=all_keys, vectors=all_vectors)
        os.replace(path + ".new.npz", path)
        print(f"encoded {at + len(part)} of {len(missing)} texts", flush=True)
    return all_vectors[[rows[key] for key in keys]]
