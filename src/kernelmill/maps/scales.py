"""Scales and centers of data: length scales, radii and column means, given or computed from X."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.arguments import LengthScale, check_length_scale, check_positive
from kernelmill.errors import ArgumentError, KernelmillError, Remedy
from kernelmill.kernels import Kernel
from kernelmill.random import Stream
from kernelmill.runtime.arrays import blocks_of_rows, row_products, weigh_columns

__all__ = [
    "check_center",
    "check_length_scales",
    "column_means",
    "distances_from",
    "minus_center",
    "resolve_gamma",
    "resolve_length_scale",
    "resolve_radius",
    "typical_length_scale",
]

_MEDIAN_ROWS = 1000
_BLOCK_ELEMENTS = 1 << 20
_RADIUS_BITS = 10


def resolve_length_scale(kernel: Kernel, length_scale: Any, gamma: Any, X: Any) -> LengthScale:
    """Return the length scale for X, or one for each column, from two parameters.

    At most one of them is set. If neither is set, it is that of ``length_scale="scale"``.
    """
    if length_scale is not None and gamma is not None:
        raise ArgumentError(
            f"only one of length_scale and gamma can be given, got length_scale={length_scale!r} "
            f"and gamma={gamma!r}",
            "omit one of them",
        )
    if length_scale is not None and not isinstance(length_scale, str):
        return check_length_scale("length_scale", length_scale, X.shape[1])
    resolved = _resolve(kernel, length_scale, gamma, X)
    if not (resolved > 0 and np.isfinite(resolved)):
        raise ArgumentError(
            f"the length scale must be positive and finite, got {resolved} from "
            f"length_scale={length_scale!r}, gamma={gamma!r}",
            "scale the data",
            Remedy("set it to a number", length_scale=...),
        )
    return resolved


def _resolve(kernel: Kernel, length_scale: Any, gamma: Any, X: Any) -> float:
    if gamma is not None and not isinstance(gamma, str):
        return kernel.length_scale_from_gamma(check_positive("gamma", gamma))
    if gamma is not None and gamma != "scale":
        median = [Remedy("use the median distance", length_scale="median")]
        raise _gamma_error(gamma, *(median if gamma == "median" else []))
    if gamma is not None or length_scale in (None, "scale"):
        return _scale_of_spread(kernel, X)
    if length_scale == "median":
        return _median_distance(kernel, X)
    raise ArgumentError(
        "must be a positive number, one for each column, 'scale' or 'median', got "
        f"{length_scale!r}",
        parameter="length_scale",
    )


def _gamma_error(
    gamma: Any, *remedies: Remedy, of: type[KernelmillError] = ArgumentError
) -> Exception:
    auto = ["pass gamma=1 / X.shape[1]"] if isinstance(gamma, str) and gamma == "auto" else []
    return of(
        f"must be a positive, finite number or 'scale', got {gamma!r}",
        *auto,
        *remedies,
        parameter="gamma",
    )


def _scale_of_spread(kernel: Kernel, X: Any) -> float:
    spread = variance_of_entries(X)
    if not np.isfinite(spread):
        raise ArgumentError(
            "the variance of X is too large for float64, so length_scale='scale' is not defined",
            "scale the data",
            Remedy("set the length scale to a number", length_scale=...),
        )
    return kernel.length_scale_of_spread(X.shape[1], spread)


def resolve_gamma(gamma: Any, X: Any) -> float:
    """The factor of inner products: a positive number, or "scale" as in scikit-learn's `SVC`."""
    if gamma != "scale" or not isinstance(gamma, str):
        if isinstance(gamma, str):
            raise _gamma_error(gamma)
        try:
            return check_positive("gamma", gamma)
        except KernelmillError as error:
            raise _gamma_error(gamma, of=type(error)) from None
    spread = X.shape[1] * variance_of_entries(X)
    resolved = 1 / spread if spread > 0 else 1.0
    if not (resolved > 0 and np.isfinite(resolved)):
        raise ArgumentError(
            f"gamma='scale' must give a positive and finite number, got {resolved} from a variance "
            f"of {spread / X.shape[1]}",
            "scale the data",
            Remedy("set gamma to a number", gamma=...),
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
    """Return the median distance between different rows of a fixed sample of the rows."""
    n_rows = X.shape[0]
    if n_rows > _MEDIAN_ROWS:
        stream = Stream.from_seed(0).substream("rows for the median distance")
        rows: NDArray[np.int64] = np.unique(stream.integers(_MEDIAN_ROWS, n_rows))
        X = X[rows]
    pairs = np.triu_indices(X.shape[0], 1)
    with np.errstate(over="ignore", invalid="ignore"):
        distances = kernel.distances(X)[pairs]
        least: Any = 0.0
        if not isinstance(X, np.ndarray):  # by squared norms: those of equal rows may be above 0
            norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
            least = 1e-7 * (norms[pairs[0]] + norms[pairs[1]])
    positive = distances[~(distances <= least)]
    median = float(np.median(positive)) if positive.size else 1.0
    if not np.isfinite(median):
        raise ArgumentError(
            "the distances between the rows of X are too large for float64",
            "scale the data",
            Remedy("set the length scale to a number", length_scale=...),
        )
    return median


def resolve_radius(radius: Any, X: Any) -> float:
    """The radius that the parameter means for X: a number, or the root mean square norm of rows.

    The latter is rounded to 10 bits, so that it does not depend on the order in which squares are
    added, for dense and sparse data. It is 1 if X is 0.
    """
    if not isinstance(radius, str):
        return check_positive("radius", radius)
    if radius != "scale":
        raise ArgumentError(
            f"must be a positive number or 'scale', got {radius!r}", parameter="radius"
        )
    stored = X if isinstance(X, np.ndarray) else X.data.reshape(-1, 1)
    step = max(1, _BLOCK_ELEMENTS // max(1, stored.shape[1]))
    blocks = [stored[begin : begin + step] for begin in range(0, stored.shape[0], step)]
    largest = max((float(np.abs(block).max(initial=0.0)) for block in blocks), default=0.0)
    if largest == 0:
        return 1.0
    scaled = (np.divide(block, largest, dtype=np.float64) for block in blocks)
    squares = math.fsum(float(np.square(block).sum()) for block in scaled)
    mantissa, exponent = math.frexp(largest * math.sqrt(squares / X.shape[0]))
    if not math.isfinite(mantissa):
        raise ArgumentError(
            "the norms of the rows of X are too large for float64",
            "scale the data",
            Remedy("set the radius to a number", radius=...),
        )
    return math.ldexp(round(math.ldexp(mantissa, _RADIUS_BITS)), exponent - _RADIUS_BITS)


def column_means(X: Any) -> NDArray[np.float64]:
    """Return the mean of each column in float64, bit-identical for a dense and a CSR matrix.

    Elements are added row after row in both cases, and zeros change nothing.
    """
    n_rows, dim = X.shape
    if not isinstance(X, np.ndarray):
        sums = np.bincount(X.indices, X.data.astype(np.float64), minlength=dim)
    else:
        sums = np.zeros(dim)
        step = max(1, _BLOCK_ELEMENTS // dim)
        for begin in range(0, n_rows, step):
            block = np.empty((min(step, n_rows - begin) + 1, dim))
            block[0], block[1:] = sums, X[begin : begin + step]
            # numpy would add a single column pairwise
            sums = np.add.accumulate(block)[-1] if dim == 1 else np.add.reduce(block, axis=0)
    return np.asarray(sums / n_rows)


def typical_length_scale(fitted_map: Any) -> float | None:
    """Return the length scale of a fitted map as one number; None if it has none.

    Of several, it is the geometric mean of those that are finite.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import Fastfood
    >>> from kernelmill.maps.scales import typical_length_scale
    >>> typical_length_scale(Fastfood(length_scale=[1.0, 4.0, np.inf]).fit(np.ones((2, 3))))
    2.0
    """
    scales = getattr(fitted_map, "length_scale_", None)
    if not isinstance(scales, np.ndarray):
        return scales
    finite = scales[np.isfinite(scales)]
    return float(np.exp(np.log(finite).mean())) if finite.size else math.inf


def check_length_scales(fitted_map: Any) -> None:
    """Raise an error unless ``length_scale`` and ``length_scale_`` are both arrays, or neither."""
    if np.ndim(fitted_map.length_scale) != np.ndim(fitted_map.length_scale_):
        raise ArgumentError(
            "must have one element for each column if and only if length_scale has",
            parameter="length_scale_",
        )


def check_center(fitted_map: Any) -> None:
    """Raise an error if ``center_`` does not match the parameter ``center``."""
    if (fitted_map.center is None) != (fitted_map.center_ is None):
        present = "absent" if fitted_map.center_ is None else "present"
        raise ArgumentError(
            f"must match center={fitted_map.center!r}, and is {present}", parameter="center_"
        )


def minus_center(
    rows: Any,
    center: NDArray[np.float64] | None,
    weights: NDArray[np.float64] | None = None,
) -> Any:
    """Dense rows minus the center, times the weights of columns, in their dtype.

    The difference is computed first, in float64: inner products with a center far from 0 would
    cancel. The center is not subtracted from sparse rows.
    """
    if center is None or not isinstance(rows, np.ndarray):
        return weigh_columns(rows, weights)
    with np.errstate(over="ignore"):
        return weigh_columns(rows - center, weights).astype(rows.dtype)


def distances_from(
    X: Any,
    center: NDArray[np.float64] | None,
    n_threads: int = 0,
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Squared distances of rows from the center, infinite if too large.

    Differences are times the weights of the columns, if there are any.
    """
    if center is None and weights is None:
        return row_products(X, n_threads=n_threads)
    if isinstance(X, np.ndarray):
        out = np.empty(X.shape[0])
        step = max(1, _BLOCK_ELEMENTS // X.shape[1])
        for rows, part in blocks_of_rows(X, out, max_rows=step):
            part[:] = row_products(minus_center(rows, center, weights), n_threads=n_threads)
        return out
    if weights is not None:
        weighted_center = None if center is None else center * weights
        return distances_from(weigh_columns(X, weights), weighted_center, n_threads)
    assert center is not None
    out = row_products(X, n_threads=n_threads)
    with np.errstate(over="ignore", invalid="ignore"):
        out -= 2 * row_products(X, center, n_threads=n_threads)
        out += row_products(center[np.newaxis], n_threads=1)[0]
    out[np.isnan(out)] = np.inf
    return np.maximum(out, 0, out=out)
