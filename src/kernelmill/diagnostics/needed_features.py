"""The number of features that maps need, their cost, and the recommended map."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from timeit import Timer
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf
from sklearn.base import clone

from kernelmill.arguments import check_integer, check_positive
from kernelmill.diagnostics.approximation import (
    Measured,
    Rows,
    check_rows,
    check_two_rows,
    draw_pairs,
    exact_kernel_of,
    exact_values,
    kernel_errors,
)
from kernelmill.diagnostics.bounds import check_probability, fastfood_deviation, fourier_features
from kernelmill.diagnostics.variance import estimate_moments, estimate_variance
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.files.fields import Stored
from kernelmill.formatting import plain
from kernelmill.kernels import (
    DotProductKernel,
    Gaussian,
    Kernel,
    Polynomial,
    RadialKernel,
    resolve,
    resolve_dot_product,
)
from kernelmill.maps import (
    CountSketch,
    DotProductFastfood,
    Fastfood,
    GaussianTemplates,
    Nystroem,
    RandomFourier,
    RandomMaclaurin,
    TaylorSketch,
    TensorSketch,
)
from kernelmill.maps.base import FeatureMap
from kernelmill.maps.nystroem import MAX_LANDMARKS
from kernelmill.maps.random_fourier import ShiftInvariantMap
from kernelmill.maps.registry import describe_construction, map_name
from kernelmill.projections import HadamardProjection
from kernelmill.projections.fastfood import STRATA

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "FeatureRequirement",
    "list_maps",
    "min_features",
    "recommend_map",
    "required_features",
    "resolve_kernel",
]

# The search for the number of features
_FIRST_SIZE = 256
_MAX_MEASUREMENTS = 8
_CLOSE = 0.05  # Relative to the tolerance; intervals of measured errors are larger.
_NARROW = 1.1  # Ratio of two numbers of features with the tolerance between their errors.
_MAX_SIZE = 1 << 40
_MAX_TAYLOR_SIZE = 1 << 16  # Collisions of all terms are counted.
_MIN_SINGLE_TOLERANCE = 1e-4  # Below it, rounding of float32 features would be measured.

# The measurement of time
_TIMED_ROWS = 256  # Doubled until a call takes long enough.
_MIN_SECONDS = 0.005  # Shorter calls measure overhead.
_MAX_TIMED_FEATURES = 1 << 23  # Feature values computed in a call.
_TIMED_CALLS = 5

_EQUAL_SECONDS = 1e-3  # Shorter times are considered equal.
_MAX_DENSE_COLUMNS = 8192  # With more, dense matrices and landmarks take gigabytes.


@dataclass(frozen=True)
class FeatureRequirement(Stored):
    """The number of features that a map needs, and their cost.

    Attributes
    ----------
    map_name, construction : str
    tolerance, probability : float
    unit : float
        The unit of the tolerance: the mean of k(x, x), which is 1 for shift-invariant kernels.
    from_bound : int or None
        The number according to a bound. It is None if no bound is known or the number is above
        2**40; the same holds for all numbers below.
    bound : str
        The name of the bound.
    from_variance : int or None
        The number according to the theoretical variance, assuming normal errors.
    variance_is_exact : bool
        Whether this is the variance of the map itself; otherwise it is that of a similar
        construction.
    measured, low, high : int or None
        The measured number and its 95 % interval; None if errors are not finite.
    is_extrapolated : bool
        Whether `measured` is above the largest number that was measured. Errors are then assumed
        to decrease with the square root of the number.
    n_components : int or None
        The number to use: `measured`, rounded up to a length with fast transforms.
    seconds : float or None
        The time to compute these features for `n_rows` rows, from a short measurement.
    map_bytes : int or None
        The memory of the coefficients of the map.
    stored_bytes : int or None
        The memory that the features of all rows would take in float32. The estimators of kernelmill
        compute features in blocks and never store them.
    n_rows : int
    sizes, errors, lows, highs : list
        The numbers of features that were measured, the error that the given share of the pairs
        did not exceed, in units of `unit`, and its 95 % interval.
    settings : dict
        Parameters of the map other than the defaults.
    """

    map_name: str
    construction: str
    tolerance: float
    probability: float
    unit: float
    from_bound: int | None
    bound: str
    from_variance: int | None
    variance_is_exact: bool
    measured: int | None
    low: int | None
    high: int | None
    is_extrapolated: bool
    n_components: int | None
    seconds: float | None
    map_bytes: int | None
    stored_bytes: int | None
    n_rows: int
    sizes: list[int] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    lows: list[float] = field(default_factory=list)
    highs: list[float] = field(default_factory=list)
    settings: dict[str, bool | int | float | str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name of the map, with its variant if that is not the default."""
        variant = self.settings.get("structure") or self.settings.get("sampling")
        return f"{self.map_name} ({variant})" if variant else self.map_name

    @property
    def points(self) -> list[tuple[int, Measured]]:
        """The numbers of features that were measured, and their errors."""
        errors = map(Measured, self.errors, self.lows, self.highs)
        return list(zip(self.sizes, errors, strict=False))


