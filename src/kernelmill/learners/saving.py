"""Fitted learners to model files: the values of their fields."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from sklearn.utils.validation import check_is_fitted

from kernelmill.arguments import check_choice
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.files import ModelFileError
from kernelmill.files.kinds import Tensors, storable_random_state
from kernelmill.learners.ridge import CholeskyInverse, SpectralInverse
from kernelmill.learners.solvers.exact import RidgeFit
from kernelmill.learners.stored import (
    LEARNERS,
    MAX_UNCERTAIN_FEATURES,
    WEIGHTS,
    share_directions,
)

__all__ = ["learner_record", "scale_weights"]

_TOP = 15
"""The exponent of the largest float16 weight, with as much room as possible below it."""

_LOWEST, _HIGHEST = -100, 127
"""Exponents of weights that float32 represents with all digits."""

_MAX_SPREAD = 1e4
"""Ratio of elements of the diagonal; beyond it, float32 would lose more than four digits."""

_HOME = "kernelmill.learners"


def learner_record(
    model: Any, weights: str = "float32", uncertainty: bool | str = "auto"
) -> tuple[dict[str, Any], Tensors]:
    """Return what a model file holds of a fitted KernelClassifier or KernelRegressor.

    Parameters
    ----------
    model : KernelClassifier or KernelRegressor
        With one of kernelmill's maps. Functions given by the user raise a ModelFileError.
    weights : {"float32", "float16", "float64"}, default="float32"
        The dtype of the weights in the file.
    uncertainty : bool or "auto", default="auto"
        Whether a regressor stores what standard deviations need; "auto" does up to 4096 features.

    Returns
    -------
    dict, dict of ndarray
        The record and its tensors, for `learner_from_record`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import CountSketch, KernelRegressor
    >>> from kernelmill.learners.saving import learner_record
    >>> X = np.eye(20)
    >>> model = KernelRegressor(CountSketch(30, random_state=0)).fit(X, X[:, 0])
    >>> record, tensors = learner_record(model, uncertainty=False)
    >>> record["map"]["map"], sorted(tensors), tensors["coef"].shape
    ('count_sketch', ['coef', 'intercept'], (1, 30))
    """
    name = type(model).__name__
    if name not in LEARNERS or not type(model).__module__.startswith(_HOME):
        raise ModelFileError(
            f"only a {' or a '.join(LEARNERS)} can be saved to a model file, got {name}",
            "save it with the pickle module or skops",
        )
    check_is_fitted(model)
    model._check_parameters()  # they may have been set after `fit`
    is_name = isinstance(model.feature_map, str)
    map_stream = getattr(model.feature_map_, "stream_", model.stream_)
    coef, scale = scale_weights(np.atleast_2d(model.coef_), weights)
    values = {
        "learner": name,
        "weights": coef.dtype.name,
        "coef_dtype": model.coef_.dtype.name,
        "coef": coef,
        "coef_scale": scale,
        "dual": model._linear_model().dual,
        "intercept": np.atleast_1d(model.intercept_),
        "parameters": model,
        "random_state": storable_random_state(model.random_state, model.stream_),
        "feature_map": model.feature_map if is_name else (model.feature_map, map_stream),
        "map": model.feature_map_,
        "key": model.stream_,
        "n_features_in": model.n_features_in_,
        "feature_names_in": getattr(model, "feature_names_in_", None),
        "alpha": model.alpha_,
        "n_iter": model.n_iter_,
    }
    values |= (
        {
            "classes": model.classes_,
            "solver": str(model.solver_),
            "loss_curve": model.loss_curve_,
            "validation_curve": model.validation_curve_,
        }
        if name == "KernelClassifier"
        else _regression_values(model, weights, uncertainty)
    )
    tensors: Tensors = {}
    record = LEARNERS[name].write(values, tensors)
    share_directions(tensors)
    return record, tensors


def _regression_values(model: Any, weights: str, uncertainty: Any) -> dict[str, Any]:
    fit = _fit_to_store(model, uncertainty)
    return {
        "targets_ndim": model._targets.ndim,
        "noise": np.atleast_1d(model.noise_),
        "alphas": getattr(model, "alphas_", None),
        "scores": getattr(model, "scores_", None),
        "tuning": getattr(model, "tuning_", None),
        "uncertainty": None if fit is None else _uncertainty_values(fit, weights),
    }


def _fit_to_store(model: Any, uncertainty: Any) -> Any:
    """Return the fit whose factor goes to the file, or None."""
    if not (isinstance(uncertainty, (bool, np.bool_)) or uncertainty == "auto"):
        raise ArgumentError(
            f"must be True, False or 'auto', got {uncertainty!r}", parameter="uncertainty"
        )
    fit = getattr(model, "_fit", None)
    if uncertainty == "auto":
        return fit if model.coef_.shape[1] <= MAX_UNCERTAIN_FEATURES else None
    if uncertainty and fit is None:
        raise ArgumentError(
            "can be True only for a regressor fitted by the exact solver, got one that was fitted "
            "by conjugate gradients or loaded without uncertainty",
            Remedy("fit with the exact solver", solver="exact"),
            Remedy("save without it", uncertainty="auto"),
            parameter="uncertainty",
        )
    return fit if uncertainty else None


def _uncertainty_values(fit: RidgeFit, weights: str) -> dict[str, Any]:
    """The Cholesky factor of M + αI, packed by columns, the mean of the features, and numbers.

    The factor is in float32; in float64 if the weights are, or if its diagonal spans so much that
    float32 is not accurate enough.
    """
    factor = _lower_factor(fit.inverse)
    diagonal = np.diagonal(factor).astype(np.float32)
    is_wide = not (np.isfinite(diagonal).all() and diagonal.min() * _MAX_SPREAD > diagonal.max())
    dtype = np.float64 if weights == "float64" or is_wide else np.float32
    n = len(factor)
    packed = np.empty(n * (n + 1) // 2, dtype)
    end = 0
    for j in range(n):
        begin, end = end, end + n - j
        packed[begin:end] = factor[j:, j]
    mean, evidence = fit.feature_mean, fit.evidence
    return {
        "weight": fit.weight,
        "objective": evidence.objective,
        "log_volume": evidence.log_volume,
        "log_weight": evidence.log_weight,
        "n_degrees": evidence.n_degrees,
        "factor": packed,
        "feature_mean": None if mean is None else mean.astype(np.float64),
    }


def _lower_factor(inverse: CholeskyInverse | SpectralInverse) -> NDArray[np.float64]:
    """L with L Lᵀ = M + αI, in the lower triangle of an array in Fortran order."""
    if isinstance(inverse, CholeskyInverse):
        return inverse._factor
    # V S Vᵀ = (√S Vᵀ)ᵀ (√S Vᵀ): the factor R of QR, without squaring the rounding errors.
    rooted = np.sqrt(inverse._shifted)[:, np.newaxis] * inverse._eigenvectors.T
    upper = np.asarray(qr(rooted, mode="r", overwrite_a=True, check_finite=False)[0])
    upper *= np.where(np.diagonal(upper) < 0, -1.0, 1.0)[:, np.newaxis]
    return np.asfortranarray(upper.T)


def scale_weights(
    coef: NDArray[Any], weights: str
) -> tuple[NDArray[Any], NDArray[np.float32] | None]:
    """Return weights of shape (n_outputs, D) in a dtype, and the scales of float16 ones.

    If the largest weight of an output is not between 1e-30 and 1e38, they are in float64.

    Weights in float16 are divided by one power of two for each output, the scale. The largest
    weight is then near the largest float16, and weights down to 1e-9 of it keep 11 bits.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.learners.saving import scale_weights
    >>> coef, scale = scale_weights(np.array([[1e-7, -3e-5]]), "float16")
    >>> (coef.astype(float) * scale[:, np.newaxis]).round(8)
    array([[ 1.e-07, -3.e-05]])
    """
    check_choice("weights", weights, WEIGHTS)
    if not np.isfinite(coef).all():
        raise ModelFileError("the weights must be finite to be saved, got NaN or infinity")
    if weights == "float64":
        return coef.astype(np.float64), None
    largest = np.abs(coef).max(axis=1, initial=0.0).astype(np.float64)
    mantissas, exponents = np.frexp(largest)
    exponents += mantissas.astype(np.float16) == 1  # as it is after rounding: saved again, the same
    outside = (largest > 0) & ((exponents < _LOWEST) | (exponents > _HIGHEST))
    if outside.any():  # targets around 1e40 or 1e-36: a model is not lost for its precision
        return coef.astype(np.float64), None
    if weights == "float32":
        return coef.astype(np.float32), None
    scales = np.ldexp(1.0, np.where(largest > 0, exponents - _TOP, 0))
    return (coef / scales[:, np.newaxis]).astype(np.float16), scales.astype(np.float32)
