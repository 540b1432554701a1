"""Scales and centers of data: length scales, radii and column means, given or computed from X.

Also the classes of maps that have them as parameters and fitted attributes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import LengthScale, check_length_scale, check_positive
from kernelmill.errors import ArgumentError, KernelmillError, Remedy
from kernelmill.files.kinds import Array, Choice, Float, Null, Number, PlainOrArray
from kernelmill.kernels import Gaussian, Kernel, resolve
from kernelmill.kernels.names import KernelKind
from kernelmill.maps.base import FeatureMap, fitted, parameter, with_parameters
from kernelmill.random import Stream
from kernelmill.runtime.arrays import (
    Rows,
    blocks_of_rows,
    row_products,
    split_length_scale,
    weigh_columns,
)

__all__ = [
    "GAMMA",
    "LENGTH_SCALE",
    "POSITIVE",
    "RADIUS",
    "CenteredMap",
    "KernelMap",
    "ScaleOfColumns",
    "ScaledMap",
    "check_gamma",
    "column_means",
    "distances_from",
    "minus_center",
    "resolve_gamma",
    "resolve_length_scale",
    "resolve_radius",
    "typical_length_scale",
]

ScaleOfColumns = float | str | ArrayLike | None
"""The parameter `length_scale` of maps."""

_OF_COLUMNS = Array(("float64",), ("n_features_in",), above=0, infinite=True, tensor="length_scale")
LENGTH_SCALE = PlainOrArray(Number() | Choice("scale", "median") | Null(), _OF_COLUMNS)
GAMMA = Number() | Choice("scale") | Null()
RADIUS = Number() | Choice("scale")
POSITIVE = Float(above=0)

_MEDIAN_ROWS = 1000
_BLOCK_ELEMENTS = 1 << 20
_RADIUS_BITS = 10


def resolve_length_scale(
    kernel: Kernel, length_scale: ScaleOfColumns, gamma: float | str | None, X: Rows
) -> LengthScale:
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


def _resolve(
    kernel: Kernel, length_scale: ScaleOfColumns, gamma: float | str | None, X: Rows
) -> float:
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
    gamma: object, *remedies: Remedy, of: type[KernelmillError] = ArgumentError
) -> Exception:
    auto = ["pass gamma=1 / X.shape[1]"] if isinstance(gamma, str) and gamma == "auto" else []
    return of(
        f"must be a positive, finite number or 'scale', got {gamma!r}",
        *auto,
        *remedies,
        parameter="gamma",
    )


def _scale_of_spread(kernel: Kernel, X: Rows) -> float:
    spread = variance_of_entries(X)
    if not np.isfinite(spread):
        raise ArgumentError(
            "the variance of X is too large for float64, so length_scale='scale' is not defined",
            "scale the data",
            Remedy("set the length scale to a number", length_scale=...),
        )
    return kernel.length_scale_of_spread(X.shape[1], spread)


def check_gamma(gamma: object) -> float:
    """Return the factor of inner products, a positive number."""
    if isinstance(gamma, str):
        raise _gamma_error(gamma)
    try:
        return check_positive("gamma", gamma)
    except KernelmillError as error:
        raise _gamma_error(gamma, of=type(error)) from None


def resolve_gamma(gamma: float | str, X: Rows) -> float:
    """Return the factor of inner products; "scale" is defined as in scikit-learn's `SVC`."""
    if not isinstance(gamma, str) or gamma != "scale":
        return check_gamma(gamma)
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


