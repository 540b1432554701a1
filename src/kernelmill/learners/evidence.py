"""The evidence of ridge regression as a Gaussian process, computed from the normal equations.

The process has the covariance s² zᵀz' and, with an intercept, a constant mean with a flat prior;
row i has noise of variance σ² / wᵢ. Its mean is the ridge fit with penalty α = σ²/s² (Rasmussen &
Williams 2006, section 2.7). With an intercept the evidence is the integral over the constant b of
p(y | b) db, their equation 2.45, also known as the restricted likelihood up to its constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from kernelmill.errors import ArgumentError
from kernelmill.learners.ridge import Inverse, NormalEquations

__all__ = ["Evidence", "evidence_of", "log_evidence_at", "most_likely_alpha"]

_Array = NDArray[np.float64]

_GRID_POINTS = 61
_LEAST_RELATIVE_ALPHA = 1e-12  # of the largest eigenvalue; rounding hides what is below
_MOST_RELATIVE_ALPHA = 10.0  # almost nothing is fitted there


@dataclass(frozen=True)
class Evidence:
    """The evidence at one penalty α, as a function of the variance of the noise.

    Attributes
    ----------
    alpha : float
    objective : ndarray of shape (T,)
        The minimum of Σ w (y - zᵀW - b)² + α|W|² for each output.
    log_volume : float
        log det(M + αI) - D log α, and log Σ w with an intercept.
    n_degrees : int
        Rows of positive weight, less one with an intercept.
    log_weight : float
        Σ log w.
    """

    alpha: float
    objective: _Array
    log_volume: float
    n_degrees: int
    log_weight: float

    def noise(self) -> _Array:
        """Return the variance σ² of the noise of each output at which the evidence is largest.

        The ratio σ²/s² stays α. NaN without a degree of freedom.
        """
        if self.n_degrees == 0:
            return np.full_like(self.objective, np.nan)
        return self.objective / self.n_degrees

    def log_likelihood(self, noise: _Array) -> _Array:
        """Return the log evidence of each output at these variances of the noise."""
        if self.alpha == 0.0:
            raise ArgumentError(
                "must be positive to compute the evidence, got 0, which means a prior of "
                "infinite variance",
                "fit with a positive alpha",
                parameter="alpha",
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            misfit = np.where(self.objective > 0, self.objective / noise, 0.0)
            return np.asarray(
                -0.5
                * (
                    self.n_degrees * (math.log(2 * math.pi) + np.log(noise))
                    - self.log_weight
                    + self.log_volume
                    + misfit
                )
            )


def evidence_of(equations: NormalEquations, inverse: Inverse, coef: _Array) -> Evidence:
    """Return the evidence at the penalty of an inverse, given its weights."""
    alpha = inverse.alpha
    explained = np.einsum("dt,td->t", equations.cross, coef)
    least = alpha * np.einsum("td,td->t", coef, coef)
    log_volume = inverse.log_determinant()
    return _evidence(equations, alpha, equations.target_moments - explained, least, log_volume)


def log_evidence_at(equations: NormalEquations, alpha: float, noise: float | None = None) -> float:
    """Return the log evidence of all outputs together, at one penalty.

    Without `noise`, its best variance for each output is taken.
    """
    inverse = equations.inverse(alpha)
    return _total(evidence_of(equations, inverse, equations.weights(inverse)[0]), noise)


def most_likely_alpha(equations: NormalEquations) -> tuple[float, float]:
    """Return the penalty with the largest evidence of all outputs together, and the log evidence.

    The variances of noise and process are the best ones for each penalty and output. The
    eigenvectors of the equations are computed once.
    """
    eigenvalues, _ = equations.spectrum()
    top = eigenvalues[-1] if eigenvalues[-1] > equations.rounding else 1.0

    def log_evidence(log_alpha: float) -> float:
        evidence = _spectral_evidence(equations, top * math.exp(log_alpha))
        return _total(evidence, None)

    grid = np.linspace(
        math.log(_LEAST_RELATIVE_ALPHA), math.log(_MOST_RELATIVE_ALPHA), _GRID_POINTS
    )
    values = [log_evidence(point) for point in grid]
    # The last of equal ones: if the data do not favor a penalty, a large one is safest.
    best = len(values) - 1 - int(np.argmax(values[::-1]))
    log_alpha, value = float(grid[best]), values[best]
    found: Any = minimize_scalar(
        lambda point: -log_evidence(point),
        bounds=(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]),
        method="bounded",
        options={"xatol": 1e-4},
    )
    if -found.fun > value:
        log_alpha, value = float(found.x), float(-found.fun)
    return top * math.exp(log_alpha), value


def _spectral_evidence(equations: NormalEquations, alpha: float) -> Evidence:
    eigenvalues, _ = equations.spectrum()
    rotated = equations.rotated_cross(alpha)
    shifted = eigenvalues + alpha
    rotated_coef = rotated / shifted[:, None]
    objective = equations.target_moments - np.einsum("dt,dt->t", rotated, rotated_coef)
    least = alpha * np.einsum("dt,dt->t", rotated_coef, rotated_coef)
    return _evidence(equations, alpha, objective, least, float(np.log(shifted).sum()))


def _evidence(
    equations: NormalEquations,
    alpha: float,
    objective: _Array,
    least: _Array,
    log_determinant: float,
) -> Evidence:
    log_volume = log_determinant
    if alpha > 0:
        log_volume -= len(equations.cross) * math.log(alpha)
    if equations.n_free:
        log_volume += math.log(equations.weight)
    return Evidence(
        alpha=alpha,
        # Rounding may make the difference too small: the penalty alone is a lower bound.
        objective=np.maximum(objective, least),
        log_volume=log_volume,
        n_degrees=equations.n_rows - equations.n_free,
        log_weight=equations.log_weight,
    )


def _total(evidence: Evidence, noise: float | None) -> float:
    if evidence.n_degrees == 0:
        return 0.0
    if noise is None:
        # A perfect fit has infinite evidence; the floor keeps penalties comparable.
        variances = np.maximum(evidence.noise(), np.finfo(np.float64).tiny)
    else:
        variances = np.full_like(evidence.objective, noise)
    return float(evidence.log_likelihood(variances).sum())
