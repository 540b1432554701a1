"""Errors of the Gram matrix, and their effect on ridge regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_positive
from kernelmill.diagnostics.seeds import (
    Measured,
    exact_kernel_of,
    fit_with_seeds,
    mean_of_seeds,
)
from kernelmill.errors import ArgumentError, Remedy

__all__ = ["GramErrors", "effective_dimension", "gram_errors"]


@dataclass(frozen=True)
class GramErrors:
    r"""The distance between the Gram matrix K of some rows and its estimate.

    Attributes
    ----------
    n_rows, n_components : int
    kernel_frobenius, kernel_spectral : float
        The norms of K.
    frobenius, spectral : Measured
        The norms of the difference, over seeds. An error of :math:`\epsilon` in each entry is at
        most :math:`\epsilon n` in both.
    alpha : float or None
        The penalty that the following are for; None if it was not given.
    effective_dimension : float or None
        :math:`tr K (K + \alpha)^{-1}`.
    distance : Measured or None
        The smallest :math:`\Delta` with :math:`(1 - \Delta) (K + \alpha) \preceq \hat K + \alpha
        \preceq (1 + \Delta) (K + \alpha)`. Below 1, ridge regression on the features has at most
        :math:`1 / (1 - \Delta)` times the risk of the exact one (Avron et al., 2017).
    fit_change : Measured or None
        :math:`|\hat f - f| / |f|`, f the fitted values of ridge regression at the rows; None
        without targets.
    """

    n_rows: int
    n_components: int
    kernel_frobenius: float
    kernel_spectral: float
    frobenius: Measured
    spectral: Measured
    alpha: float | None = None
    effective_dimension: float | None = None
    distance: Measured | None = None
    fit_change: Measured | None = None


def gram_errors(
    feature_map: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    alpha: float | None = None,
    kernel: Any = None,
    n_seeds: int | None = 8,
    random_state: int = 0,
) -> GramErrors:
    """Measure the errors of the Gram matrix of the rows of X, in O(n³).

    Parameters
    ----------
    feature_map : transformer
        As for :func:`kernel_errors`.
    X : array_like or CSR matrix of shape (n_rows, n_columns)
        At most a few thousand rows.
    y : array_like of shape (n_rows,), optional
        Targets of a ridge regression. They are centered.
    alpha : float, optional
        Its penalty, that of scikit-learn's `KernelRidge`.
    kernel, n_seeds, random_state
        As for :func:`kernel_errors`.

    Returns
    -------
    GramErrors

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import Fastfood
    >>> from kernelmill.diagnostics import gram_errors
    >>> X = np.random.default_rng(0).uniform(size=(200, 5))
    >>> errors = gram_errors(Fastfood(n_components=500), X, X.sum(axis=1), alpha=1.0)
    >>> print(f"{errors.effective_dimension:.1f}; {errors.distance}; {errors.fit_change}")
    37.9; 0.5473 [0.4733, 0.6214]; 0.04805 [0.04086, 0.05525]
    """
    if y is not None and alpha is None:
        raise ArgumentError("must be given with targets, got None", parameter="alpha")
    penalty = None if alpha is None else check_positive("alpha", alpha)
    targets = None
    K: NDArray[np.float64] | None = None
    frobenius, spectral, distances, changes = [], [], [], []
    for _, fitted in fit_with_seeds(feature_map, X, n_seeds, random_state):
        if K is None:  # length scales and centers are functions of X, not of the seed
            K = np.asarray(exact_kernel_of(fitted, kernel)(X, X), np.float64)
            K = (K + K.T) / 2
            if y is not None:
                targets = _center(y, K.shape[0])
            exact = None if penalty is None else _Ridge(K, penalty)
        Z = np.asarray(fitted.transform(X))
        Z = Z.astype(np.complex128 if np.iscomplexobj(Z) else np.float64)
        estimate = np.real(Z @ Z.conj().T)
        off = estimate - K
        frobenius.append(np.linalg.norm(off))
        spectral.append(_spectral_norm(off))
        if exact is not None and penalty is not None:
            distances.append(_spectral_norm(exact.whiten(off)))
            if targets is not None:
                fit = exact.smooth(targets)
                change = _Ridge(estimate, penalty).smooth(targets) - fit
                changes.append(np.linalg.norm(change) / np.linalg.norm(fit))
    assert K is not None
    return GramErrors(
        n_rows=K.shape[0],
        n_components=Z.shape[1],
        kernel_frobenius=float(np.linalg.norm(K)),
        kernel_spectral=_spectral_norm(K),
        frobenius=mean_of_seeds(frobenius),
        spectral=mean_of_seeds(spectral),
        alpha=penalty,
        effective_dimension=None if penalty is None else effective_dimension(K, penalty),
        distance=mean_of_seeds(distances) if distances else None,
        fit_change=mean_of_seeds(changes) if changes else None,
    )


def effective_dimension(K: ArrayLike, alpha: float) -> float:
    r"""Return the effective dimension of ridge regression, :math:`tr K (K + \alpha)^{-1}`.

    About as many features are needed, times a logarithm, if they are chosen well; with plain random
    features, as many as n / alpha at worst (Avron et al., 2017). For a sample of m of the n rows,
    give alpha m / n to estimate the number for all rows from their Gram matrix.

    Parameters
    ----------
    K : array_like of shape (n_rows, n_rows)
        A Gram matrix.
    alpha : float
        The penalty, positive.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.diagnostics import effective_dimension
    >>> effective_dimension(np.diag([3.0, 1.0]), 1.0)
    1.25
    """
    matrix = np.asarray(K, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ArgumentError(f"must be a square matrix, got shape {matrix.shape}", parameter="K")
    values = np.maximum(scipy.linalg.eigvalsh(matrix), 0.0)  # rounding may leave negative ones
    return float((values / (values + check_positive("alpha", alpha))).sum())


class _Ridge:
    """Solves systems of K + alpha by a Cholesky factor."""

    def __init__(self, K: NDArray[np.float64], alpha: float) -> None:
        self.alpha = alpha
        try:
            self.factor = scipy.linalg.cholesky(K + alpha * np.eye(len(K)), lower=True)
        except np.linalg.LinAlgError as error:
            raise ArgumentError(
                f"must be large enough for K + alpha to be positive definite in float64, got "
                f"{alpha:.3g}",
                Remedy("use a larger penalty", alpha=...),
                parameter="alpha",
            ) from error

    def smooth(self, targets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the fitted values K (K + alpha)^-1 y."""
        return targets - self.alpha * np.asarray(
            scipy.linalg.cho_solve((self.factor, True), targets)
        )

    def whiten(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        """L^-1 M L^-T of the factor L."""
        half = scipy.linalg.solve_triangular(self.factor, matrix, lower=True)
        return np.asarray(scipy.linalg.solve_triangular(self.factor, half.T, lower=True))


def _spectral_norm(matrix: NDArray[np.float64]) -> float:
    """Return the largest absolute eigenvalue of a symmetric matrix."""
    symmetric = (matrix + matrix.T) / 2
    n = len(symmetric)
    ends = [scipy.linalg.eigvalsh(symmetric, subset_by_index=(at, at)) for at in {0, n - 1}]
    return float(np.abs(ends).max())


def _center(y: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    targets = np.asarray(y, np.float64)
    if targets.shape != (n_rows,):
        raise ArgumentError(
            f"must have one number for each of the {n_rows} rows, got shape {targets.shape}",
            parameter="y",
        )
    centered: NDArray[np.float64] = targets - targets.mean()
    if not np.isfinite(centered).all() or not centered.any():
        found = "only equal numbers" if np.isfinite(centered).all() else "NaN or infinity"
        raise ArgumentError(
            f"must hold finite numbers that are not all equal, got {found}", parameter="y"
        )
    return centered
