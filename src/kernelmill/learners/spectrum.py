r"""The top of the spectrum of the features, and steps that it does not slow down.

Features of a smooth kernel have a covariance whose eigenvalues fall steeply, and the ratio of the
first to the others is what makes gradient descent slow. Damping gradients along the leading
eigenvectors evens it out (Ma & Belkin, 2017; EigenPro):

.. math:: P = I - \sum_{i \le k} \Bigl(1 - \frac{h \lambda_{k+1} + \alpha}
          {h \lambda_i + \alpha}\Bigr) v_i v_i^T.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy  # scipy.linalg is loaded when it is first used
from numpy.typing import NDArray

__all__ = ["TopSpectrum", "rows_to_sample"]

_MOST_ROWS = 2000
_MOST_DIRECTIONS = 200
_ROWS_PER_DIRECTION = 10  # eigenvalues of a sample are right while there are many rows to each
_SAMPLE_BYTES = 1 << 28


def rows_to_sample(n_features: int, itemsize: int) -> int:
    """How many rows tell enough of the spectrum; their features stay below 256 MiB."""
    return int(min(_MOST_ROWS, max(50, _SAMPLE_BYTES // (n_features * itemsize))))


@dataclass(frozen=True)
class TopSpectrum:
    r"""Leading eigenvectors of the second moments of [z, c], from a sample of rows.

    Attributes
    ----------
    vectors : ndarray of shape (D + 1, k)
        Orthonormal columns; the last row belongs to the constant c.
    values : ndarray of shape (k,)
        The eigenvalues, descending.
    tail : float
        The next eigenvalue, or a floor under it.
    constant : float
        c, of the size of a typical row, so that the intercept is learnt as fast as the weights.
    squared_norms : ndarray of shape (m,)
        :math:`|z|^2 + c^2` of the rows of the sample.
    projections : ndarray of shape (m, k)
        The squares of their products with the vectors.
    """

    vectors: NDArray[Any]
    values: NDArray[np.float64]
    tail: float
    constant: float
    squared_norms: NDArray[np.float64]
    projections: NDArray[np.float64]

    @classmethod
    def of_sample(
        cls, Z: NDArray[Any], *, most: int | None = None, constant: float | None = None
    ) -> Self:
        """The spectrum of the rows of Z, with at most 200 eigenvectors or as many as `most`."""
        m, n_features = Z.shape
        norms = np.einsum("ij,ij->i", Z, Z, dtype=np.float64)
        if constant is None:
            constant = float(np.sqrt(norms.mean())) or 1.0
        moments = (np.asarray(Z @ Z.T, np.float64) + constant**2) / m
        count = min(_MOST_DIRECTIONS if most is None else most, m // _ROWS_PER_DIRECTION)
        values, coordinates = scipy.linalg.eigh(moments, subset_by_index=[m - count - 1, m - 1])
        values, coordinates = values[::-1], coordinates[:, ::-1]
        # Directions of hardly any variance are rounding errors of the others.
        floor = max(float(values[0]) * 100 * float(np.finfo(Z.dtype).eps), 1e-300)
        kept = int(np.count_nonzero(values[:count] > floor))
        values, tail = values[:kept], max(float(values[kept]), floor)
        vectors = np.empty((n_features + 1, kept), Z.dtype)
        scaled = coordinates[:, :kept] / np.sqrt(values * m)
        np.matmul(Z.T, scaled.astype(Z.dtype), out=vectors[:-1])
        vectors[-1] = constant * scaled.sum(axis=0)
        # Z V = (Z Zᵀ + c²) U / sqrt(λ m) = U sqrt(λ m), as U are eigenvectors.
        projections = coordinates[:, :kept] ** 2 * (values * m)
        return cls(vectors, values, tail, constant, norms + constant**2, projections)

    def damping(self, curvature: float, alpha: float) -> NDArray[np.float64]:
        """What is taken away along each vector, between 0 and 1."""
        return np.asarray(
            1 - (curvature * self.tail + alpha) / (curvature * self.values + alpha), np.float64
        )

    def largest_norm(self, curvature: float, alpha: float) -> float:
        r"""The largest :math:`z^T P z` in the sample."""
        left = self.squared_norms - self.projections @ self.damping(curvature, alpha)
        return max(float(left.max()), self.tail)
