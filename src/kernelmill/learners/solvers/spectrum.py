r"""The top of the spectrum of the features, which preconditions gradients.

Features of a smooth kernel have second moments whose eigenvalues fall steeply, and the ratio of the
first to the others makes gradient descent slow. Damping gradients along the leading eigenvectors
reduces that ratio (Ma & Belkin, 2017):

.. math:: P = I - \sum_{i \le k} \Bigl(1 - \frac{\lambda_{k+1} + \rho}{\lambda_i + \rho}\Bigr)
          v_i v_i^T,

:math:`\rho` being the penalty in units of the curvature of the loss.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy  # scipy.linalg is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.errors import ArgumentError
from kernelmill.learners.blocks import slice_rows
from kernelmill.learners.few_outputs import lay_out_columns
from kernelmill.maps.finite import SMALLER_ROWS
from kernelmill.runtime.threads import get_num_threads

__all__ = ["MOST_DIRECTIONS", "MOST_SAMPLED", "TopSpectrum", "rows_to_sample"]

MOST_SAMPLED = 2000  # rows, if these are all; of more rows, a sample of some
_SAMPLED_ROWS = 1280
MOST_DIRECTIONS = 200
_ROWS_PER_DIRECTION = 8  # eigenvectors of a sample are worth something while there are many rows
_FEWEST_ROWS = 24
_SAMPLE_BYTES = 1 << 28
_SMALLEST_RATIO = 1e-6
_TYPICAL_BATCH = 256
_TINY = 1e-300
_ROWS_OF_PRODUCTS = 512
_SMALL_MATRIX = 600  # rows of those whose eigenvalues are computed as quickly
_LANCZOS_STEPS = 60
_LANCZOS_TOLERANCE = (
    1e-4  # of the largest eigenvalue; steps are shorter than the longest stable ones
)


def rows_to_sample(n_features: int, itemsize: int, n_rows: int | None = None) -> int:
    """Return how many of `n_rows` rows estimate the spectrum; their features stay below 256 MiB."""
    most = MOST_SAMPLED if n_rows is not None and n_rows <= MOST_SAMPLED else _SAMPLED_ROWS
    return int(min(most, max(50, _SAMPLE_BYTES // (n_features * itemsize))))


@dataclass(frozen=True)
class TopSpectrum:
    r"""Leading eigenvectors of the second moments of [z, c], from a sample of rows.

    Attributes
    ----------
    vectors : ndarray of shape (D + 1, k)
        Orthonormal columns; the last row belongs to the constant c.
    damping : ndarray of shape (k,)
        What P takes away along each of them, between 0 and 1.
    largest_left : float
        The largest eigenvalue of the second moments of :math:`P^{1/2} z`.
    longest_left : float
        The largest :math:`z^T P z`.
    constant : float
        c, of the size of a typical row, so that the intercept is learned as fast as the weights.
    longest, mean_square : float
        The largest and the mean :math:`|z|^2`.
    n_rows : int
        Of the sample.
    """

    vectors: NDArray[Any]
    damping: NDArray[np.float64]
    largest_left: float
    longest_left: float
    constant: float
    longest: float
    mean_square: float
    n_rows: int

    @classmethod
    def of_sample(
        cls,
        Z: NDArray[Any],
        *,
        ridge: float = 0.0,
        complete: bool = False,
        most: int = MOST_DIRECTIONS,
        constant: float | None = None,
        bounds: bool = True,
    ) -> Self:
        r"""Estimate the spectrum from rows with features Z.

        Parameters
        ----------
        Z : ndarray of shape (m, D)
        ridge : float
            :math:`\rho`.
        complete : bool
            Whether these are all the rows. Otherwise a quarter of them validates the eigenvectors
            of the others, of which those with small eigenvalues are mostly noise; the number of
            eigenvectors that leaves the least of the held-out quarter is used.
        most : int
            The most eigenvectors to use.
        constant : float
            c, if it is fixed already.
        bounds : bool
            Whether `largest_left` and `longest_left` are needed. Of a complete sample they are NaN
            otherwise, since the first takes as long as the eigenvectors.
        """
        m = len(Z)
        squares = np.einsum("ij,ij->i", Z, Z, dtype=np.float64)
        # Eigenvalues may be as large as the sum of all squares, in the precision of the features.
        if not squares.sum() < np.finfo(Z.dtype).max / 4:
            size = float(np.sqrt(squares.max()))
            raise ArgumentError(
                f"the features of some rows are not finite, or too large for products in {Z.dtype}"
                f" (up to {size:.3g})",
                *SMALLER_ROWS,
                *(["pass the data in float64"] if Z.dtype == np.float32 else []),
            )
        if constant is None:
            constant = float(np.sqrt(squares.mean())) or 1.0
        if complete:
            judged = slice(0, m)
            n_used, most = m, min(most, m - 1)
        else:
            n_used = m - m // 4 if m >= _FEWEST_ROWS else m
            judged = slice(n_used if n_used < m else 0, m)
            most = min(most, n_used // _ROWS_PER_DIRECTION) if m >= _FEWEST_ROWS else 0
        # The second moments have the eigenvalues of the products of all pairs of rows: those
        # are computed, unless there are fewer columns than rows.
        rows = products = None
        if Z.shape[1] + 1 < n_used:
            rows = np.hstack([Z, np.full((m, 1), constant)], dtype=np.float64)
            values, coordinates = _top_eigenpairs(None, most + 1, rows[:n_used])
        else:
            products = _products_of_rows(Z)
            products += constant**2
            values, coordinates = _top_eigenpairs(products[:n_used, :n_used], most + 1, None)
        values = values.astype(np.float64) / n_used
        # Smaller eigenvalues are rounding errors of the others, or what a few rows not in the
        # sample would dwarf.
        floor = float(values[0]) * max(_SMALLEST_RATIO, 1e3 * float(np.finfo(Z.dtype).eps))
        most = int(np.count_nonzero(values[:most] > floor))
        scaled = (coordinates[:, :most] / np.sqrt(values[:most] * n_used)).astype(coordinates.dtype)
        choices = []
        for k in _counts(most, complete):
            damping = _damping(values, k, floor, ridge)
            if complete and not bounds:
                choices.append((damping, np.nan, np.nan))
                continue
            if products is not None:
                along = products[judged, :n_used] @ scaled[:, :k]
                left = products[judged, judged] - (along * damping.astype(along.dtype)) @ along.T
                squares_left, found = np.diagonal(left), _largest_of_products(left, complete)
            else:
                assert rows is not None
                vectors = rows[:n_used].T @ scaled[:, :k]
                shrink = 1 - np.sqrt(1 - damping)
                damped = rows[judged] - ((rows[judged] @ vectors) * shrink) @ vectors.T
                squares_left = np.einsum("ij,ij->i", damped, damped)
                found = _largest_of_rows(damped, complete)
            least = max(float(values[k]), floor, _TINY)
            choices.append((damping, max(found, least), max(float(squares_left.max()), least)))
        damping, largest, longest = min(choices, key=lambda c: c[2] + _TYPICAL_BATCH * c[1])
        return cls(
            _vectors(Z, scaled[:, : len(damping)], constant),
            damping,
            largest,
            longest,
            constant,
            float(squares.max()),
            float(squares.mean()),
            m,
        )


def _products_of_rows(Z: NDArray[Any]) -> NDArray[Any]:
    """Return the products of all pairs of rows, in the precision of the rows.

    They are computed in fixed blocks, on several threads: bits do not depend on their number.
    """
    out = np.empty((len(Z), len(Z)), Z.dtype)
    blocks = list(slice_rows(len(Z), _ROWS_OF_PRODUCTS))

    def multiply(pair: tuple[slice, slice]) -> None:
        first, second = pair
        np.matmul(Z[first], Z[second].T, out=out[first, second])
        if first != second:
            out[second, first] = out[first, second].T

    pairs = [(first, second) for i, first in enumerate(blocks) for second in blocks[: i + 1]]
    with ThreadPoolExecutor(get_num_threads()) as pool:
        list(pool.map(multiply, pairs))
    return out


def _counts(most: int, complete: bool) -> list[int]:
    """Return the numbers of eigenvectors to try."""
    return [most] if complete else sorted({most >> shift for shift in range(9)})


def _damping(
    values: NDArray[np.float64], k: int, floor: float, ridge: float
) -> NDArray[np.float64]:
    """Return what P takes away along the first k eigenvectors."""
    tail = max(float(values[k]), floor)
    return np.clip(1 - (tail + ridge) / (values[:k] + ridge), 0.0, 1.0)


def _largest_of_products(products: NDArray[Any], complete: bool) -> float:
    """Return the largest eigenvalue of the second moments, from products of damped rows.

    That of few rows is too large: unless they are `complete`, the mean square of one half along
    the top direction of the other half is used.
    """
    half = len(products) // 2
    if complete or half < 2:
        return _largest_value(products) / len(products)
    first, second = slice(0, half), slice(half, len(products))
    means = []
    for a, b in ((first, second), (second, first)):
        values, coordinates = _top_eigenpairs(products[a, a], 1, None)
        if values[0] > 0:
            means.append(float(np.mean((products[b, a] @ coordinates[:, 0]) ** 2) / values[0]))
    return max(means, default=0.0)


def _largest_of_rows(rows: NDArray[np.float64], complete: bool) -> float:
    """Return what `_largest_of_products` does, from the damped rows themselves."""
    half = len(rows) // 2
    if complete or half < 2:
        return _largest_value(rows) / len(rows)
    means = []
    for a, b in ((rows[:half], rows[half:]), (rows[half:], rows[:half])):
        by_columns = a.shape[1] < len(a)
        values, found = _top_eigenpairs(a.T @ a if by_columns else a @ a.T, 1, None)
        if values[0] > 0:
            direction = found[:, 0] if by_columns else a.T @ found[:, 0] / np.sqrt(values[0])
            means.append(float(np.mean((b @ direction) ** 2)))
    return max(means, default=0.0)


def _largest_value(matrix: NDArray[Any]) -> float:
    """Return the largest eigenvalue of a symmetric matrix, or of RᵀR for rows R with fewer columns.

    Of large matrices by Lanczos iteration, which converges from below; all directions are kept
    orthogonal.
    """
    is_square = len(matrix) == matrix.shape[1]
    n = matrix.shape[1]
    if n <= _SMALL_MATRIX:
        square = matrix if is_square else matrix.T @ matrix
        return float(_top_eigenpairs(square, 1, None)[0][0])
    signs = np.where(np.arange(n) % 3 == 1, -0.5, 1.0) + 0.01 * np.cos(np.arange(n))
    direction = signs / np.linalg.norm(signs)
    basis = np.empty((min(_LANCZOS_STEPS, n), n))
    diagonal: list[float] = []
    beside: list[float] = []
    found = 0.0
    for step in range(len(basis)):
        basis[step] = direction
        image = matrix @ direction if is_square else matrix.T @ (matrix @ direction)
        diagonal.append(float(direction @ image))
        before, found = (
            found,
            float(scipy.linalg.eigvalsh_tridiagonal(np.array(diagonal), np.array(beside))[-1]),
        )
        for _ in range(2):  # once is not enough in floating point
            image -= basis[: step + 1].T @ (basis[: step + 1] @ image)
        rest = float(np.linalg.norm(image))
        if rest <= 1e-12 * abs(found) or abs(found - before) <= _LANCZOS_TOLERANCE * abs(found):
            break
        beside.append(rest)
        direction = image / rest
    return found


def _top_eigenpairs(
    products: NDArray[Any] | None, k: int, rows: NDArray[np.float64] | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the k largest eigenvalues of the products of all rows, descending, and eigenvectors.

    Given the `rows` instead, those of the products of columns are used, which are the same: faster
    for fewer columns than rows.
    """
    if rows is None:
        assert products is not None
        n = len(products)
        found, vectors = scipy.linalg.eigh(products, subset_by_index=[n - k, n - 1])
        return np.maximum(found[::-1], 0), vectors[:, ::-1]
    n, d = rows.shape
    found, directions = scipy.linalg.eigh(rows.T @ rows, subset_by_index=[max(d - k, 0), d - 1])
    values = np.zeros(k)
    values[: len(found)] = np.maximum(found[::-1], 0)
    vectors = np.zeros((n, k))
    roots = np.sqrt(values[: len(found)])
    np.divide(rows @ directions[:, ::-1], roots, out=vectors[:, : len(found)], where=roots > 0)
    return values, vectors


def _vectors(Z: NDArray[Any], scaled: NDArray[Any], constant: float) -> NDArray[Any]:
    """Return orthonormal eigenvectors in feature space, from coordinates in the sample."""
    n_used, k = scaled.shape
    vectors = np.empty((Z.shape[1] + 1, k), Z.dtype)
    np.matmul(Z[:n_used].T, scaled.astype(Z.dtype), out=vectors[:-1])
    vectors[-1] = constant * scaled.sum(axis=0)
    if k == 0:
        return vectors
    # They are orthogonal up to rounding, so their products are nearly the identity, and dividing
    # by a Cholesky factor of these is as accurate as a QR decomposition, in a fifth of the time.
    factor = scipy.linalg.cholesky((vectors.T @ vectors).astype(np.float64), lower=True)
    inverse = scipy.linalg.solve_triangular(factor, np.eye(k), lower=True)
    return lay_out_columns(vectors @ inverse.T.astype(Z.dtype))
