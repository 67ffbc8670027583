"""Vectors laid out in a plane, similar ones close together."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misslink.embedding.providers import import_without_notebook_warning

_DIGITS = 4  # a screen has fewer points
_MIN_SPREAD = 1e-6  # a spread that single precision makes of equal vectors
# UMAP's own default; among fewer points every one is everybody's neighbour.
_NEIGHBOURS = 15


def project_umap(vectors: NDArray[np.float32], seed: int) -> NDArray[np.float64]:
    """By UMAP, which is an extra; rows have length 1."""
    import_without_notebook_warning()
    umap: Any = import_module("umap")  # it has no types
    # Rows have length 1, so that the Euclidean distance orders as the cosine does; it takes the
    # vector 0 of a blank text too. Seeded, UMAP works in one thread whatever it is told.
    layout = umap.UMAP(
        n_components=2, n_neighbors=_NEIGHBOURS, metric="euclidean", random_state=seed, n_jobs=1
    )
    return np.asarray(layout.fit_transform(vectors), dtype=np.float64)


def project_pca(vectors: NDArray[np.float32], _seed: int) -> NDArray[np.float64]:
    """The first two principal components; the sign of each is that of its largest loading.

    From the products of columns or of rows, whichever are fewer: the whole decomposition of 4,000
    long vectors takes minutes, these two axes seconds, and those of a few vectors milliseconds.
    """
    from scipy.linalg import eigh

    centred = vectors.astype(np.float64)
    centred -= centred.mean(axis=0)
    is_wide = centred.shape[0] < centred.shape[1]
    products = centred @ centred.T if is_wide else centred.T @ centred
    last = len(products) - 1
    _, ascending = eigh(products, subset_by_index=[max(last - 1, 0), last])
    axes = ascending[:, ::-1]
    if is_wide:
        axes = centred.T @ axes
        axes /= np.linalg.norm(axes, axis=0).clip(_MIN_SPREAD)
    largest = np.abs(axes).argmax(axis=0)
    axes = axes * np.where(axes[largest, np.arange(axes.shape[1])] < 0, -1.0, 1.0)
    places = centred @ axes
    return np.hstack([places, np.zeros((len(places), 2 - places.shape[1]))])


def scale_to_unit_square(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Into the unit square, both axes by the same factor, the shorter one in the middle."""
    low = places.min(axis=0)
    spans = places.max(axis=0) - low
    widest = float(spans.max())
    if widest <= _MIN_SPREAD:
        return np.full_like(places, 0.5)
    scaled: NDArray[np.float64] = (places - low) / widest + (1 - spans / widest) / 2
    return scaled.round(_DIGITS).clip(0.0, 1.0)