def required_features(
    feature_map: FeatureMap,
    X: ArrayLike | csr_array,
    tolerance: float,
    probability: float = 0.95,
    *,
    n_rows: int | None = None,
    n_pairs: int = 250,
    n_seeds: int = 8,
    most_features: int = 16_384,
    random_state: int = 0,
) -> FeatureRequirement:
    """Return the number of features that reach a tolerance on given data, and their cost.

    The error for a random pair of rows, by a map with a random seed, must be at most the tolerance
    with this probability. Three numbers of features are returned: from a bound, which holds for any
    data and is far too large; from the theoretical variance on the pairs of the data; and as
    measured. The landmarks of `Nystroem` are drawn from one half of the rows, and pairs from the
    other.

    Parameters
    ----------
    feature_map : FeatureMap
        The map. Its `n_components` and `random_state` are ignored.
    X : array_like or CSR matrix of shape (n_samples, n_columns)
        A sample of the rows.
    tolerance : float
        The largest allowed absolute error, in units of the mean of k(x, x). Below 1e-4, features
        are computed in float64.
    probability : float, default=0.95
    n_rows : int, optional
        The number of rows for which the cost is estimated; by default that of X.
    n_pairs, n_seeds : int, default=250 and 8
        The number of pairs of rows measured with each seed, and the number of seeds.
    most_features : int, default=16_384
        The largest number of features that is measured. Beyond it, errors are extrapolated.
    random_state : int, default=0
        The first of the seeds.

    Returns
    -------
    FeatureRequirement

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import RandomFourier
    >>> from kernelmill.diagnostics import required_features
    >>> X = np.random.default_rng(0).uniform(size=(300, 10))
    >>> needed = required_features(RandomFourier(), X, tolerance=0.05)
    >>> needed.from_bound, needed.from_variance, 1100 < needed.measured < 1900
    (5903, 1400, True)
    """
    tolerance, probability = check_positive("tolerance", tolerance), check_probability(probability)
    rows = check_rows(X, "X")
    check_two_rows(rows)
    if tolerance < _MIN_SINGLE_TOLERANCE:
        rows = rows.astype(np.float64)
    n_rows = rows.shape[0] if n_rows is None else check_integer("n_rows", n_rows, 1)
    largest = check_integer("most_features", most_features, 1)
    smallest = min_features(feature_map, rows.shape[1])
    fitted = _fit(feature_map, rows, max(smallest, 16), random_state)
    kernel = exact_kernel_of(fitted, None)
    unit = float(exact_values(kernel, rows[:n_pairs], rows[:n_pairs]).mean())
    if not unit > 0 or not math.isfinite(unit):
        raise ArgumentError(
            f"must have rows with finite, positive k(x, x), got a mean of {unit:.3g}",
            "scale the data",
            parameter="X",
        )
    sized, training = feature_map, rows
    if isinstance(feature_map, Nystroem):  # It is exact at its landmarks: measure other rows.
        scale = getattr(fitted, "length_scale_", None)
        sized = clone(feature_map).set_params(length_scale=scale, gamma=None)
        if rows.shape[0] >= 4:
            training, rows = rows[::2], rows[1::2]
        largest = min(largest, training.shape[0])
    theory = _Theory(
        fitted, *draw_pairs(rows, n_pairs, random_state), tolerance * unit, probability
    )
    from_bound, bound = theory.from_bound()
    from_variance, is_exact = theory.from_variance()

    def measure(size: int) -> Measured:
        errors = kernel_errors(
            clone(sized).set_params(n_components=size),
            rows,
            n_pairs=n_pairs,
            n_seeds=n_seeds,
            random_state=random_state,
            fit_on=training,
        )
        return errors.quantile(probability) / unit

    search = _FeatureSearch(measure, tolerance, smallest, largest)
    measured, low, high = search.numbers()
    is_extrapolated = search.is_extrapolated
    size = None if measured is None else round_up(measured)
    if isinstance(feature_map, Nystroem) and measured is not None and size is not None:
        # It is exact with all rows as landmarks.
        measured, low, high, size = (
            min(each or n_rows, n_rows) for each in (measured, low, high, size)
        )
        is_extrapolated = is_extrapolated and measured < n_rows
        if size > MAX_LANDMARKS:
            size = None
    seconds = map_bytes = None
    if size is not None:
        timed = _fit(sized, training, max(smallest, min(size, largest)), random_state)
        seconds, map_bytes = _measure_cost(timed, rows, size, n_rows)
    found = [(size, search.found[size]) for size in sorted(search.found)]
    return FeatureRequirement(
        map_name=map_name(feature_map) or type(feature_map).__name__,
        construction=describe_construction(feature_map),
        tolerance=tolerance,
        probability=probability,
        unit=unit,
        from_bound=from_bound,
        bound=bound,
        from_variance=from_variance,
        variance_is_exact=is_exact,
        measured=measured,
        low=low,
        high=high,
        is_extrapolated=is_extrapolated,
        n_components=size,
        seconds=seconds,
        map_bytes=map_bytes,
        stored_bytes=None if size is None else 4 * size * n_rows,
        n_rows=n_rows,
        sizes=[each for each, _ in found],
        errors=[each.value for _, each in found],
        lows=[each.low if math.isfinite(each.low) else each.value for _, each in found],
        highs=[each.high if math.isfinite(each.high) else each.value for _, each in found],
        settings=_settings(feature_map),
    )