def variance_of_entries(X: Rows) -> float:
    """Return the variance of all entries in float64, without a large copy."""
    total = X.shape[0] * X.shape[1]
    stored = X if isinstance(X, np.ndarray) else X.data.reshape(-1, 1)
    step = max(1, _BLOCK_ELEMENTS // max(1, stored.shape[1]))
    # Deviations from one entry are exactly 0 if all entries are equal. Blocks are merged by their
    # means and sums of squares; missing entries of sparse rows are zeros.
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


def _median_distance(kernel: Kernel, X: Rows) -> float:
    """Return the median distance between different rows of a fixed sample of the rows."""
    n_rows = X.shape[0]
    if n_rows > _MEDIAN_ROWS:
        stream = Stream.from_seed(0).substream("rows for the median distance")
        rows: NDArray[np.int64] = np.unique(stream.integers(_MEDIAN_ROWS, n_rows))
        X = X[rows]
    pairs = np.triu_indices(X.shape[0], 1)
    with np.errstate(over="ignore", invalid="ignore"):
        distances = kernel.distances(X)[pairs]
        rounding: NDArray[np.float64] | float = 0.0
        if not isinstance(X, np.ndarray):  # distances from norms: those of equal rows may not be 0
            norms = np.sqrt(_squares_of_sparse(X))
            rounding = 1e-7 * (norms[pairs[0]] + norms[pairs[1]])
    positive = distances[~(distances <= rounding)]
    median = float(np.median(positive)) if positive.size else 1.0
    if not np.isfinite(median):
        raise ArgumentError(
            "the distances between the rows of X are too large for float64",
            "scale the data",
            Remedy("set the length scale to a number", length_scale=...),
        )
    return median


def _squares_of_sparse(X: Any) -> NDArray[np.float64]:
    return np.asarray(X.multiply(X).sum(axis=1)).ravel()


def resolve_radius(radius: float | str, X: Rows) -> float:
    """Return the radius for X: a number, or for "scale" the root mean square norm of rows.

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


def column_means(X: Rows) -> NDArray[np.float64]:
    """Return the mean of each column in float64, bit-identical for a dense and a CSR matrix.

    Elements are added row after row in both cases, and zeros change nothing.
    """
    n_rows, dim = X.shape
    if not isinstance(X, np.ndarray):
        sums = np.bincount(X.indices, X.data.astype(np.float64), minlength=dim).astype(np.float64)
    else:
        sums = np.zeros(dim)
        step = max(1, _BLOCK_ELEMENTS // dim)
        for begin in range(0, n_rows, step):
            block = np.empty((min(step, n_rows - begin) + 1, dim))
            block[0], block[1:] = sums, X[begin : begin + step]
            # NumPy would add a single column pairwise.
            sums = np.add.accumulate(block)[-1] if dim == 1 else np.add.reduce(block, axis=0)
    return np.asarray(sums / n_rows)


def typical_length_scale(fitted_map: object) -> float | None:
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
        return None if scales is None else float(scales)
    finite = scales[np.isfinite(scales)]
    return float(np.exp(np.log(finite).mean())) if finite.size else math.inf


@with_parameters
class ScaledMap(FeatureMap):
    """A map of a kernel with a length scale."""

    length_scale: ScaleOfColumns = parameter(LENGTH_SCALE, default=None, kw_only=True)
    gamma: float | str | None = parameter(GAMMA, default=None, kw_only=True)

    length_scale_: LengthScale = fitted(PlainOrArray(POSITIVE, _OF_COLUMNS))
    kernel_: Kernel = fitted()

    def _kernel(self) -> Kernel:
        """Return the kernel at length scale 1."""
        return Gaussian()

    def _learn(self, X: Rows) -> None:
        self.length_scale_ = self._resolve_length_scale(X)

    def _resolve_length_scale(self, X: Rows) -> LengthScale:
        return resolve_length_scale(self._kernel(), self.length_scale, self.gamma, X)

    def _check_attributes(self) -> None:
        given = 0 if self.length_scale is None else np.ndim(self.length_scale)
        if given != np.ndim(self.length_scale_):
            raise ArgumentError(
                "must have one element for each column if and only if length_scale has",
                parameter="length_scale_",
            )


@with_parameters
class KernelMap(ScaledMap):
    """A map of any shift-invariant kernel."""

    kernel: str | Kernel = parameter(KernelKind(), default="gaussian")

    def _kernel(self) -> Kernel:
        return resolve(self.kernel)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._kernel()


@with_parameters
class CenteredMap(ScaledMap):
    """A map of the Gaussian kernel whose error depends on the distances from a center."""

    center: str | None = parameter(Choice("mean") | Null(), default="mean", kw_only=True)

    center_: NDArray[np.float64] | None = fitted(
        Array(("float64",), ("n_features_in",), optional=True, tensor="center")
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.center is not None and self.center != "mean":
            raise ArgumentError(f"must be 'mean' or None, got {self.center!r}", parameter="center")

    def _learn(self, X: Rows) -> None:
        super()._learn(X)
        self.center_ = None if self.center is None else column_means(X)

    def _check_attributes(self) -> None:
        super()._check_attributes()
        if (self.center is None) != (self.center_ is None):
            present = "absent" if self.center_ is None else "present"
            raise ArgumentError(
                f"must match center={self.center!r}, and is {present}", parameter="center_"
            )

    def _build(self, dim: int, n_components: int) -> None:
        self.kernel_ = Gaussian()
        self._scale, self._weights = split_length_scale(self.length_scale_)
        self._shift = self.center_
        if self.center_ is not None and self._weights is not None:
            self._shift = self.center_ * self._weights
        self._n_features_out = n_components

    def _squared_distances(self, X: Rows) -> NDArray[np.float64]:
        """Return squared distances of rows from the center, in units of columns."""
        _, weights = split_length_scale(self.length_scale_)
        return distances_from(X, self.center_, self._threads, weights)


def minus_center(
    rows: Rows,
    center: NDArray[np.float64] | None,
    weights: NDArray[np.float64] | None = None,
) -> Rows:
    """Return dense rows minus the center, times the weights of columns, in their dtype.

    The difference is computed first, in float64: inner products with a center far from 0 would
    cancel. The center is not subtracted from sparse rows.
    """
    if center is None or not isinstance(rows, np.ndarray):
        return weigh_columns(rows, weights)
    with np.errstate(over="ignore"):
        return weigh_columns(rows - center, weights).astype(rows.dtype)


def distances_from(
    X: Rows,
    center: NDArray[np.float64] | None,
    n_threads: int = 0,
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return squared distances of rows from the center; too large ones are infinite.

    Differences are multiplied by the weights of the columns, if there are any.
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
