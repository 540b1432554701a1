"""Points, the rows of dense or SciPy sparse matrices: checks, distances, norms and angles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy  # scipy.sparse and scipy.spatial are loaded on first use
from numpy.typing import ArrayLike, NDArray

from kernelmill.errors import ArgumentError
from kernelmill.runtime.arrays import Floats, Rows, SparseRows, as_real

__all__ = [
    "canonical_rows",
    "check_pair",
    "cosines_and_norms",
    "dense_blocks",
    "euclidean_distances",
    "inner_products",
    "manhattan_distances",
    "norms",
    "real_distances",
]

_BLOCK = 1 << 20
"""Elements of a block of sparse rows that is made dense."""

_IF_COMPLEX = "put the real and the imaginary parts into separate columns"


def check_pair(X: object, Y: object) -> tuple[Rows, Rows | None]:
    """Return two sets of points with equally many columns; the second is None if it is the first.

    They are float64 arrays or CSR arrays in canonical format, and finite.
    """
    first = _check_points(X, "X")
    if Y is None or Y is X:
        return first, None
    second = _check_points(Y, "Y")
    if first.shape[1] != second.shape[1]:
        raise ValueError(
            f"X and Y must have the same number of columns, got {first.shape[1]} and "
            f"{second.shape[1]}; pass points of the same dimension."
        )
    return first, second


def _check_points(X: Any, name: str) -> Rows:
    if not (hasattr(X, "tocsr") and scipy.sparse.issparse(X)):
        array = as_real(X, name, _IF_COMPLEX).astype(np.float64, copy=False)
        _check_shape(array.shape, name)
        _check_finite(array, name)
        return array
    _check_shape(X.shape, name)
    rows = scipy.sparse.csr_array(X)
    rows.data = as_real(rows.data, name, _IF_COMPLEX).astype(np.float64, copy=False)
    points: SparseRows = canonical_rows(rows, name)
    _check_finite(points.data, name)
    return points


def canonical_rows(X: Any, name: str = "X") -> Any:
    """Return the CSR matrix X with sorted columns, each once in a row, if it is not damaged.

    Its indices are a copy: other threads cannot change them after they are checked. SciPy reads
    and writes wherever they point.
    """
    try:
        parts = (np.ascontiguousarray(X.data), np.array(X.indices), np.array(X.indptr))
        rows = scipy.sparse.csr_array(parts, X.shape)
        rows.check_format(full_check=True)
        if (np.diff(rows.indptr) < 0).any():  # which SciPy does not check if the last one is 0
            raise ValueError("index pointer values must form a non-decreasing sequence")
    except ValueError as error:
        raise ArgumentError(
            f"is not a valid CSR matrix: {error}",
            "build it again from its entries, for example with "
            "scipy.sparse.coo_array((data, (rows, columns)), shape).tocsr()",
            parameter=name,
        ) from error
    if not rows.has_canonical_format:
        rows.data = rows.data.copy()  # the caller's numbers stay as they are
        rows.sum_duplicates()
    return rows


def _check_shape(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        raise ValueError(
            f"{name} must have two dimensions, points and coordinates, got shape {shape}; a single "
            f"point is {name}.reshape(1, -1)."
        )
    if shape[1] == 0:
        raise ValueError(f"{name} must have at least one column, got shape {shape}.")


def _check_finite(values: Floats, name: str) -> None:
    if not np.isfinite(values).all():
        what = "NaN" if np.isnan(values).any() else "infinity"
        raise ValueError(
            f"{name} must hold finite numbers, got {what}; fill in or drop those entries."
        )


def dense_blocks(X: Rows) -> Iterator[tuple[slice, Floats]]:
    """Yield blocks of rows as dense arrays, each with its slice of rows."""
    step = max(1, _BLOCK // X.shape[1])
    for first in range(0, X.shape[0], step):
        rows = slice(first, min(first + step, X.shape[0]))
        yield rows, X[rows] if isinstance(X, np.ndarray) else X[rows].toarray()


def real_distances(distance: ArrayLike) -> Floats:
    """Return distances in float64, or in float32 if a map has computed them in float32."""
    if isinstance(distance, np.ndarray) and distance.dtype == np.float32:
        return distance
    return np.asarray(distance, np.float64)


def euclidean_distances(X: Rows, Y: Rows | None = None) -> NDArray[np.float64]:
    """Return Euclidean distances between the rows of X and those of Y, by default of X.

    Both are checked points, as `check_pair` returns them. Dense rows are subtracted. If one side is
    sparse, squared norms and inner products are combined. This leaves an error of about 1e-8 norms
    in the distance of (nearly) equal rows; the distance of a row to itself is exactly 0 if Y is
    omitted.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.kernels.points import euclidean_distances
    >>> euclidean_distances(np.array([[0.0, 0.0], [3.0, 4.0]]))
    array([[0., 5.],
           [5., 0.]])
    """
    other = X if Y is None else Y
    if isinstance(X, np.ndarray) and isinstance(other, np.ndarray):
        return np.asarray(scipy.spatial.distance.cdist(X, other))
    squares = _products(X, other)
    squares *= -2
    squares += _squared_norms(X)[:, np.newaxis]
    squares += _squared_norms(other)
    np.maximum(squares, 0, out=squares)
    if Y is None:
        # Sums in another order would make the result slightly asymmetric.
        squares = (squares + squares.T) / 2
        np.fill_diagonal(squares, 0)
    return np.asarray(np.sqrt(squares))


def manhattan_distances(X: Rows, Y: Rows | None = None) -> NDArray[np.float64]:
    """Return sums of absolute differences between the rows of X and those of Y, by default of X.

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


def _products(X: Any, Y: Any) -> NDArray[np.float64]:
    product = X @ Y.T
    return np.asarray(product if isinstance(product, np.ndarray) else product.toarray())


def _squared_norms(X: Any) -> NDArray[np.float64]:
    if isinstance(X, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", X, X))
    return np.asarray((X * X).sum(axis=1), np.float64).reshape(-1)


def inner_products(X: Rows, Y: Rows | None = None) -> NDArray[np.float64]:
    """Return inner products of the rows of X with those of Y, by default of X: checked points.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.kernels.points import inner_products
    >>> inner_products(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[ 5., 11.],
           [11., 25.]])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        products = _products(X, X if Y is None else Y)
    # Sparse sums in another order would make the result slightly asymmetric.
    is_symmetric = Y is None and not isinstance(X, np.ndarray)
    return (products + products.T) / 2 if is_symmetric else products


def norms(X: Rows) -> NDArray[np.float64]:
    """Return the Euclidean norms of checked points, without overflow or underflow of squares."""
    result = np.empty(X.shape[0])
    for rows, block in dense_blocks(X):
        largest = np.abs(block).max(axis=1, initial=0.0)
        unit = block / np.where(largest > 0, largest, 1.0)[:, np.newaxis]
        result[rows] = largest * np.sqrt(np.einsum("ij,ij->i", unit, unit))
    return result


def cosines_and_norms(
    X: Rows, Y: Rows | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the cosines of all angles between rows, and the norms of both sets of rows.

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


def _divide_rows(X: Rows, lengths: NDArray[np.float64]) -> Rows:
    """Return the rows divided by their lengths; rows of length 0 are unchanged."""
    positive = np.where(lengths > 0, lengths, 1.0)
    if isinstance(X, np.ndarray):
        return X / positive[:, np.newaxis]
    divided = X.copy()
    divided.data /= np.repeat(positive, np.diff(X.indptr))
    return divided
