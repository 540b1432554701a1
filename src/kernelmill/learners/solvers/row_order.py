"""The order in which descent visits the rows of a block, and the rows that it leaves out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelmill.random import Stream

__all__ = ["held_out_rows", "visiting_order"]


def visiting_order(
    n_rows: int, weights: NDArray[np.float64] | None, mean_weight: float, stream: Stream
) -> NDArray[np.intp]:
    """Return a shuffled list with row i weights[i] / mean_weight times on average.

    By systematic sampling: the number of visits of a row is rounded up or down, never more. Steps
    on such a list need no weights, and one heavy row does not make them large. Without weights it
    is a permutation.
    """
    rows = np.arange(n_rows, dtype=np.intp)
    if weights is not None:
        edges = np.cumsum(weights) / mean_weight
        offset = float(stream.substream("offset").uniforms(1)[0])
        counts = np.diff(np.floor(edges + offset), prepend=np.floor(offset)).astype(np.intp)
        rows = np.repeat(rows, counts)
    if len(rows) == 0:
        return rows
    order: NDArray[np.intp] = rows[stream.permutation(len(rows))]
    return order


def held_out_rows(
    classes: NDArray[np.intp], fraction: float, stream: Stream, block: int
) -> NDArray[np.bool_]:
    """Return which rows of a block are held out: this fraction of each class, at random.

    The same rows in every pass. At least one row of each class is left for training.
    """
    out = np.zeros(len(classes), bool)
    if not fraction:
        return out
    shuffled = stream.substream("held out", block).permutation(len(classes))
    by_class = shuffled[np.argsort(classes[shuffled], kind="stable")]
    sorted_classes = classes[by_class]
    starts = np.flatnonzero(np.diff(sorted_classes, prepend=-1))
    sizes = np.diff(starts, append=len(classes))
    ranks = np.arange(len(classes)) - np.repeat(starts, sizes)
    taken = np.repeat(np.minimum(np.round(sizes * fraction), sizes - 1), sizes)
    out[by_class] = ranks < taken
    return out
