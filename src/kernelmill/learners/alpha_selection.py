"""Scores of many ridge penalties from one eigendecomposition: GCV and exact leave-one-out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.learners.ridge import NormalEquations

__all__ = ["gcv_scores", "leave_one_out_scores"]

_Array = NDArray[np.float64]

_LEAST_LEFT = 1e-14  # of 1 - h, some ulp


def gcv_scores(equations: NormalEquations, alphas: _Array) -> _Array:
    """The generalized cross-validation score of each penalty; less is better.

    (Σ w r² / Σ w) / (1 - t/n)² with the residuals r of the fit, the trace t of the matrix that
    makes fitted values of targets (intercept included) and the number n of rows of positive
    weight, averaged over outputs (Golub, Heath & Wahba 1979). Weights count as precisions.
    Infinite where the fit leaves no degree of freedom.
    """
    eigenvalues, _ = equations.spectrum()
    n_rows = equations.n_rows
    scores = np.empty(len(alphas))
    for i, alpha in enumerate(alphas):
        rotated = equations.rotated_cross(alpha)
        shifted = eigenvalues + alpha
        trace = equations.n_free + float((eigenvalues / shifted).sum())
        share = (rotated / shifted[:, None]) * rotated
        # yᵀy - 2 cᵀw + wᵀMw; rounding may leave a perfect fit a negative rest.
        explained = (share * (1 + alpha / shifted)[:, None]).sum(axis=0)
        residuals = np.maximum(equations.target_moments - explained, 0.0)
        free = 1.0 - trace / n_rows
        scores[i] = np.inf
        if free > n_rows * np.finfo(np.float64).eps:
            scores[i] = residuals.mean() / equations.weight / free**2
    return scores


def leave_one_out_scores(
    equations: NormalEquations,
    alphas: _Array,
    blocks: Iterable[tuple[NDArray[Any], _Array, _Array | None]],
) -> _Array:
    """The mean squared error of predicting each row from all others, for each penalty.

    Rows are passed once more. Leaving out row i changes its residual rᵢ to rᵢ / (1 - hᵢ) with its
    leverage hᵢ = wᵢ (1/Σw + (zᵢ - z̄)ᵀ (M + αI)⁻¹ (zᵢ - z̄)), the first term with an intercept only.
    The mean is weighted as the fit is, and averaged over outputs.

    Parameters
    ----------
    equations : NormalEquations
        Of all rows.
    alphas : ndarray of shape (A,)
    blocks : iterable of (Z, Y, weights)
        The rows that the equations were made from; weights may be None.
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
    """Σ w (r / (1 - w h))², averaged over outputs, for leverages h of rows of weight one."""
    counts = np.ones(len(residuals)) if weights is None else weights
    left = 1.0 - counts * leverages
    if (left <= _LEAST_LEFT).any():
        return np.inf  # a row that alone determines its fit is predicted by nothing
    return float(counts @ np.square(residuals / left[:, None]).mean(axis=1))
