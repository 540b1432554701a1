"""What a fitted KernelRegressor says: means, standard deviations, the evidence of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelmill.learners.mapped_rows import n_rows_of
from kernelmill.learners.penalty import single_penalty
from kernelmill.learners.regressor_training import TrainedRegressor
from kernelmill.learners.ridge_fit import ridge_fit
from kernelmill.learners.statistics import rows_per_update

__all__ = ["PredictingRegressor"]


class PredictingRegressor(TrainedRegressor):
    """The predictions of `KernelRegressor`."""

    def predict(self, X: Any, return_std: bool = False, include_noise: bool = False) -> Any:
        """The mean of the process, which is the ridge fit, and its standard deviation if asked for.

        Parameters
        ----------
        X : array_like or CSR matrix of shape (n_samples, n_features)
        return_std : bool, default=False
        include_noise : bool, default=False
            Whether the standard deviation is that of a new target of weight one, noise included;
            by default it is that of the function without noise.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_outputs), float64
        std : ndarray of the same shape
            Only with `return_std`. The uncertainty of the intercept is part of it.
        """
        check_is_fitted(self)
        X = self._check_rows(X, reset=False)
        if return_std and hasattr(self, "_is_loaded") and not hasattr(self, "_fit"):
            raise ValueError(
                "return_std needs the factor of the exact solver, got a regressor from a file "
                "without it; save the fitted one with uncertainty=True (solver='exact')."
            )
        if return_std and not hasattr(self, "_fit"):
            raise ValueError(
                "return_std needs the exact solver, got a regressor fitted by solver='cg'; set "
                "solver='exact' and fit again."
            )
        if return_std and np.isnan(self.noise_).any():
            raise ValueError(
                "return_std needs two rows to estimate the noise beside an intercept, got one; "
                "give noise, or fit_intercept=False."
            )
        n_outputs = len(self.coef_)
        mean = np.empty((n_rows_of(X), n_outputs))
        spread = np.empty((n_rows_of(X), 1)) if return_std else None
        weights = np.asfortranarray(self.coef_.T)
        # The spread takes a solve with a D x D matrix, which is not read for a few rows.
        rows = rows_per_update(len(weights)) if return_std else None
        for block, features in self._feature_blocks(X, rows):
            Z = features.astype(np.float64)  # a copy: the spread is found in its place
            np.matmul(Z, weights, out=mean[block])
            if spread is not None:
                spread[block, 0] = self._fit.relative_variances(Z)
        mean += self.intercept_
        if spread is None:
            return mean if self._targets_ndim == 2 else mean[:, 0]
        std = np.sqrt((spread + (1.0 if include_noise else 0.0)) * self.noise_)
        return (mean, std) if self._targets_ndim == 2 else (mean[:, 0], std[:, 0])

    def log_marginal_likelihood(
        self, *, alpha: float | None = None, noise: float | None = None
    ) -> float:
        """The logarithm of the evidence of the fitted rows, outputs added up.

        With an intercept, p(y) is the integral of p(y | b) over its flat prior db, with the factor
        (2π)^(-(n-1)/2): what Rasmussen & Williams (2006) have in equation 2.45. Only the statistics
        are needed, in O(D³) for another alpha or noise than the fitted ones.

        Parameters
        ----------
        alpha : float, optional
            Another ratio of the variances of noise and process; the noise is estimated for it.
        noise : float, optional
            Another variance of the noise; that of the process is one.
        """
        check_is_fitted(self)
        needs_statistics = alpha is not None or noise is not None or not hasattr(self, "_fit")
        if hasattr(self, "_is_loaded") and needs_statistics:
            raise ValueError(
                "log_marginal_likelihood needs the statistics of the rows, got a regressor from a "
                "file, which has none; fit again, or save with uncertainty=True and leave alpha "
                "and noise out."
            )
        if needs_statistics and not hasattr(self, "statistics_"):
            raise ValueError(
                "log_marginal_likelihood needs the exact solver, got a regressor fitted by "
                "solver='cg'; set solver='exact' and fit again."
            )
        evidence = self._fit.evidence
        variances = np.atleast_1d(np.asarray(self.noise_, dtype=np.float64))
        if alpha is not None or noise is not None:
            given = single_penalty(alpha, noise)
            intercept = self._fit.feature_mean is not None
            evidence = ridge_fit(self.statistics_, given, fit_intercept=intercept).evidence
            variances = evidence.noise() if noise is None else np.full(len(self.coef_), given)
        return float(evidence.log_likelihood(variances).sum())
