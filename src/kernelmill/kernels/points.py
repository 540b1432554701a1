"""Points, the rows of dense or scipy sparse matrices: checks, distances, norms and angles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy  # scipy.sparse and scipy.spatial are loaded when they are first used
from numpy.typing import ArrayLike, NDArray

from kernelmill.runtime.arrays import as_real

__all__ = [
    "check_pair",
    "check_points",
    "cosines_and_norms",
    "dense_blocks",
    "euclidean_distances",
    "inner_products",
    "is_sparse",
    "manhattan_distances",
    "norms",
    "real_distances",
]

# Elements of a block of rows that is made dense.
_BLOCK = 1 << 20


def check_pair(X: Any, Y: Any) -> tuple[Any, Any]:
    """Two sets of points with the same number of columns; the second is None if it is the first."""
    first = check_points(X, "X")
    if Y is None or Y is X:
        return first, None
    second = check_points(Y, "Y")
    if first.shape[1] != second.shape[1]:
        raise ValueError(
            f"X and Y must have the same number of columns, got {first.shape[1]} and "
            f"{second.shape[1]}; pass points of the same dimension."
        )
    return first, second


def check_points(X: Any, name: str) -> Any:
    """`X` as a float64 array of finite rows, or as a csr_array if it is sparse."""
    if is_sparse(X):
        _check_shape(X.shape, name)
        rows = scipy.sparse.csr_array(X)
        data = as_real(rows.data, name, _IF_COMPLEX).astype(np.float64, copy=False)
        # A new matrix around the same numbers: sorting it leaves the caller's alone.
        points = scipy.sparse.csr_array((data, rows.indices, rows.indptr), rows.shape)
        if not points.has_canonical_format:
            points = points.copy()
            points.sum_duplicates()
        _check_finite(points.data, name)
        return points
    array = as_real(X, name, _IF_COMPLEX).astype(np.float64, copy=False)
    _check_shape(array.shape, name)
    _check_finite(array, name)
    return array


_IF_COMPLEX = "put the real and the imaginary parts into separate columns"


def is_sparse(X: Any) -> bool:
    """Return whether X is a scipy sparse matrix or array."""
    return hasattr(X, "tocsr") and bool(scipy.sparse.issparse(X))


def dense_blocks(X: Any) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Checked points as dense blocks of rows, each with its slice of rows."""
    step = max(1, _BLOCK // X.shape[1])
    for first in range(0, X.shape[0], step):
        rows = slice(first, min(first + step, X.shape[0]))
        yield rows, X[rows].toarray() if is_sparse(X) else X[rows]


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        raise ValueError(
            f"{name} must have two dimensions, points and coordinates, got shape {shape}; a single "
            f"point is {name}.reshape(1, -1)."
        )
    if shape[1] == 0:
        raise ValueError(f"{name} must have at least one column, got shape {shape}.")


def _check_finite(values: NDArray[np.float64], name: str) -> None:
    if not np.isfinite(values).all():
        what = "NaN" if np.isnan(values).any() else "infinity"
        raise ValueError(
            f"{name} must hold finite numbers, got {what}; fill in or drop those entries."
        )


def real_distances(distance: ArrayLike) -> NDArray[Any]:
    """Distances as float64, or as float32 if they are: a map may need no more digits."""
    if isinstance(distance, np.ndarray) and distance.dtype == np.float32:
        return distance
    return np.asarray(distance, np.float64)


def euclidean_distances(X: Any, Y: Any = None) -> NDArray[np.float64]:
    """Euclidean distances between the rows of X and those of Y, by default of X.

    Both are checked points, as :func:`check_pair` returns them. Dense
    rows are subtracted. If one side is sparse, squared norms and inner products are combined, which
    leaves an error of about 1e-8 norms in the distance of rows that are (nearly) equal; the
    distance of a row to itself is exactly 0 if Y is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.kernels.points import euclidean_distances
    >>> euclidean_distances(np.array([[0.0, 0.0], [3.0, 4.0]]))
    array([[0., 5.],
           [5., 0.]])
    """
    other = X if Y is None else Y
    if not is_sparse(X) and not is_sparse(other):
        return np.asarray(scipy.spatial.distance.cdist(X, other))
    product = X @ other.T
    squares = product.toarray() if is_sparse(product) else product
    squares *= -2
    squares += _squared_norms(X)[:, np.newaxis]
    squares += _squared_norms(other)
    np.maximum(squares, 0, out=squares)
    if Y is None:
        # Sums taken in another order would make the result slightly asymmetric.
        squares = (squares + squares.T) / 2
        np.fill_diagonal(squares, 0)
    return np.asarray(np.sqrt(squares))


def manhattan_distances(X: Any, Y: Any = None) -> NDArray[np.float64]:
    """Sums of absolute differences between the rows of X and those of Y, by default of X.

    Both are checked points; sparse ones are made dense in blocks of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.kernels.points import manhattan_distances
    >>> manhattan_distances(np.array([[0.0, 0.0], [3.0, 4.0]]))
    array([[0., 7.],
           [7., 0.]])
    """
    other = X if Y is None else Y
    result = np.empty((X.shape[0], other.shape[0]))
    for rows, block in dense_blocks(X):
        for columns, other_block in dense_blocks(other):
            result[rows, columns] = scipy.spatial.distance.cdist(block, other_block, "cityblock")
    return result


def _squared_norms(X: Any) -> NDArray[np.float64]:
    if is_sparse(X):
        return np.asarray((X * X).sum(axis=1), np.float64).reshape(-1)
    return np.asarray(np.einsum("ij,ij->i", X, X))


def inner_products(X: Any, Y: Any = None) -> NDArray[np.float64]:
    """Inner products of the rows of X with those of Y, by default of X: checked points.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.kernels.points import inner_products
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
    """Return the Euclidean norms of checked points, without overflow or underflow of squares."""
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
    """Return the rows divided by their lengths; rows of length 0 are unchanged."""
    positive = np.where(lengths > 0, lengths, 1.0)
    if not is_sparse(X):
        return X / positive[:, np.newaxis]
    divided = X.copy()
    divided.data /= np.repeat(positive, np.diff(X.indptr))
    return divided
