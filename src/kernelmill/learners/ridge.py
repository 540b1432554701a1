"""Ridge regression: its objective, the normal equations, and scores of penalties."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dtrtri

from kernelmill.arguments import check_not_negative, check_positive
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.learners.features import FeatureBlock, Features

__all__ = [
    "CholeskyInverse",
    "Inverse",
    "NormalEquations",
    "RidgeObjective",
    "SpectralInverse",
    "check_penalties",
    "check_penalty",
    "gcv_scores",
    "leave_one_out_scores",
]

_Array = NDArray[np.float64]

_FEW_ALPHAS = 8  # for which as many factors take less time than the eigenvalues
_LEAST_LEFT = 1e-14  # of 1 - h, a few ulp


@dataclass(frozen=True)
class RidgeObjective:
    """Σ w |y - zᵀW - b|² + α|W|² over W and b.

    Attributes
    ----------
    features : callable
        Computes the features z of checked rows.
    n_features, n_targets : int
        The numbers of columns of the features and of y.
    penalty : float or ndarray
        α, or several to choose from.
    fit_intercept : bool
        Whether there is a constant b.
    equal_lengths : bool
        Whether the features of all rows have about the same length, as random Fourier features do.
    """

    features: Features
    n_features: int
    n_targets: int
    penalty: float | _Array
    fit_intercept: bool = True
    equal_lengths: bool = False


def check_penalty(alpha: Any, noise: Any) -> float:
    """Return the penalty that alpha or noise stands for; 1 if neither is given."""
    if alpha is not None and noise is not None:
        raise ArgumentError(
            f"only one of alpha and noise can be given, got alpha={alpha!r} and noise={noise!r}",
            Remedy("leave one out", noise=None),
        )
    if noise is not None:
        return check_positive("noise", noise)
    return 1.0 if alpha is None else check_not_negative("alpha", alpha)


def check_penalties(alpha: Any, noise: Any) -> float | _Array:
    """Return the same, or an array of penalties to choose from if alpha is a sequence."""
    if alpha is None or noise is not None or np.ndim(alpha) == 0:
        return check_penalty(alpha, noise)
    alphas = np.asarray(alpha)
    if alphas.ndim != 1 or not alphas.size or alphas.dtype.kind not in "fiu":
        raise ArgumentError(
            f"must be a number or a sequence of numbers, got {alpha!r}", parameter="alpha"
        )
    alphas = alphas.astype(np.float64)
    if not (np.isfinite(alphas) & (alphas > 0)).all():
        raise ArgumentError(
            f"must be finite and positive numbers, got {alpha!r}",
            "remove the other numbers",
            parameter="alpha",
        )
    return alphas


class CholeskyInverse:
    """(M + αI)⁻¹ from the Cholesky factor L, which is the lower triangle of an array."""

    def __init__(self, factor: _Array, alpha: float) -> None:
        self.alpha = alpha
        self._factor = factor

    def log_determinant(self) -> float:
        """Return the logarithm of det(M + αI)."""
        return 2.0 * float(np.log(np.diagonal(self._factor)).sum())

    def times(self, columns: _Array) -> _Array:
        """Return (M + αI)⁻¹ times a matrix of D rows."""
        half = dtrsm(1.0, self._factor, np.asfortranarray(columns), lower=1)
        return np.asarray(dtrsm(1.0, self._factor, half, lower=1, trans_a=1, overwrite_b=1))

    def trace(self) -> float:
        """Return the sum of the diagonal, |L⁻¹|²."""
        inverted, _ = dtrtri(self._factor, lower=1)
        return float(sum(np.vdot(column[i:], column[i:]) for i, column in enumerate(inverted.T)))

    def quadratic_forms(self, rows: _Array) -> _Array:
        """Return zᵀ (M + αI)⁻¹ z of each row z of a C-ordered matrix, which is overwritten."""
        whitened = dtrsm(1.0, self._factor, rows.T, lower=1, overwrite_b=1)
        return np.asarray(np.einsum("ji,ji->i", whitened, whitened))


class SpectralInverse:
    """(M + αI)⁻¹ from the eigenvalues and eigenvectors of M."""

    def __init__(self, eigenvalues: _Array, eigenvectors: _Array, alpha: float) -> None:
        self.alpha = alpha
        self._shifted = eigenvalues + alpha
        self._eigenvectors = eigenvectors

    def log_determinant(self) -> float:
        """Return the logarithm of det(M + αI)."""
        return float(np.log(self._shifted).sum())

    def times(self, columns: _Array) -> _Array:
        """Return (M + αI)⁻¹ times a matrix of D rows."""
        rotated = self._eigenvectors.T @ columns
        return np.asarray(self._eigenvectors @ (rotated / self._shifted[:, None]))

    def quadratic_forms(self, rows: _Array) -> _Array:
        """Return zᵀ (M + αI)⁻¹ z of each row z of a matrix."""
        rotated = rows @ self._eigenvectors
        return np.asarray(np.square(rotated, out=rotated) @ (1.0 / self._shifted))


Inverse = CholeskyInverse | SpectralInverse


class NormalEquations:
    """(M + αI) W = C for moments M of features and cross moments C with targets.

    They minimize Σ w |y - zᵀW - b|² + α|W|², with b free or absent. M is in the upper triangle of
    an array in Fortran order, which the equations own: Cholesky factors take the lower triangle,
    the eigenvectors all of it, so there is never a second array of that size.

    Attributes
    ----------
    cross : ndarray of shape (D, T)
    target_moments : ndarray of shape (T,)
    means : tuple of ndarray, or None
        The means of features and targets, by which the moments are centered; None without an
        intercept.
    n_rows, weight, log_weight
        As those of `RidgeStatistics`.
    """

    def __init__(
        self,
        moments: _Array,
        cross: _Array,
        target_moments: _Array,
        *,
        means: tuple[_Array, _Array] | None,
        n_rows: int,
        weight: float,
        log_weight: float,
    ) -> None:
        self.cross = cross
        self.target_moments = target_moments
        self.means = means
        self.n_rows = n_rows
        self.weight = weight
        self.log_weight = log_weight
        self._array = moments
        self._diagonal: _Array = np.diagonal(moments).copy()
        self._eigenvalues: _Array | None = None
        self._rotated_cross: _Array | None = None

    @property
    def n_free(self) -> int:
        """The number of unpenalized weights: 1 for the intercept, or 0."""
        return 0 if self.means is None else 1

    @property
    def rounding(self) -> float:
        """A bound on the rounding errors of the eigenvalues of M, including centering."""
        eps = float(np.finfo(np.float64).eps)
        size = float(self._diagonal.sum())
        if self.means is not None:
            size += eps * self.weight * float(self.means[0] @ self.means[0])
        return len(self._diagonal) * eps * size

    def solve(self, alpha: float) -> tuple[_Array, _Array]:
        """Weights of shape (T, D) and intercepts of shape (T,), zeros if there are none.

        Parameters
        ----------
        alpha : float
            Not negative. 0 is an error if rows leave the weights open.
        """
        return self.weights(self.inverse(alpha))

    def inverse(self, alpha: float) -> Inverse:
        """Return (M + αI)⁻¹, valid until the next call.

        Where rounding leaves the matrix without a Cholesky factor, as it may with α below 1e-12 of
        its trace, eigenvalues that rounding has made negative count as zero.
        """
        alpha = check_not_negative("alpha", alpha)
        if self._eigenvalues is None and not self._factor(alpha):
            if alpha == 0.0:
                self._restore()
                raise self._undetermined_error()
            self.spectrum()
        if self._eigenvalues is None:
            return CholeskyInverse(self._array, alpha)
        if alpha == 0.0 and self._eigenvalues[0] <= self.rounding:
            raise self._undetermined_error()
        return SpectralInverse(self._eigenvalues, self._array, alpha)

    def weights(self, inverse: Inverse) -> tuple[_Array, _Array]:
        """Return weights and intercepts, as `solve` does, from a given inverse."""
        if isinstance(inverse, SpectralInverse):
            assert self._eigenvalues is not None
            rotated = (
                self._rotate_cross(inverse.alpha) / (self._eigenvalues + inverse.alpha)[:, None]
            )
            coef = np.ascontiguousarray((self._array @ rotated).T)
        else:
            coef = np.ascontiguousarray(inverse.times(self.cross).T)
        if self.means is None:
            return coef, np.zeros(len(coef))
        feature_mean, target_mean = self.means
        return coef, target_mean - coef @ feature_mean

    def spectrum(self) -> tuple[_Array, _Array]:
        """Return the eigenvalues of M, ascending and none negative, and eigenvectors as columns.

        They are computed once, in place of M.
        """
        if self._eigenvalues is None:
            self._restore()
            eigenvalues, eigenvectors = eigh(
                self._array, lower=False, overwrite_a=True, check_finite=False, driver="evd"
            )
            self._array = eigenvectors
            self._rotated_cross = eigenvectors.T @ self.cross
            self._eigenvalues = np.maximum(eigenvalues, 0.0)
        return self._eigenvalues, self._array

    def rotated_cross(self, alpha: float) -> _Array:
        """Return VᵀC for the eigenvectors V, without rounding errors that a small α amplifies."""
        self.spectrum()
        return self._rotate_cross(alpha)

    def _rotate_cross(self, alpha: float) -> _Array:
        assert self._eigenvalues is not None
        assert self._rotated_cross is not None
        if alpha > self.rounding:
            return self._rotated_cross
        # C is a sum of the rows' features: it has no part where M has none.
        present = self._eigenvalues > self.rounding
        return np.where(present[:, None], self._rotated_cross, 0.0)

    def _factor(self, alpha: float) -> bool:
        """Write the Cholesky factor of M + αI below the diagonal; return whether there is one."""
        array = self._array
        step = 128
        for begin in range(0, len(array), step):  # tiles, because transposing is slow otherwise
            end = begin + step
            for other in range(end, len(array), step):
                tile = slice(other, other + step)
                array[tile, begin:end] = array[begin:end, tile].T
            corner = array[begin:end, begin:end]
            corner[:] = np.triu(corner) + np.triu(corner, 1).T
        np.fill_diagonal(array, self._diagonal + alpha)
        factor, info = dpotrf(array, lower=1, clean=0, overwrite_a=1)
        if not np.may_share_memory(factor, array):
            raise RuntimeError("scipy's LAPACK worked on a copy of the moments.")
        return bool(info == 0 and np.diagonal(array).min() ** 2 > self.rounding)

    def _undetermined_error(self) -> ArgumentError:
        return ArgumentError(
            "must be positive, got 0, but the features are linearly dependent on these "
            f"{self.n_rows} rows, so the weights are not determined",
            Remedy("use a small, positive penalty", alpha=1e-6),
            parameter="alpha",
        )

    def _restore(self) -> None:
        """Restore the diagonal of M, which a factor overwrites."""
        np.fill_diagonal(self._array, self._diagonal)


def gcv_scores(equations: NormalEquations, alphas: _Array) -> _Array:
    """Return the generalized cross-validation score of each penalty; less is better.

    (Σ w r² / Σ w) / (1 - t/n)² with the residuals r of the fit, the trace t of the matrix that
    maps targets to fitted values (intercept included) and the number n of rows of positive
    weight, averaged over outputs (Golub, Heath & Wahba 1979). Weights count as precisions.
    Infinite where the fit leaves no degree of freedom.
    """
    n_rows = equations.n_rows
    rounding = (n_rows + len(equations.cross)) * np.finfo(np.float64).eps
    scores = np.empty(len(alphas))
    for i, alpha in enumerate(alphas):
        if len(alphas) <= _FEW_ALPHAS:
            explained, trace = _explained_by_factor(equations, alpha)
        else:
            explained, trace = _explained_by_spectrum(equations, alpha)
        # Rounding may make the residual of a perfect fit negative.
        residuals = np.maximum(equations.target_moments - explained, 0.0)
        free = 1.0 - (equations.n_free + trace) / n_rows
        scores[i] = np.inf
        if free > rounding:
            scores[i] = residuals.mean() / equations.weight / free**2
    return scores


def _explained_by_spectrum(equations: NormalEquations, alpha: float) -> tuple[_Array, float]:
    """Return 2 cᵀw - wᵀMw for the weights w of each output, and the trace of M (M + αI)⁻¹."""
    eigenvalues, _ = equations.spectrum()
    rotated = equations.rotated_cross(alpha)
    shifted = eigenvalues + alpha
    share = (rotated / shifted[:, None]) * rotated
    explained = (share * (1 + alpha / shifted)[:, None]).sum(axis=0)
    return explained, float((eigenvalues / shifted).sum())


def _explained_by_factor(equations: NormalEquations, alpha: float) -> tuple[_Array, float]:
    """Return the same from a Cholesky factor L: an eighth of the time of the eigenvalues.

    With (M + αI) w = c, the first is cᵀw + α|w|²; the second is D - α|L⁻¹|².
    """
    inverse = equations.inverse(alpha)
    if isinstance(inverse, SpectralInverse):
        return _explained_by_spectrum(equations, alpha)
    weights = inverse.times(equations.cross)
    explained = np.einsum("ij,ij->j", equations.cross + alpha * weights, weights)
    return explained, len(weights) - alpha * inverse.trace()


def leave_one_out_scores(
    equations: NormalEquations,
    alphas: _Array,
    blocks: Iterable[FeatureBlock],
) -> _Array:
    """Return the mean squared error of predicting each row from all others, for each penalty.

    Rows are passed once more. Leaving out row i changes its residual rᵢ to rᵢ / (1 - hᵢ) with its
    leverage hᵢ = wᵢ (1/Σw + (zᵢ - z̄)ᵀ (M + αI)⁻¹ (zᵢ - z̄)), the first term with an intercept only.
    The mean is weighted as the fit is, and averaged over outputs.

    Parameters
    ----------
    equations : NormalEquations
        Those of all rows.
    alphas : ndarray of shape (A,)
    blocks : iterable of (Z, Y, weights)
        The rows of the equations; weights may be None.
    """
    eigenvalues, eigenvectors = equations.spectrum()
    mean_leverage = 1.0 / equations.weight if equations.n_free else 0.0
    errors = np.zeros(len(alphas))
    for Z, Y, weights in blocks:
        rows, targets = Z.astype(np.float64), Y
        if equations.means is not None:
            rows -= equations.means[0]
            targets = Y - equations.means[1]
        rotated = rows @ eigenvectors
        squares = np.square(rotated, out=rows)
        for i, alpha in enumerate(alphas):
            shrink = 1.0 / (eigenvalues + alpha)
            residuals = targets - rotated @ (shrink[:, None] * equations.rotated_cross(alpha))
            leverages = squares @ shrink + mean_leverage
            errors[i] += _sum_of_squares(residuals, leverages, weights)
    return errors / equations.weight


def _sum_of_squares(residuals: _Array, leverages: _Array, weights: _Array | None) -> float:
    """Return Σ w (r / (1 - w h))², averaged over outputs, for leverages h of weight one."""
    counts = np.ones(len(residuals)) if weights is None else weights
    left = 1.0 - counts * leverages
    if (left <= _LEAST_LEFT).any():
        return np.inf  # a row that determines its own fit cannot be predicted
    return float(counts @ np.square(residuals / left[:, None]).mean(axis=1))
