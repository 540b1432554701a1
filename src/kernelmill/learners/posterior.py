"""The posterior of the Gaussian process of a ridge regression: standard deviations and evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelmill.errors import ArgumentError, Remedy
from kernelmill.learners.ridge import check_penalty
from kernelmill.learners.solvers.exact import RidgeFit, solve_statistics
from kernelmill.learners.statistics import RidgeStatistics

__all__ = ["Posterior"]

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class Posterior:
    """The statistics and factors that a fitted regressor needs for std, evidence and more rows.

    Attributes
    ----------
    fit : RidgeFit or None
        None after conjugate gradients, and in a regressor from a file without uncertainty.
    statistics : RidgeStatistics or None
        None after conjugate gradients, and in every regressor from a file.
    noise : ndarray of shape (T,)
        The variances of the noise.
    is_loaded : bool
        Whether the regressor is from a file.
    """

    fit: RidgeFit | None
    statistics: RidgeStatistics | None
    noise: _Array
    is_loaded: bool

    def require_fit(self) -> RidgeFit:
        """Return the fit, or raise if standard deviations are not available."""
        if self.fit is None and self.is_loaded:
            raise ArgumentError(
                "needs the factor computed by the exact solver, got a regressor from a file "
                "that does not contain it",
                "save the fitted regressor with uncertainty=True",
                parameter="return_std",
            )
        if self.fit is None:
            raise ArgumentError(
                "needs the exact solver, got a regressor fitted by solver='cg'",
                Remedy("fit again", solver="exact"),
                parameter="return_std",
            )
        if np.isnan(self.noise).any():
            raise ArgumentError(
                "needs at least two rows to estimate the noise and an intercept, got one",
                Remedy("set the noise", noise=...),
                Remedy("fit without an intercept", fit_intercept=False),
                parameter="return_std",
            )
        return self.fit

    def relative_variances(self, Z: _Array, prior: _Array | None) -> _Array:
        """Return the variances of the function at rows of features, relative to the noise.

        Parameters
        ----------
        Z : ndarray of shape (n, D)
            Is overwritten.
        prior : ndarray of shape (n,) or None
            The prior variances k(x, x), where features may leave out a part of them: those of
            landmarks do for rows far from them. None for other maps, which have all of it, up to
            their error.
        """
        fit = self.require_fit()
        if prior is None:
            return fit.relative_variances(Z)
        missing = np.maximum(prior - np.einsum("ij,ij->i", Z, Z), 0.0) / fit.alpha
        return np.asarray(fit.relative_variances(Z) + missing)

    def log_marginal_likelihood(self, alpha: float | None, noise: float | None) -> float:
        """Return the log evidence, summed over outputs, at the fitted or another penalty."""
        is_fitted = alpha is None and noise is None
        if is_fitted and self.fit is not None:
            return float(self.fit.evidence.log_likelihood(self.noise).sum())
        if self.is_loaded:
            raise ArgumentError(
                "log_marginal_likelihood needs the statistics of the rows, got a regressor from "
                "a file, which does not contain them",
                "fit again",
                "save with uncertainty=True and do not pass alpha or noise",
            )
        if self.fit is None or self.statistics is None:
            raise ArgumentError(
                "log_marginal_likelihood needs the exact solver, got a regressor fitted by "
                "solver='cg'",
                Remedy("fit again", solver="exact"),
            )
        penalty = check_penalty(alpha, noise)
        intercept = self.fit.feature_mean is not None
        fit = solve_statistics(self.statistics, penalty, fit_intercept=intercept)
        variances = fit.noise() if noise is None else np.full_like(self.noise, penalty)
        return float(fit.evidence.log_likelihood(variances).sum())

    def require_statistics(self) -> RidgeStatistics:
        """Return the statistics, or raise if rows cannot be added."""
        if self.is_loaded:
            raise ArgumentError(
                "partial_fit cannot continue with a regressor from a file, which does not "
                "contain the statistics of earlier rows",
                "fit again on all rows, or keep the regressor in memory",
            )
        if self.statistics is None:
            raise ArgumentError(
                "partial_fit needs the statistics of earlier rows, got a regressor fitted by "
                "conjugate gradients",
                Remedy("fit again", solver="exact"),
                "fit on all rows at once",
            )
        return self.statistics
