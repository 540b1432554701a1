"""Rows that belong together, in choices by ridge regression on a sample: copies and groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.random.row_hashes import Keys, hash_rows

__all__ = ["list_together", "merge_copies", "residuals_without"]

_Array = NDArray[np.float64]

_LEAST_LEFT = 1e-9  # of 1 minus a leverage


def merge_copies(X: Any, Y: _Array, sample_weight: _Array | None) -> tuple[Any, _Array, Any]:
    """Return the different rows, each with the mean of its targets and its weights.

    The evidence takes targets of different rows for independent. Copies of whole rows, of which
    each explains the other, would look like rows without noise.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.learners.tuning.copies import merge_copies
    >>> X = np.array([[1.0], [5.0], [1.0]])
    >>> distinct, means, _ = merge_copies(X, np.array([[0.0], [3.0], [1.0]]), None)
    >>> distinct.ravel(), means.ravel()
    (array([1., 5.]), array([0.5, 3. ]))
    """
    _, first, place, counts = np.unique(
        hash_rows(X), return_index=True, return_inverse=True, return_counts=True
    )
    if len(first) == len(place):
        return X, Y, sample_weight
    weights = np.ones(len(place)) if sample_weight is None else sample_weight
    sums = np.bincount(place, weights)
    shares = np.where(sums[place] > 0, weights / np.where(sums > 0, sums, 1.0)[place], 0.0)
    means = np.stack([np.bincount(place, shares * y) for y in Y.T], axis=1).astype(np.float64)
    order = np.argsort(first)
    rows = first[order]
    merged = None if sample_weight is None else (sums / counts)[order]
    return X[rows], means[order], merged


def list_together(keys: Keys | None) -> list[NDArray[np.intp]]:
    """Return the rows of each key that has several, for each number of rows in an array.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.learners.tuning.copies import list_together
    >>> list_together(np.array([4, 7, 4, 9, 7, 3], np.uint64))
    [array([[0, 2],
           [1, 4]])]
    """
    if keys is None:
        return []
    place, sizes = np.unique(keys, return_inverse=True, return_counts=True)[1:]
    order = np.argsort(place, kind="stable")
    order = order[sizes[place[order]] > 1]
    found = []
    for size in np.unique(sizes[sizes > 1]):
        rows = order[sizes[place[order]] == size]
        found.append(rows.reshape(-1, size))
    return found


def residuals_without(
    residuals: _Array, halves: _Array, roots: _Array, n_rows: int, rows: NDArray[np.intp]
) -> _Array:
    """Return the residuals of ridge regression for rows that are left out together.

    They are (I - H)⁻¹ r for the residuals r of the rows with the same key and their part H of the
    matrix that makes predictions of targets.

    Parameters
    ----------
    residuals : ndarray of shape (n, n_outputs)
        Times the roots of the weights, as all that follows.
    halves : ndarray of shape (n, D)
        Features times the inverse of a Cholesky factor.
    roots : ndarray of shape (n,)
        Roots of the weights, whose mean over all rows is 1.
    n_rows : int
        The number of all rows, of which the intercept is a mean.
    rows : ndarray of int of shape (n_keys, size)
    """
    parts, weights = halves[rows], roots[rows]
    H: NDArray[Any] = parts @ parts.swapaxes(1, 2)
    H += weights[:, :, np.newaxis] * weights[:, np.newaxis, :] / n_rows
    diagonal = np.arange(rows.shape[1])
    np.negative(H, out=H)
    H[:, diagonal, diagonal] += 1 + _LEAST_LEFT
    left_out: _Array = np.linalg.solve(H, residuals[rows])
    return left_out
