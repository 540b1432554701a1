"""The length scale of a kernel: given, or taken from the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.arguments import check_positive
from kernelmill.kernels import Kernel
from kernelmill.random import Stream

__all__ = ["resolve_gamma", "resolve_length_scale"]

_MEDIAN_ROWS = 1000
_BLOCK_ELEMENTS = 1 << 20


def resolve_length_scale(kernel: Kernel, length_scale: Any, gamma: Any, X: Any) -> float:
    """The length scale that the two parameters, of which at most one is given, mean for X.

    Neither is the same as ``length_scale="scale"``.
    """
    resolved = _resolve(kernel, length_scale, gamma, X)
    if not (resolved > 0 and np.isfinite(resolved)):
        raise ValueError(
            f"The length scale must be positive and finite, got {resolved} from "
            f"length_scale={length_scale!r}, gamma={gamma!r}; scale the data or give another one."
        )
    return resolved


def _resolve(kernel: Kernel, length_scale: Any, gamma: Any, X: Any) -> float:
    if length_scale is not None and gamma is not None:
        raise ValueError(
            f"Only one of length_scale and gamma can be given, got length_scale={length_scale!r} "
            f"and gamma={gamma!r}; leave one out."
        )
    if gamma is not None and not isinstance(gamma, str):
        return kernel.length_scale_from_gamma(check_positive("gamma", gamma))
    if isinstance(length_scale, (list, tuple, np.ndarray)) and np.size(length_scale) != 1:
        raise ValueError(
            "length_scale must be one number, 'scale' or 'median', got an array; for one of each "
            "column, divide the columns of X by them first."
        )
    if length_scale is not None and not isinstance(length_scale, str):
        return check_positive("length_scale", length_scale)
    if gamma is not None and gamma != "scale":
        hint = {"median": "; use length_scale='median'", "auto": "; write gamma=1 / X.shape[1]"}
        raise ValueError(
            f"gamma must be a positive number or 'scale', got {gamma!r}{hint.get(gamma, '')}."
        )
    if gamma is not None or length_scale in (None, "scale"):
        return _scale_of_spread(kernel, X)
    if length_scale == "median":
        return _median_distance(kernel, X)
    raise ValueError(
        f"length_scale must be a positive number, 'scale' or 'median', got {length_scale!r}."
    )


def _scale_of_spread(kernel: Kernel, X: Any) -> float:
    spread = variance_of_entries(X)
    if not np.isfinite(spread):
        raise ValueError(
            "The variance of X is too large for float64, so length_scale='scale' has no meaning; "
            "scale the data or give length_scale as a number."
        )
    return kernel.length_scale_of_spread(X.shape[1], spread)


def resolve_gamma(gamma: Any, X: Any) -> float:
    """The factor of inner products: a positive number, or "scale" as in scikit-learn's `SVC`."""
    if gamma != "scale" or not isinstance(gamma, str):
        if isinstance(gamma, str):
            hint = "; write gamma=1 / X.shape[1]" if gamma == "auto" else ""
            raise ValueError(f"gamma must be a positive number or 'scale', got {gamma!r}{hint}.")
        try:
            return check_positive("gamma", gamma)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"gamma must be a positive, finite number or 'scale', got {gamma!r}."
            ) from None
    spread = X.shape[1] * variance_of_entries(X)
    resolved = 1 / spread if spread > 0 else 1.0
    if not (resolved > 0 and np.isfinite(resolved)):
        raise ValueError(
            f"gamma='scale' must give a positive and finite number, got {resolved} from a variance "
            f"of {spread / X.shape[1]}; scale the data or give gamma as a number."
        )
    return float(resolved)


def variance_of_entries(X: Any) -> float:
    """The variance of all entries of a dense or CSR matrix, in float64 and without a large copy."""
    total = X.shape[0] * X.shape[1]
    stored = X if isinstance(X, np.ndarray) else X.data.reshape(-1, 1)
    step = max(1, _BLOCK_ELEMENTS // max(1, stored.shape[1]))
    # Deviations from one entry, so that equal entries have exactly none. Blocks are merged by their
    # means and sums of squares; absent entries are zeros.
    pivot = float(stored[0, 0]) if stored.size else 0.0
    count, mean, deviations = float(total - stored.size), -pivot, 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for begin in range(0, stored.shape[0], step):
            block = stored[begin : begin + step].astype(np.float64)
            block -= pivot
            block_mean = float(block.mean())
            block -= block_mean
            n = count + block.size
            shift = block_mean - mean
            deviations += float(np.vdot(block, block)) + shift * shift * count * block.size / n
            mean += shift * block.size / n
            count = n
    return float(deviations / total)


def _median_distance(kernel: Kernel, X: Any) -> float:
    """The median distance between different rows of a fixed sample of the rows."""
    n_rows = X.shape[0]
    if n_rows > _MEDIAN_ROWS:
        stream = Stream.from_seed(0).substream("rows for the median distance")
        rows: NDArray[np.int64] = np.unique(stream.integers(_MEDIAN_ROWS, n_rows))
        X = X[rows]
    pairs = np.triu_indices(X.shape[0], 1)
    with np.errstate(over="ignore", invalid="ignore"):
        distances = kernel.distances(X)[pairs]
        least: Any = 0.0
        if not isinstance(X, np.ndarray):  # found from squared norms: equal rows are not quite so
            norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
            least = 1e-7 * (norms[pairs[0]] + norms[pairs[1]])
    positive = distances[~(distances <= least)]
    median = float(np.median(positive)) if positive.size else 1.0
    if not np.isfinite(median):
        raise ValueError(
            "The distances between the rows of X are too large for float64; scale the data or give "
            "length_scale as a number."
        )
    return median
