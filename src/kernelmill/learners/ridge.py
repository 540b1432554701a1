"""The normal equations of ridge regression, solved by Cholesky or by eigenvectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf

__all__ = ["CholeskyInverse", "Inverse", "NormalEquations", "SpectralInverse", "check_alpha"]

_Array = NDArray[np.float64]


def check_alpha(name: str, value: Any) -> float:
    """A penalty or variance as a float: finite and not negative."""
    if isinstance(value, (bool, np.bool_)) or not np.isscalar(value) or isinstance(value, str):
        raise TypeError(f"{name} must be a number, got {value!r}.")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a real number, got {value!r}.") from None
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{name} must be finite and not negative, got {value!r}.")
    return number


class CholeskyInverse:
    """(M + αI)⁻¹ from the Cholesky factor L, which is the lower triangle of an array."""

    def __init__(self, factor: _Array, alpha: float) -> None:
        self.alpha = alpha
        self._factor = factor

    def log_determinant(self) -> float:
        """Of M + αI."""
        return 2.0 * float(np.log(np.diagonal(self._factor)).sum())

    def times(self, columns: _Array) -> _Array:
        """(M + αI)⁻¹ times a matrix of D rows."""
        half = dtrsm(1.0, self._factor, np.asfortranarray(columns), lower=1)
        return np.asarray(dtrsm(1.0, self._factor, half, lower=1, trans_a=1, overwrite_b=1))

    def quadratic_forms(self, rows: _Array) -> _Array:
        """zᵀ (M + αI)⁻¹ z of each row z of a C-ordered matrix, which is overwritten."""
        whitened = dtrsm(1.0, self._factor, rows.T, lower=1, overwrite_b=1)
        return np.asarray(np.einsum("ji,ji->i", whitened, whitened))


class SpectralInverse:
    """(M + αI)⁻¹ from the eigenvalues and eigenvectors of M."""

    def __init__(self, eigenvalues: _Array, eigenvectors: _Array, alpha: float) -> None:
        self.alpha = alpha
        self._shifted = eigenvalues + alpha
        self._eigenvectors = eigenvectors

    def log_determinant(self) -> float:
        """Of M + αI."""
        return float(np.log(self._shifted).sum())

    def times(self, columns: _Array) -> _Array:
        """(M + αI)⁻¹ times a matrix of D rows."""
        rotated = self._eigenvectors.T @ columns
        return np.asarray(self._eigenvectors @ (rotated / self._shifted[:, None]))

    def quadratic_forms(self, rows: _Array) -> _Array:
        """zᵀ (M + αI)⁻¹ z of each row z of a matrix."""
        rotated = rows @ self._eigenvectors
        return np.asarray(np.square(rotated, out=rotated) @ (1.0 / self._shifted))


Inverse = CholeskyInverse | SpectralInverse


class NormalEquations:
    """(M + αI) W = C for moments M of features and cross moments C with targets.

    They minimize Σ w |y - zᵀW - b|² + α|W|², with b free or absent. M is in the upper triangle of
    an array in Fortran order, which the equations own: Cholesky factors take the lower one, the
    eigenvectors all of it, so a second array as large is never there.

    Attributes
    ----------
    cross : ndarray of shape (D, T)
    target_moments : ndarray of shape (T,)
    means : tuple of ndarray, or None
        Of features and targets, around which the moments are; None without an intercept.
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
        """What rounding may do to the eigenvalues of M, that of centering included."""
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
        """(M + αI)⁻¹, ready for use; valid until the next call.

        Where rounding leaves the matrix without a Cholesky factor, as it may with α below 1e-12 of
        its trace, eigenvalues that rounding has made negative count as zero.
        """
        alpha = check_alpha("alpha", alpha)
        if self._eigenvalues is None and not self._factor(alpha):
            if alpha == 0.0:
                self._restore()
                raise ValueError(
                    "alpha must be positive, got 0, for features that are linearly dependent on "
                    f"these {self.n_rows} rows: the weights are not determined."
                )
            self.spectrum()
        if self._eigenvalues is None:
            return CholeskyInverse(self._array, alpha)
        if alpha == 0.0 and self._eigenvalues[0] <= self.rounding:
            raise ValueError(
                "alpha must be positive, got 0, for features that are linearly dependent on these "
                f"{self.n_rows} rows: the weights are not determined."
            )
        return SpectralInverse(self._eigenvalues, self._array, alpha)

    def weights(self, inverse: Inverse) -> tuple[_Array, _Array]:
        """Weights and intercepts, as `solve` gives them, from an inverse that there is already."""
        if isinstance(inverse, SpectralInverse):
            assert self._eigenvalues is not None
            rotated = self._rotated(inverse.alpha) / (self._eigenvalues + inverse.alpha)[:, None]
            coef = np.ascontiguousarray((self._array @ rotated).T)
        else:
            coef = np.ascontiguousarray(inverse.times(self.cross).T)
        if self.means is None:
            return coef, np.zeros(len(coef))
        feature_mean, target_mean = self.means
        return coef, target_mean - coef @ feature_mean

    def spectrum(self) -> tuple[_Array, _Array]:
        """The eigenvalues of M, ascending and none negative, and its eigenvectors as columns.

        It is made once, in the place of M.
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
        """VᵀC for the eigenvectors V, without what is rounding and a tiny α would blow up."""
        self.spectrum()
        return self._rotated(alpha)

    def _rotated(self, alpha: float) -> _Array:
        assert self._eigenvalues is not None
        assert self._rotated_cross is not None
        if alpha > self.rounding:
            return self._rotated_cross
        # C is a sum of the rows' features: it has no part where M has none.
        present = self._eigenvalues > self.rounding
        return np.where(present[:, None], self._rotated_cross, 0.0)

    def _factor(self, alpha: float) -> bool:
        """Write the Cholesky factor of M + αI below; whether there is one."""
        array = self._array
        step = 256
        for begin in range(0, len(array), step):  # blocks, because transposing is slow otherwise
            end = begin + step
            array[end:, begin:end] = array[begin:end, end:].T
            corner = array[begin:end, begin:end]
            corner[:] = np.triu(corner) + np.triu(corner, 1).T
        np.fill_diagonal(array, self._diagonal + alpha)
        factor, info = dpotrf(array, lower=1, clean=0, overwrite_a=1)
        if not np.may_share_memory(factor, array):
            raise RuntimeError("scipy's LAPACK worked on a copy of the moments.")
        return bool(info == 0 and np.diagonal(array).min() ** 2 > self.rounding)

    def _restore(self) -> None:
        """Undo what a factor has done to M: the diagonal."""
        np.fill_diagonal(self._array, self._diagonal)
