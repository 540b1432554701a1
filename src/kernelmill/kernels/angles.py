"""Inner products, norms and cosines of angles between points, dense or sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.kernels.points import dense_blocks, is_sparse

__all__ = ["cosines_and_norms", "inner_products", "norms"]


def inner_products(X: Any, Y: Any = None) -> NDArray[np.float64]:
    """Inner products of the rows of X with those of Y, by default of X: checked points.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.kernels.angles import inner_products
    >>> inner_products(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[ 5., 11.],
           [11., 25.]])
    """
    other = X if Y is None else Y
    with np.errstate(over="ignore", invalid="ignore"):
        product = X @ other.T
    dense = np.asarray(product.toarray() if is_sparse(product) else product)
    # Sparse sums taken in another order would make the result slightly asymmetric.
    return (dense + dense.T) / 2 if Y is None and is_sparse(X) else dense


def norms(X: Any) -> NDArray[np.float64]:
    """The Euclidean norms of checked points, without overflow or underflow of squares."""
    result = np.empty(X.shape[0])
    for rows, block in dense_blocks(X):
        largest = np.abs(block).max(axis=1, initial=0.0)
        unit = block / np.where(largest > 0, largest, 1.0)[:, np.newaxis]
        result[rows] = largest * np.sqrt(np.einsum("ij,ij->i", unit, unit))
    return result


def cosines_and_norms(
    X: Any, Y: Any = None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The cosines of all angles between rows, in [-1, 1], and the norms of both sets of rows.

    A zero vector has no direction: its cosines are 0. Without Y, the cosine of a row with
    itself is 1.
    """
    own = norms(X)
    if Y is None:
        cosines, others = inner_products(_divide_rows(X, own)), own
        np.fill_diagonal(cosines, np.where(own > 0, 1.0, 0.0))
    else:
        others = norms(Y)
        cosines = inner_products(_divide_rows(X, own), _divide_rows(Y, others))
    return np.clip(cosines, -1, 1, out=cosines), own, others


def _divide_rows(X: Any, lengths: NDArray[np.float64]) -> Any:
    """The rows divided by their lengths; rows of length 0 are unchanged."""
    positive = np.where(lengths > 0, lengths, 1.0)
    if not is_sparse(X):
        return X / positive[:, np.newaxis]
    divided = X.copy()
    divided.data /= np.repeat(positive, np.diff(X.indptr))
    return divided
