"""What a regressor needs for standard deviations, as arrays of a model file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from kernelmill.learners.evidence import Evidence
from kernelmill.learners.ridge import CholeskyInverse, SpectralInverse
from kernelmill.learners.ridge_fit import RidgeFit
from kernelmill.learners.stored_labels import numbers_from_values, numbers_to_values
from kernelmill.storage import ModelFileError

__all__ = ["uncertainty_from_tensors", "uncertainty_to_tensors"]

_Array = NDArray[np.float64]
_MOST_SPREAD = 1e4  # of the factor's diagonal: float32 would lose more than four digits beyond


def uncertainty_to_tensors(
    fit: RidgeFit, weights: str
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The Cholesky factor of M + αI, packed by columns, the mean of the features, and numbers.

    The factor is in float32; in float64 if the weights are, or if its diagonal spans so much that
    float32 would not do.
    """
    factor = _lower_factor(fit.inverse)
    diagonal = np.diagonal(factor).astype(np.float32)
    is_wide = not (np.isfinite(diagonal).all() and diagonal.min() * _MOST_SPREAD > diagonal.max())
    dtype = np.float64 if weights == "float64" or is_wide else np.float32
    n = len(factor)
    packed = np.empty(n * (n + 1) // 2, dtype)
    end = 0
    for j in range(n):
        begin, end = end, end + n - j
        packed[begin:end] = factor[j:, j]
    tensors: dict[str, NDArray[Any]] = {"factor": packed}
    if fit.feature_mean is not None:
        tensors["feature_mean"] = fit.feature_mean.astype(np.float64)
    evidence = fit.evidence
    values = {
        "weight": float(fit.weight),
        "objective": numbers_to_values(evidence.objective),
        "log_volume": numbers_to_values([evidence.log_volume])[0],
        "log_weight": numbers_to_values([evidence.log_weight])[0],
        "n_degrees": int(evidence.n_degrees),
    }
    return values, tensors


def _lower_factor(inverse: CholeskyInverse | SpectralInverse) -> _Array:
    """L with L Lᵀ = M + αI, in the lower triangle of an array in Fortran order."""
    if isinstance(inverse, CholeskyInverse):
        return inverse._factor
    # V S Vᵀ = (√S Vᵀ)ᵀ (√S Vᵀ): the factor R of QR, without squaring what rounding has done.
    rooted = np.sqrt(inverse._shifted)[:, np.newaxis] * inverse._eigenvectors.T
    upper = np.asarray(qr(rooted, mode="r", overwrite_a=True, check_finite=False)[0])
    upper *= np.where(np.diagonal(upper) < 0, -1.0, 1.0)[:, np.newaxis]
    return np.asfortranarray(upper.T)


def uncertainty_from_tensors(
    values: Any,
    tensors: Mapping[str, NDArray[Any]],
    *,
    alpha: float,
    coef: _Array,
    intercept: _Array,
) -> RidgeFit:
    """The fit that `uncertainty_to_tensors` described, of a model with these weights."""
    fields = {"weight", "objective", "log_volume", "log_weight", "n_degrees"}
    if type(values) is not dict or set(values) != fields:
        raise ModelFileError("its uncertainty has other fields than it should have")
    n_outputs, n = coef.shape
    packed, mean = tensors.get("factor"), tensors.get("feature_mean")
    if packed is None or packed.dtype not in (np.float32, np.float64):
        raise ModelFileError("the factor of its uncertainty is missing or of another kind")
    if packed.shape != (n * (n + 1) // 2,) or not np.isfinite(packed).all():
        raise ModelFileError("the factor of its uncertainty does not fit its weights")
    if mean is not None and not (
        mean.dtype == np.float64 and mean.shape == (n,) and np.isfinite(mean).all()
    ):
        raise ModelFileError("the mean of its features is of another kind")
    objective = np.array(numbers_from_values(values["objective"]))
    volume, log_weight = numbers_from_values([values["log_volume"], values["log_weight"]])
    n_degrees, weight = values["n_degrees"], values["weight"]
    if len(objective) != n_outputs or type(n_degrees) is not int or n_degrees < 0:
        raise ModelFileError("the evidence of its uncertainty does not fit its weights")
    if type(weight) is not float or not weight > 0:
        raise ModelFileError(f"the weight of its rows is {str(weight)[:80]}")
    factor = np.zeros((n, n), order="F")
    end = 0
    for j in range(n):
        begin, end = end, end + n - j
        factor[j:, j] = packed[begin:end]
    if not (np.diagonal(factor) > 0).all():
        raise ModelFileError("the factor of its uncertainty is not one of a positive matrix")
    return RidgeFit(
        alpha=alpha,
        coef=coef,
        intercept=intercept,
        evidence=Evidence(alpha, objective, volume, n_degrees, log_weight),
        scores=None,
        inverse=CholeskyInverse(factor, alpha),
        feature_mean=None if mean is None else mean.copy(),
        weight=weight,
    )
