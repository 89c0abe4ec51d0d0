"""The contrastive step: the two halves of a pair are to be nearer to each other than to the halves of other pairs.

InfoNCE in both directions over batches, Adam, all in NumPy. Fixed seed: the same input gives the same bytes.
"""

import numpy as np
from scipy import sparse

SEED = 1
STEPS_OF_TRAINING = 1500
# A batch is 16 runs of 32 neighbours. Neighbours in a corpus of operations are those of one provider: like the tools of
# one server they are hard to tell apart, which is what the table has to learn.
RUN, RUNS = 32, 16
TEMPERATURE = np.float32(0.05)
# Adam; the rate is in units of the root mean square of the vectors, and falls to 0.
RATE, MOMENTUM, SQUARES = 0.01, 0.9, 0.99


def contrast(vectors, free, corpora):
    """Vectors after training. `free` tells which rows may change. A corpus is a list of pairs of lists of pieces.

    A corpus takes part in proportion to the square root of its size."""
    if not any(corpora):
        return vectors
    most = max(map(len, corpora))
    pairs = [pair for corpus in corpora if corpus for _ in range(round((most / len(corpus)) ** 0.5)) for pair in corpus]
    left, right = (_sums([pair[side] for pair in pairs], len(vectors)) for side in (0, 1))
    random = np.random.default_rng(SEED)
    vectors = vectors.copy()
    size = np.sqrt((vectors * vectors).mean())
    mean, squares = np.zeros_like(vectors), np.zeros_like(vectors)
    order = np.zeros(0, np.int64)
    for step in range(1, STEPS_OF_TRAINING + 1):
        if len(order) < RUN * RUNS:
            runs = random.permutation(len(pairs) // RUN)
            order = (runs[:, None] * RUN + np.arange(RUN)).ravel()
        batch, order = order[: RUN * RUNS], order[RUN * RUNS :]
        loss, gradient = _gradient(vectors, left[batch], right[batch])
        gradient *= size * free[:, None]
        mean += np.float32(1 - MOMENTUM) * (gradient - mean)
        squares += np.float32(1 - SQUARES) * (gradient * gradient - squares)
        rate = RATE * size * (1 - (step - 1) / STEPS_OF_TRAINING) / (1 - MOMENTUM**step)
        vectors -= np.float32(rate) * mean / (np.sqrt(squares / np.float32(1 - SQUARES**step)) + np.float32(1e-8))
        if step % 250 == 0:
            print(f"contrastive step {step} of {STEPS_OF_TRAINING}, loss {loss:.3f}", flush=True)
    return vectors


def _sums(texts, pieces):
    """Sparse matrix (texts x pieces) of counts."""
    columns = np.concatenate(texts).astype(np.int32)
    begins = np.cumsum([0, *map(len, texts)])
    matrix = sparse.csr_matrix((np.ones(len(columns), np.float32), columns, begins), (len(texts), pieces))
    matrix.sum_duplicates()
    return matrix


def _gradient(vectors, left, right):
    """Mean loss of a batch, and its gradient by the vectors."""
    a, a_length = _normal(left @ vectors)
    b, b_length = _normal(right @ vectors)
    likeness = a @ b.T / TEMPERATURE
    forth, back = _softmax(likeness), _softmax(likeness.T)
    loss = -np.log(np.maximum(np.diag(forth), 1e-9)).mean()
    own = np.eye(len(a), dtype=np.float32)
    by_likeness = ((forth - own) + (back - own).T) / (2 * len(a) * TEMPERATURE)
    by_a, by_b = by_likeness @ b, by_likeness.T @ a
    by_a = (by_a - (by_a * a).sum(1, keepdims=True) * a) / a_length
    by_b = (by_b - (by_b * b).sum(1, keepdims=True) * b) / b_length
    return loss, left.T @ by_a + right.T @ by_b


def _normal(x):
    length = np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-6)
    return x / length, length


def _softmax(x):
    x = np.exp(x - x.max(1, keepdims=True))
    return x / x.sum(1, keepdims=True)
