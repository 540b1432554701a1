"""Weights of a linear model as arrays of a model file: float64, float32 or scaled float16."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.arguments import check_choice
from kernelmill.storage import ModelFileError

__all__ = ["WEIGHTS", "weights_from_tensors", "weights_to_tensors"]

WEIGHTS = ("float16", "float32", "float64")
_TOP = 15  # exponent of the largest float16 weight: as much room as possible below it
_LOWEST, _HIGHEST = -100, 127  # exponents of weights that float32 holds with all digits


def weights_to_tensors(coef: NDArray[Any], weights: str) -> dict[str, NDArray[Any]]:
    """Weights of shape (n_outputs, D) in the given precision.

    Those in float16 are divided by one power of two for each output, which is in the file too: so
    the largest weight is near the largest float16, and weights down to 1e-9 of it keep 11 bits.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.learners.stored_weights import weights_from_tensors, weights_to_tensors
    >>> tensors = weights_to_tensors(np.array([[1e-7, -3e-5]]), "float16")
    >>> weights_from_tensors(tensors, "float16", np.float64).round(8)
    array([[ 1.e-07, -3.e-05]])
    """
    check_choice("weights", weights, WEIGHTS)
    if not np.isfinite(coef).all():
        raise ModelFileError("The weights must be finite to be saved, and are not; fit again.")
    if weights == "float64":
        return {"coef": coef.astype(np.float64)}
    largest = np.abs(coef).max(axis=1, initial=0.0).astype(np.float64)
    mantissas, exponents = np.frexp(largest)
    exponents += mantissas.astype(np.float16) == 1  # as it is after rounding: saved again, the same
    outside = (largest > 0) & ((exponents < _LOWEST) | (exponents > _HIGHEST))
    if outside.any():
        raise ModelFileError(
            f"The largest weight of an output must be between 1e-30 and 1e38 for weights="
            f"{weights!r}, got {largest[outside][0]:.3g}; save with weights='float64'."
        )
    if weights == "float32":
        return {"coef": coef.astype(np.float32)}
    scales = np.ldexp(1.0, np.where(largest > 0, exponents - _TOP, 0))
    scaled = coef / scales[:, np.newaxis]
    return {"coef": scaled.astype(np.float16), "coef_scale": scales.astype(np.float32)}


def weights_from_tensors(
    tensors: Mapping[str, NDArray[Any]], weights: Any, dtype: Any
) -> NDArray[Any]:
    """The weights that `weights_to_tensors` wrote, in the dtype that the model had."""
    coef = tensors.get("coef")
    if weights not in WEIGHTS or coef is None or coef.dtype != weights:
        raise ModelFileError("its weights are missing or of another kind")
    if coef.ndim != 2 or 0 in coef.shape or not np.isfinite(coef).all():
        raise ModelFileError("its weights are not a finite matrix")
    if weights != "float16":
        return coef.astype(dtype)
    scales = tensors.get("coef_scale")
    if scales is None or scales.dtype != np.float32 or scales.shape != coef.shape[:1]:
        raise ModelFileError("the scales of its weights are missing or of another kind")
    if not (np.isfinite(scales) & (scales > 0)).all():
        raise ModelFileError("the scales of its weights are not positive numbers")
    return np.asarray(coef.astype(np.float64) * scales[:, np.newaxis], dtype)
