"""What follows from the statistics of rows: weights, uncertainty, evidence, the best alpha."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelmill.learners.alpha_selection import gcv_scores, leave_one_out_scores
from kernelmill.learners.evidence import Evidence, evidence_of
from kernelmill.learners.regression_rows import Block
from kernelmill.learners.ridge import Inverse
from kernelmill.learners.statistics import RidgeStatistics

__all__ = ["RidgeFit", "ridge_fit"]

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class RidgeFit:
    """The exact minimum of Σ w |y - zᵀW - b|² + α|W|².

    Attributes
    ----------
    alpha : float
    coef, intercept : ndarray of shapes (T, D) and (T,)
    evidence : Evidence
    scores : ndarray, or None
        Of the penalties that alpha was chosen from.
    inverse : CholeskyInverse or SpectralInverse
        Of M + αI.
    feature_mean : ndarray of shape (D,), or None
        None without an intercept.
    weight : float
        Σ w.
    """

    alpha: float
    coef: _Array
    intercept: _Array
    evidence: Evidence
    scores: _Array | None
    inverse: Inverse
    feature_mean: _Array | None
    weight: float

    def relative_variances(self, Z: _Array) -> _Array:
        """Of the function at rows of features, by the variance of the noise; Z is overwritten.

        zᵀ (M + αI)⁻¹ z; with an intercept, 1/Σw and the same for z - z̄.
        """
        if self.feature_mean is None:
            return self.inverse.quadratic_forms(Z)
        Z -= self.feature_mean
        return self.inverse.quadratic_forms(Z) + 1.0 / self.weight


def ridge_fit(
    statistics: RidgeStatistics,
    penalty: float | _Array,
    *,
    fit_intercept: bool,
    rows: Iterable[Block] | None = None,
) -> RidgeFit:
    """Solve with the penalty, or with the best one of several.

    Parameters
    ----------
    statistics : RidgeStatistics
    penalty : float or ndarray
    fit_intercept : bool
    rows : iterable of (Z, Y, weights), optional
        The rows again: penalties are then compared by leaving out each, otherwise by generalized
        cross-validation. Of equal ones the largest is taken.
    """
    if statistics.n_rows == 0:
        raise ValueError(
            "sample_weight must be above zero for some row, got zeros; leave it out for equal "
            "weights."
        )
    equations = statistics.finalize(fit_intercept=fit_intercept)
    scores = None
    if isinstance(penalty, np.ndarray):
        if rows is None:
            scores = gcv_scores(equations, penalty)
        else:
            scores = leave_one_out_scores(equations, penalty, rows)
        penalty = float(penalty[scores == scores.min()].max())
    inverse = equations.inverse(penalty)
    coef, intercept = equations.weights(inverse)
    return RidgeFit(
        alpha=penalty,
        coef=coef,
        intercept=intercept,
        evidence=evidence_of(equations, inverse, coef),
        scores=scores,
        inverse=inverse,
        feature_mean=None if equations.means is None else equations.means[0],
        weight=equations.weight,
    )
