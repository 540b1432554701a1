"""Distances between all pairs of points, dense or sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # scipy.spatial is loaded when it is first used
from numpy.typing import ArrayLike, NDArray

from kernelmill.kernels.points import dense_blocks, is_sparse


def real_distances(distance: ArrayLike) -> NDArray[Any]:
    """Distances as float64, or as float32 if they are: a map may need no more digits."""
    if isinstance(distance, np.ndarray) and distance.dtype == np.float32:
        return distance
    return np.asarray(distance, np.float64)


def euclidean_distances(X: Any, Y: Any = None) -> NDArray[np.float64]:
    """Euclidean distances between the rows of X and those of Y, by default of X.

    Both are checked points, as :func:`~kernelmill.kernels.points.check_pair` gives them. Dense
    rows are subtracted. If one side is sparse, squared norms and inner products are combined, which
    leaves an error of about 1e-8 norms in the distance of rows that are (nearly) equal; the
    distance of a row to itself is exactly 0 if Y is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.kernels.distances import euclidean_distances
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
    >>> from kernelmill.kernels.distances import manhattan_distances
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
