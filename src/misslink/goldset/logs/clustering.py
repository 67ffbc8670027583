"""Questions in clusters: spherical k-means over vectors of their words or of their meaning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["clusters", "word_vectors"]

_ROUNDS = 50  # k-means has settled long before
_STARTS = 4  # the best of so many


def word_vectors(texts: Sequence[Sequence[str]]) -> Any:
    """Unit vectors of texts by their words: term frequency by inverse document frequency.

    Parameters
    ----------
    texts : sequence of sequence of str
        The words of each.

    Returns
    -------
    scipy.sparse.csr_array of shape (n, words)
        Weights ``(1 + ln tf) * (1 + ln((1 + n) / (1 + df)))``, which is scikit-learn's with
        sublinear frequencies; the row of a text without words is 0.
    """
    import numpy as np
    from scipy.sparse import csr_array

    columns: dict[str, int] = {}
    rows, places, counts = [], [], []
    for number, words in enumerate(texts):
        for word, count in Counter(words).items():
            rows.append(number)
            places.append(columns.setdefault(word, len(columns)))
            counts.append(count)
    shape = (len(texts), max(1, len(columns)))
    place = np.asarray(places, dtype=np.int64)
    often = np.bincount(place, minlength=shape[1])
    weights = 1 + np.log(np.asarray(counts, dtype=np.float64))
    weights *= 1 + np.log((1 + len(texts)) / (1 + often[place]))
    lengths = np.sqrt(
        np.bincount(np.asarray(rows, dtype=np.int64), weights**2, minlength=len(texts))
    )
    return csr_array((weights / lengths[rows], (rows, places)), shape=shape)


def clusters(vectors: Any, k: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Cluster unit vectors by cosine.

    Parameters
    ----------
    vectors : array or sparse array of shape (n, d)
        Rows of length 1, or 0 for what is near nothing.
    k : int
        How many clusters, from 1 to n.
    seed : int

    Returns
    -------
    label : array of int, shape (n,)
        From 0; every cluster has a member.
    cosine : array of float, shape (n,)
        Of each row to the middle of its cluster.

    Source: Dhillon and Modha, "Concept decompositions for large sparse text data using
    clustering", Machine Learning 42 (2001); seeds by k-means++ (Arthur and Vassilvitskii, 2007).
    """
    import numpy as np

    if k >= vectors.shape[0]:
        return np.arange(vectors.shape[0]), np.ones(vectors.shape[0])
    rng = np.random.default_rng(seed)
    best: tuple[NDArray[np.int64], NDArray[np.float64]] | None = None
    for _ in range(_STARTS):
        found = _settled(vectors, _seeds(vectors, k, rng))
        if best is None or found[1].sum() > best[1].sum() + 1e-9:
            best = found
    assert best is not None  # noqa: S101 (for mypy: there is at least one start)
    return best


def _seeds(vectors: Any, k: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Rows far from each other, drawn by their squared distance to those drawn before."""
    import numpy as np

    chosen = [int(rng.integers(vectors.shape[0]))]
    far: NDArray[np.float64] = np.full(vectors.shape[0], np.inf)
    while len(chosen) < k:
        far = np.minimum(far, 2 - 2 * _products(vectors, _dense(vectors, chosen[-1:]))[:, 0])
        far = np.clip(far, 0, None)
        far[chosen] = 0
        total = far.sum()
        if total > 0:
            chosen.append(int(rng.choice(len(far), p=far / total)))
        else:  # what is left repeats what was drawn
            rest = np.setdiff1d(np.arange(len(far)), chosen)
            chosen.append(int(rest[0]))
    return _dense(vectors, chosen)


def _settled(
    vectors: Any, middles: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    import numpy as np
    from scipy.sparse import csr_array

    n, k = vectors.shape[0], len(middles)
    label: NDArray[np.int64] = np.full(n, -1)
    for _ in range(_ROUNDS):
        cosines = _products(vectors, middles)
        fresh = cosines.argmax(axis=1)
        near = cosines[np.arange(n), fresh]
        for empty in np.setdiff1d(np.arange(k), fresh):  # it takes the worst placed of a large one
            movable = np.bincount(fresh, minlength=k)[fresh] > 1
            worst = int(np.where(movable, near, np.inf).argmin())
            fresh[worst], near[worst] = empty, 1.0
        if (fresh == label).all():
            break
        label = fresh
        members = csr_array((np.ones(n), (label, np.arange(n))), shape=(k, n))
        sums = members @ vectors
        sums = sums.toarray() if hasattr(sums, "toarray") else np.asarray(sums)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        middles = np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 0)
    cosines = _products(vectors, middles)
    return label, cosines[np.arange(n), label]


def _products(vectors: Any, middles: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    return np.asarray(vectors @ middles.T, dtype=np.float64)


def _dense(vectors: Any, rows: Sequence[int]) -> NDArray[np.float64]:
    import numpy as np

    taken = vectors[list(rows)]
    return np.asarray(taken.toarray() if hasattr(taken, "toarray") else taken, dtype=np.float64)