def round_up(size: int) -> int:
    """Return the next number of the form 4, 5, 6 or 7 times a power of two, for fast transforms.

    Examples
    --------
    >>> from kernelmill.diagnostics.needed_features import round_up
    >>> [round_up(size) for size in (1, 9, 1000, 1025)]
    [1, 10, 1024, 1280]
    """
    if size <= 8:
        return max(1, size)
    unit = 1 << ((size - 1).bit_length() - 3)
    return -(-size // unit) * unit


def _fit(feature_map: FeatureMap, rows: Rows, size: int, seed: int) -> FeatureMap:
    fitted: FeatureMap = clone(feature_map).set_params(n_components=size, random_state=seed)
    return fitted.fit(rows)


def min_features(feature_map: FeatureMap, n_columns: int) -> int:
    """Return the smallest number of features that the map can have."""
    if isinstance(feature_map, RandomMaclaurin) and feature_map.h01:
        return n_columns + 2
    if isinstance(feature_map, TaylorSketch) and feature_map.degree is not None:
        return int(feature_map.degree) + 1
    return 1


def _settings(feature_map: FeatureMap) -> dict[str, bool | int | float | str]:
    """Return parameters other than the defaults that model files and commands can represent."""
    default = type(feature_map)().get_params(deep=False)
    return {
        name: value
        for name, value in feature_map.get_params(deep=False).items()
        if name not in ("n_components", "random_state", "n_threads")
        and isinstance(value, (bool, int, float, str))
        and value != default[name]
    }


@dataclass(frozen=True)
class _Theory:
    """The numbers of features that theory gives for pairs of rows and an absolute tolerance."""

    fitted: FeatureMap
    left: Rows
    right: Rows
    tolerance: float
    probability: float

    def from_bound(self) -> tuple[int | None, str]:
        """Return the number of features by a bound, and the name of the bound."""
        fitted = self.fitted
        if isinstance(fitted, (TensorSketch, CountSketch, RandomMaclaurin, TaylorSketch)):
            found = estimate_moments(fitted, self.left, self.right, int(fitted.n_components))
            size = self._bisect(self._is_bounded) if found is not None and found.is_exact else None
            return size, "" if size is None else "Chebyshev"
        group = independent_group(fitted)
        if group is None or not isinstance(fitted, ShiftInvariantMap):
            return None, ""
        size = fourier_features(
            self.tolerance, self.probability, features=fitted.features, group_size=group
        )
        name = "Hoeffding" if group == 1 else "Hoeffding, by blocks"
        if (
            isinstance(fitted, Fastfood)
            and isinstance(fitted.kernel_, Gaussian)
            and fitted.blocks == "independent"
        ):
            # Theorem 11 for the most distant pair; cos_sin has half as many frequencies.
            k = np.clip(exact_values(fitted.exact_kernel, self.left, self.right), 1e-300, 1.0)
            distance = math.sqrt(-2 * math.log(float(k.min())))
            n_frequencies = _bisect(
                lambda n: bool(fastfood_deviation(distance, n, self.probability) <= self.tolerance)
            )
            per_frequency = 2 if fitted.features == "cos_sin" else 1
            if n_frequencies is not None and per_frequency * n_frequencies < size:
                size, name = per_frequency * n_frequencies, "Le, Sarlós & Smola, Theorem 11"
        return (size if size <= _MAX_SIZE else None), name

    def from_variance(self) -> tuple[int | None, bool]:
        """Return the number of features if errors are normal, and whether the variance is exact."""

        def suffices(size: int) -> bool:
            variance = estimate_variance(self.fitted, self.left, self.right, size)
            if variance is None:
                return False
            with np.errstate(divide="ignore"):
                inside = erf(self.tolerance / np.sqrt(2 * variance.values))
            return float(inside.mean()) >= self.probability

        found = estimate_variance(self.fitted, self.left, self.right)
        return (None, False) if found is None else (self._bisect(suffices), found.is_exact)

    def _is_bounded(self, size: int) -> bool:
        """Return whether Chebyshev's inequality guarantees the tolerance.

        If features are scaled to length 1, it is applied to both lengths, too: if the estimate and
        the lengths are within t of k, 1 and 1, the ratio is within t (1 + |k|) / (1 - t) of k.
        """
        pairs = [(self.left, self.right)]
        limits = np.full(self.left.shape[0], self.tolerance)
        if getattr(self.fitted, "normalize", False):
            k = exact_values(self.fitted.exact_kernel, self.left, self.right)
            limits = self.tolerance / (1 + np.abs(k) + self.tolerance)
            pairs += [(self.left, self.left), (self.right, self.right)]
        failures = np.zeros(len(limits))
        for x, y in pairs:
            moments = estimate_moments(self.fitted, x, y, size)
            if moments is None or (isinstance(self.fitted, TaylorSketch) and not moments.is_exact):
                return False
            squares = np.square(np.maximum(limits - np.abs(moments.bias), 0.0))
            ratio = moments.variance / np.maximum(squares, 1e-300)
            failures += np.where(moments.variance < squares, ratio, 1.0)
        return 1 - float(np.minimum(failures, 1.0).mean()) >= self.probability

    def _bisect(self, suffices: Callable[[int], bool]) -> int | None:
        low = min_features(self.fitted, self.left.shape[1])
        if isinstance(self.fitted, TaylorSketch):
            return _bisect(suffices, low, _MAX_TAYLOR_SIZE, precision=0.03)
        return _bisect(suffices, low)


def independent_group(fitted_map: FeatureMap) -> int | None:
    """Return how many frequencies depend on each other, if each has the distribution of the kernel.

    Return None for other constructions: SORF and cosine transforms are biased, and all quasi-Monte
    Carlo points depend on each other.
    """
    if isinstance(fitted_map, RandomFourier):
        return {"iid": 1, "orthogonal": int(fitted_map.n_features_in_)}.get(fitted_map.sampling)
    if isinstance(fitted_map, Fastfood) and isinstance(fitted_map.projection_, HadamardProjection):
        if fitted_map.structure != "hadamard":
            return None
        blocks = STRATA if fitted_map.blocks == "stratified" else 1
        return int(fitted_map.projection_.block_size) * blocks
    return None


def _bisect(
    suffices: Callable[[int], bool], low: int = 1, high: int = _MAX_SIZE, precision: float = 0.0
) -> int | None:
    """Return the smallest integer from `low` to about `high` that suffices, if larger ones do."""
    enough = max(1, low)
    while not suffices(enough):
        enough *= 2
        if enough > high:
            return None
    below = max(enough // 2, low - 1)
    while enough - below > max(1, precision * below):
        middle = (below + enough) // 2
        below, enough = (below, middle) if suffices(middle) else (middle, enough)
    return enough


class _FeatureSearch:
    """Measures errors of some numbers of features, until the tolerance is between two of them."""

    def __init__(
        self, measure: Callable[[int], Measured], tolerance: float, smallest: int, largest: int
    ) -> None:
        self.tolerance = tolerance
        self.smallest = smallest
        self.largest = max(smallest, largest)
        self.found: dict[int, Measured] = {}
        size: int | None = max(smallest, min(_FIRST_SIZE, self.largest))
        while size is not None and size not in self.found and len(self.found) < _MAX_MEASUREMENTS:
            self.found[size] = measure(size)
            size = self._choose_next(size)
        self.is_finite = all(math.isfinite(each.value) for each in self.found.values())
        self.close = next(filter(self._is_close, self.found), None)
        self.is_extrapolated = self.is_finite and self.close is None and self._bracket()[1] is None

    def _is_close(self, size: int) -> bool:
        return abs(self.found[size].value / self.tolerance - 1) <= _CLOSE

    def _bracket(self) -> tuple[int | None, int | None]:
        """Return the smallest number that suffices, and the largest smaller one that does not."""
        enough = [size for size, each in self.found.items() if each.value <= self.tolerance]
        above = min(enough, default=None)
        others = (s for s in self.found if s not in enough and (above is None or s < above))
        return max(others, default=None), above

    def _choose_next(self, last: int) -> int | None:
        """Return the number of features to measure next; None at the end of the search."""
        if not math.isfinite(self.found[last].value) or self._is_close(last):
            return None
        below, above = self._bracket()
        if below is None:
            return None if last <= self.smallest else max(self.smallest, last // 4)
        if above is None:
            factor = (self.found[below].value / self.tolerance) ** 2
            guess = min(self.largest, max(below + 1, math.ceil(factor * below)))
            return None if below >= self.largest else guess
        if above <= _NARROW * below or above - below < 2:
            return None
        return min(max(round(self._interpolate(below, above)), below + 1), above - 1)

    def _interpolate(self, below: int, above: int) -> float:
        """Return where the tolerance is reached if errors are a power of the number of features."""
        first, last = self.found[below].value, self.found[above].value
        if last < self.tolerance / 4:  # For example, estimates of a sketch that becomes exact.
            return math.sqrt(below * above)
        part = math.log(first / self.tolerance) / math.log(first / last)
        return float(below * (above / below) ** part)

    def _power(self, at: int) -> float:
        """Return the exponent by which errors decrease around a number of features: 1/2 or more."""
        others = (size for size in self.found if size != at)
        near = min(others, key=lambda size: abs(math.log(size / at)), default=at)
        values = self.found[at].value, self.found[near].value
        if near == at or min(values) < self.tolerance / 4:
            return 0.5
        return min(max(math.log(values[0] / values[1]) / math.log(near / at), 0.5), 4.0)

    def numbers(self) -> tuple[int | None, int | None, int | None]:
        """Return the number of features that reaches the tolerance, and its interval."""
        below, above = self._bracket()
        at = self.close or above or below
        if at is None or not self.is_finite:
            return None, None, None
        near, size = self.found[at], float(at)
        is_far_below = near.value < self.tolerance / 4
        if self.close or self.is_extrapolated:
            size = at * (near.value / self.tolerance) ** 2
        elif below is not None and not is_far_below:
            size = self._interpolate(below, at)
        if size > _MAX_SIZE:
            return None, None, None
        low, high = (
            size
            if is_far_below or not math.isfinite(each)
            else size * (max(0.0, each) / near.value) ** (1 / self._power(at))
            for each in (near.low, near.high)
        )
        return (
            max(self.smallest, math.ceil(size)),
            max(self.smallest, math.ceil(low)),
            math.ceil(high),
        )


def _measure_cost(fitted: FeatureMap, rows: Rows, size: int, n_rows: int) -> tuple[float, int]:
    """Return seconds for `n_rows` rows and bytes of a map with `size` features.

    They are extrapolated from those of the given map, which has at most as many features.
    """
    some = rows[:_TIMED_ROWS]
    with np.errstate(over="ignore"):
        single = some.astype(np.float32)
    if np.isfinite(single.sum()):
        some = single
    n_features = fitted.transform(some).shape[1]  # The first call also draws coefficients.
    timer = Timer(lambda: fitted.transform(some))
    while timer.timeit(1) < _MIN_SECONDS and some.shape[0] * n_features < _MAX_TIMED_FEATURES:
        some = some[np.arange(2 * some.shape[0]) % some.shape[0]]  # Dense or sparse.
    # The landmarks of `Nystroem` are whitened by a triangular matrix.
    factor = (size / n_features) ** (2 if isinstance(fitted, Nystroem) else 1)
    seconds = min(timer.repeat(_TIMED_CALLS, 1)) / some.shape[0] * factor * n_rows
    return seconds, round(coefficient_bytes(fitted) * factor)


def coefficient_bytes(fitted_map: FeatureMap) -> int:
    """Return the memory of the arrays that a fitted map holds."""
    seen: set[int] = set()
    values: list[object] = [fitted_map]
    total = 0
    while values:
        value = values.pop()
        while isinstance(value, np.ndarray) and isinstance(value.base, np.ndarray):
            value = value.base
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            total += value.nbytes
        elif isinstance(value, dict):
            values += value.values()
        elif isinstance(value, (list, tuple)):
            values += value
        elif type(value).__module__.startswith("kernelmill.") and hasattr(value, "__dict__"):
            values += vars(value).values()
    return total


def list_maps(
    kernel: str | Kernel | DotProductKernel = "gaussian",
    n_columns: int = 1,
    *,
    length_scale: float | str | ArrayLike | None = None,
    n_threads: int | None = None,
) -> list[FeatureMap]:
    """Return the maps that apply to a kernel, unfitted.

    Parameters
    ----------
    kernel : str, Kernel or DotProductKernel, default="gaussian"
        By name, also with parameters, or as an object of :mod:`kernelmill.kernels`. The name
        "exponential" is that of the shift-invariant kernel.
    n_columns : int, default=1
        The number of columns of the data. Beyond 8192, maps with dense matrices or landmarks are
        left out if other maps apply.
    length_scale : optional
        The length scale of shift-invariant kernels, as for :class:`~kernelmill.Fastfood`.
    n_threads : int, optional

    Returns
    -------
    list of FeatureMap

    Examples
    --------
    >>> from kernelmill.diagnostics import list_maps
    >>> [type(each).__name__ for each in list_maps("polynomial:degree=3,coef0=1")]
    ['TensorSketch', 'RandomMaclaurin', 'DotProductFastfood']
    """
    found = resolve_kernel(kernel)
    if isinstance(found, Kernel):
        maps = _list_shift_invariant_maps(found, n_columns)
        for each in maps:
            each.set_params(length_scale=length_scale)
    elif length_scale is not None:
        raise ArgumentError(
            f"cannot be set: {type(found).__name__} has no length scale",
            Remedy("leave it out", length_scale=None),
            parameter="length_scale",
        )
    else:
        has_low_degrees = bool(found.coefficients(2).any())
        maps = [RandomMaclaurin(found, h01=has_low_degrees), DotProductFastfood(found)]
        if isinstance(found, Polynomial):
            maps.insert(0, TensorSketch(found.degree, gamma=found.gamma, coef0=found.coef0))
    for each in maps:
        each.set_params(n_threads=n_threads)
    return maps


def resolve_kernel(kernel: str | Kernel | DotProductKernel) -> Kernel | DotProductKernel:
    """Return the kernel with this name; polynomials are kernels of the inner product."""
    if isinstance(kernel, (Kernel, DotProductKernel)):
        return kernel
    if isinstance(kernel, str) and kernel.partition(":")[0] in ("polynomial", "poly"):
        return resolve_dot_product(kernel)
    return resolve(kernel)


def _list_shift_invariant_maps(kernel: Kernel, n_columns: int) -> list[FeatureMap]:
    maps: list[FeatureMap] = []
    if isinstance(kernel, RadialKernel):
        maps.append(Fastfood(kernel))
        if kernel.gaussian_mixture or n_columns >= 16:
            maps.append(Fastfood(kernel, structure="sorf"))
    is_wide = n_columns > _MAX_DENSE_COLUMNS
    if not is_wide or not maps:
        maps.append(RandomFourier(kernel, store_matrix=not is_wide))
    if isinstance(kernel, RadialKernel) and not is_wide:
        maps.append(RandomFourier(kernel, sampling="orthogonal"))
    if isinstance(kernel, Gaussian):
        maps += [TaylorSketch(), GaussianTemplates()]
    return maps if is_wide else [*maps, Nystroem(kernel)]


def recommend_map(requirements: Sequence[FeatureRequirement]) -> tuple[int | None, str]:
    """Return the map whose features take the least time, and a sentence that explains the choice.

    Among times within 20 %, or of at most a millisecond, the map with the fewest features is best.

    Returns
    -------
    index : int or None
        The index of the recommended map; None if no map reaches the tolerance.
    sentence : str
    """
    usable = [
        (each.n_components, each.seconds, index)
        for index, each in enumerate(requirements)
        if each.n_components is not None and each.seconds is not None
    ]
    if not usable:
        return None, "No map reaches the tolerance. Use a larger tolerance or another kernel."
    # Models never recover what landmarks leave out of the kernel, so `Nystroem` is mentioned, but
    # recommended only if it is the only map.
    random = [each for each in usable if requirements[each[2]].map_name != "nystroem"] or usable
    enough = max(1.2 * min(seconds for _, seconds, _ in random), _EQUAL_SECONDS)
    fast = [each for each in random if each[1] <= enough]
    size, seconds, best_index = min(fast, key=itemgetter(0))
    best = requirements[best_index]
    share = plain.percent(best.probability).replace(".0 ", " ")
    sentence = (
        f"Use {best.label} with {plain.count(size, 'feature')}: {share} of the pairs are then "
        f"within {plain.number(best.tolerance)}, and the features of "
        f"{plain.count(best.n_rows, 'row')} take {_describe_duration(seconds)}"
    )
    fewest, seconds, index = min(usable, key=itemgetter(0))
    if 2 * fewest <= size:
        sentence += (
            f"; {requirements[index].label} needs the fewest, {plain.count(fewest)}, "
            f"and takes {_describe_duration(seconds)}"
        )
    if fewest >= best.n_rows:
        sentence += (
            "; the exact kernel is the better choice, since there are at least as "
            "many features as rows"
        )
    return best_index, sentence + "."


def _describe_duration(seconds: float) -> str:
    return "less than 1 ms" if seconds <= _EQUAL_SECONDS else plain.duration(seconds)
