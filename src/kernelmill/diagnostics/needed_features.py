"""The number of features that a map needs: by a bound, by the variance, and by measurement."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf
from sklearn.base import clone

from kernelmill.arguments import check_integer, check_positive
from kernelmill.diagnostics.bounds import check_probability, fastfood_deviation, fourier_features
from kernelmill.diagnostics.kernel_error import check_rows, draw_pairs, exact_values, kernel_errors
from kernelmill.diagnostics.records import FeatureRequirement
from kernelmill.diagnostics.seeds import Measured, exact_kernel_of
from kernelmill.diagnostics.variance import estimate_variance, taylor_moments
from kernelmill.errors import ArgumentError
from kernelmill.kernels import Gaussian
from kernelmill.maps import (
    CountSketch,
    Fastfood,
    Nystroem,
    RandomFourier,
    RandomMaclaurin,
    TaylorSketch,
    TensorSketch,
)
from kernelmill.maps.nystroem import MOST_LANDMARKS
from kernelmill.maps.registry import describe_construction, map_name
from kernelmill.projections import HadamardProjection
from kernelmill.projections.fastfood import STRATA

__all__ = ["required_features"]

_FIRST_SIZE = 256
_MOST_STEPS = 8
_CLOSE_ENOUGH = 0.05  # of the tolerance: a measured error has a larger interval anyway
_NARROW = 1.1  # ratio of two numbers of features between which the error drops
_LARGEST_SIZE = 1 << 40
_LARGEST_TAYLOR = 1 << 16  # collisions of all terms are counted
_TIMED_ROWS = 256  # at first
_LEAST_SECONDS = 0.005  # of a call that is timed, beside which its overhead is small
_MOST_TIMED_FEATURES = 1 << 23  # of all rows of a call
_TIMED_AGAIN = 4
_FINEST_SINGLE = 1e-4  # below this tolerance, the rounding of float32 features would be measured


def required_features(
    feature_map: Any,
    X: Any,
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
    if rows.shape[0] < 2:
        raise ArgumentError("must have at least two rows to make pairs of, got 1", parameter="X")
    if tolerance < _FINEST_SINGLE:
        rows = rows.astype(np.float64)
    n_rows = rows.shape[0] if n_rows is None else check_integer("n_rows", n_rows, 1)
    most = check_integer("most_features", most_features, 1)
    least = least_size(feature_map, rows.shape[1])
    fitted = _fit(feature_map, rows, max(least, 16), random_state)
    kernel = exact_kernel_of(fitted, None)
    unit = float(exact_values(kernel, rows[:n_pairs], rows[:n_pairs]).mean())
    if not unit > 0 or not math.isfinite(unit):
        raise ArgumentError(
            f"must have rows with finite, positive k(x, x), got a mean of {unit:.3g}",
            "scale the data",
            parameter="X",
        )
    sized, training = feature_map, rows
    if isinstance(feature_map, Nystroem):  # exact at its landmarks: other rows are measured
        sized = clone(feature_map).set_params(length_scale=fitted.length_scale_, gamma=None)
        if rows.shape[0] >= 4:
            training, rows = rows[::2], rows[1::2]
        most = min(most, training.shape[0])
    left, right = draw_pairs(rows, n_pairs, random_state)
    pairs = _Pairs(fitted, left, right, tolerance * unit, probability)
    from_bound, bound = pairs.from_bound()
    from_variance, is_exact = pairs.from_variance()

    def measure(size: int) -> Measured:
        found = kernel_errors(
            clone(sized).set_params(n_components=size),
            rows,
            n_pairs=n_pairs,
            n_seeds=n_seeds,
            random_state=random_state,
            fit_on=training,
        )
        return Measured(*(each / unit for each in found.quantile(probability)))

    search = _FeatureSearch(measure, tolerance, least, most)
    search.run()
    found = [(size, search.found[size]) for size in sorted(search.found)]
    measured, low, high, is_extrapolated = search.result()
    size = None if measured is None else round_up(measured)
    if isinstance(feature_map, Nystroem) and measured is not None and size is not None:
        # With all rows as landmarks it is exact.
        measured, low, high, size = (
            min(each or n_rows, n_rows) for each in (measured, low, high, size)
        )
        is_extrapolated = is_extrapolated and measured < n_rows
        if size > MOST_LANDMARKS:
            size = None
    cost = _Cost(None, None, None)
    if size is not None:
        timed = _fit(sized, training, max(least, min(size, most)), random_state)
        cost = _measure_cost(timed, rows, size, n_rows)
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
        seconds=cost.seconds,
        map_bytes=cost.map_bytes,
        stored_bytes=cost.stored_bytes,
        n_rows=n_rows,
        sizes=[size for size, _ in found],
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


def _fit(feature_map: Any, rows: Any, size: int, seed: int) -> Any:
    return clone(feature_map).set_params(n_components=size, random_state=seed).fit(rows)


def least_size(feature_map: Any, n_columns: int) -> int:
    """Return the least number of features that the map can have."""
    if isinstance(feature_map, RandomMaclaurin) and feature_map.h01:
        return n_columns + 2
    if isinstance(feature_map, TaylorSketch) and feature_map.degree is not None:
        return int(feature_map.degree) + 1
    return 1


def _settings(feature_map: Any) -> dict[str, Any]:
    """Parameters that are not the defaults and that model files and command lines can name."""
    default = type(feature_map)().get_params(deep=False)
    skipped = ("n_components", "random_state", "n_threads")
    return {
        name: value
        for name, value in feature_map.get_params(deep=False).items()
        if name not in skipped
        and isinstance(value, (bool, int, float, str))
        and value != default[name]
    }


@dataclass(frozen=True)
class _Pairs:
    """Pairs of rows, for which theory gives numbers of features."""

    fitted: Any
    left: Any
    right: Any
    tolerance: float  # absolute
    probability: float

    def from_bound(self) -> tuple[int | None, str]:
        """Return the number of features by a bound, and its name."""
        fitted = self.fitted
        if isinstance(fitted, (TensorSketch, CountSketch, RandomMaclaurin)):
            found = self._least_size(self._chebyshev, exact_only=True)
            return found, "Chebyshev" if found is not None else ""
        if isinstance(fitted, TaylorSketch):
            found = self._bisect(self._taylor_suffices)
            return found, "Chebyshev" if found is not None else ""
        group = independent_group(fitted)
        if group is None:
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
            theorem = self._by_theorem_11()
            if theorem is not None and theorem < size:
                size, name = theorem, "Le, Sarlós & Smola, Theorem 11"
        return (size if size <= _LARGEST_SIZE else None), name

    def from_variance(self) -> tuple[int | None, bool]:
        """Return the number of features by the variance, and whether that is exact."""
        size = int(self.fitted.n_components)
        found = estimate_variance(self.fitted, self.left, self.right, size)
        if found is None:
            return None, False
        return self._least_size(self._normal), found.is_exact

    def _chebyshev(self, variances: NDArray[np.float64]) -> float:
        return 1 - float(np.minimum(variances / self.tolerance**2, 1.0).mean())

    def _normal(self, variances: NDArray[np.float64]) -> float:
        with np.errstate(divide="ignore"):
            return float(erf(self.tolerance / np.sqrt(2 * variances)).mean())

    def _taylor_suffices(self, size: int) -> bool:
        """Chebyshev's inequality for the estimate and, if features are scaled, both lengths.

        If these are within t of k, 1 and 1, the ratio is within t (1 + |k|) / (1 - t) of k.
        """
        fitted, limits = self.fitted, np.full(self.left.shape[0], self.tolerance)
        pairs = [(self.left, self.right)]
        if fitted.normalize:
            k = exact_values(fitted.exact_kernel, self.left, self.right)
            limits = self.tolerance / (1 + np.abs(k) + self.tolerance)
            pairs += [(self.left, self.left), (self.right, self.right)]
        failures = np.zeros(len(limits))
        for x, y in pairs:
            bias, variance, is_exact = taylor_moments(fitted, x, y, size)
            if not is_exact:
                return False
            left = np.maximum(limits - np.abs(bias), 0.0)
            failures += np.where(variance < left**2, variance / np.maximum(left**2, 1e-300), 1.0)
            if 1 - float(np.minimum(failures, 1.0).mean()) < self.probability:
                return False
        return True

    def _least_size(
        self, share: Callable[[NDArray[np.float64]], float], *, exact_only: bool = False
    ) -> int | None:
        """Return the least number of features for which this share of the pairs is large enough."""

        def suffices(size: int) -> bool:
            found = estimate_variance(self.fitted, self.left, self.right, size)
            return found is not None and share(found.values) >= self.probability

        found = estimate_variance(self.fitted, self.left, self.right)
        if found is None or (exact_only and not found.is_exact):
            return None
        return self._bisect(suffices)

    def _bisect(self, suffices: Callable[[int], bool]) -> int | None:
        least = least_size(self.fitted, self.left.shape[1])
        if isinstance(self.fitted, TaylorSketch):
            return _bisect(suffices, least, _LARGEST_TAYLOR, precision=0.03)
        return _bisect(suffices, least)

    def _by_theorem_11(self) -> int | None:
        """For the most distant of the pairs; half as many frequencies as columns of cos_sin."""
        k = np.clip(exact_values(self.fitted.exact_kernel, self.left, self.right), 1e-300, 1.0)
        farthest = math.sqrt(-2 * math.log(float(k.min())))
        per_frequency = 2 if self.fitted.features == "cos_sin" else 1
        found = _bisect(
            lambda n: float(fastfood_deviation(farthest, n, self.probability)) <= self.tolerance
        )
        return None if found is None else per_frequency * found


def independent_group(fitted_map: Any) -> int | None:
    """Return how many frequencies depend on each other, if each has the distribution of the kernel.

    None for other constructions: SORF and cosine transforms are biased, quasi-Monte Carlo points
    all depend on each other.
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
    suffices: Callable[[int], bool],
    least: int = 1,
    most: int = _LARGEST_SIZE,
    precision: float = 0.0,
) -> int | None:
    """Return the least integer from `least` to about `most` that suffices, if larger ones do."""
    high = max(1, least)
    while not suffices(high):
        high *= 2
        if high > most:
            return None
    low = max(high // 2, least - 1)
    while high - low > max(1, precision * low):
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


class _FeatureSearch:
    """Measures errors at some numbers of features, until the tolerance is between two of them."""

    def __init__(
        self, measure: Callable[[int], Measured], tolerance: float, least: int, most: int
    ) -> None:
        self.measure = measure
        self.tolerance = tolerance
        self.least = least
        self.most = max(least, most)
        self.found: dict[int, Measured] = {}

    def run(self) -> None:
        size = max(self.least, min(_FIRST_SIZE, self.most))
        for _ in range(_MOST_STEPS):
            self.found[size] = self.measure(size)
            if not math.isfinite(self.found[size].value) or self._is_close(size):
                return
            guess = self._next()
            if guess is None or guess in self.found:
                return
            size = guess

    def _is_close(self, size: int) -> bool:
        return abs(self.found[size].value / self.tolerance - 1) <= _CLOSE_ENOUGH

    def _ends(self) -> tuple[int | None, int | None]:
        """The largest number of features that is too small, the smallest one that suffices."""
        enough = [size for size, found in self.found.items() if found.value <= self.tolerance]
        above = min(enough, default=None)
        below = max(
            (s for s in self.found if s not in enough and (above is None or s < above)),
            default=None,
        )
        return below, above

    def _next(self) -> int | None:
        below, above = self._ends()
        if below is None and above is not None:
            return None if above <= self.least else max(self.least, above // 4)
        assert below is not None
        if above is None:
            if below >= self.most:
                return None
            factor = (self.found[below].value / self.tolerance) ** 2
            return min(self.most, max(below + 1, math.ceil(factor * below)))
        if above <= _NARROW * below or above - below < 2:
            return None
        return min(max(round(self._between(below, above)), below + 1), above - 1)

    def _between(self, below: int, above: int) -> float:
        """Where the tolerance is reached, if errors are a power of the number of features."""
        first, last = self.found[below].value, self.found[above].value
        if last < self.tolerance / 4:  # such as the estimates of a sketch that becomes exact
            return math.sqrt(below * above)
        part = math.log(first / self.tolerance) / math.log(first / last)
        return float(below * (above / below) ** part)

    def _slope(self, at: int) -> float:
        """How fast errors decrease around a number of features: at least as its square root."""
        near = min(
            (s for s in self.found if s != at), key=lambda s: abs(math.log(s / at)), default=at
        )
        values = self.found[at].value, self.found[near].value
        if near == at or min(values) < self.tolerance / 4:
            return 0.5
        slope = math.log(values[0] / values[1]) / math.log(near / at)
        return min(max(slope, 0.5), 4.0)

    def result(self) -> tuple[int | None, int | None, int | None, bool]:
        """Return the number of features, its interval, and whether it is extrapolated."""
        if not self.found or not all(math.isfinite(each.value) for each in self.found.values()):
            return None, None, None, False
        below, above = self._ends()
        close = [size for size in self.found if self._is_close(size)]
        is_extrapolated = above is None and not close
        at = close[0] if close else below if above is None else above
        assert at is not None
        near = self.found[at]
        size = float(at)
        if close or is_extrapolated:
            size = at * (near.value / self.tolerance) ** 2
        elif below is not None and near.value >= self.tolerance / 4:
            size = self._between(below, at)
        if size > _LARGEST_SIZE:
            return None, None, None, True
        power = 1 / self._slope(at)
        ends = [
            math.ceil(size * (max(0.0, each) / near.value) ** power)
            if near.value >= self.tolerance / 4 and math.isfinite(each)
            else math.ceil(size)
            for each in (near.low, near.high)
        ]
        return max(self.least, math.ceil(size)), max(self.least, ends[0]), ends[1], is_extrapolated


@dataclass(frozen=True)
class _Cost:
    seconds: float | None
    map_bytes: int | None
    stored_bytes: int | None


def _measure_cost(fitted: Any, rows: Any, size: int, n_rows: int) -> _Cost:
    """The cost of `size` features of `n_rows` rows, estimated from a map that is not larger."""
    few = rows[:_TIMED_ROWS]
    with np.errstate(over="ignore"):
        single = few.astype(np.float32)
    if np.isfinite(single.sum()):
        few = single
    n_features = fitted.transform(few).shape[1]  # draws coefficients, too
    times = [_time_once(fitted, few)]
    while times[-1] < _LEAST_SECONDS and few.shape[0] * n_features < _MOST_TIMED_FEATURES:
        few = few[np.arange(2 * few.shape[0]) % few.shape[0]]  # dense or sparse
        times = [_time_once(fitted, few)]
    times += [_time_once(fitted, few) for _ in range(_TIMED_AGAIN)]
    # Landmarks are whitened by a triangular matrix.
    factor = (size / n_features) ** (2 if isinstance(fitted, Nystroem) else 1)
    return _Cost(
        seconds=min(times) / few.shape[0] * factor * n_rows,
        map_bytes=round(coefficient_bytes(fitted) * factor),
        stored_bytes=4 * size * n_rows,
    )


def _time_once(fitted: Any, rows: Any) -> float:
    begin = time.perf_counter()
    fitted.transform(rows)
    return time.perf_counter() - begin


def coefficient_bytes(fitted_map: Any) -> int:
    """Return the memory of the arrays that a fitted map holds."""
    seen: set[int] = set()

    def count(value: Any) -> int:
        if id(value) in seen:
            return 0
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            return int(value.nbytes) if value.base is None or id(value.base) not in seen else 0
        parts: Iterable[Any] = ()
        if isinstance(value, dict):
            parts = value.values()
        elif isinstance(value, (list, tuple)):
            parts = value
        elif type(value).__module__.startswith("kernelmill.") and hasattr(value, "__dict__"):
            parts = vars(value).values()
        return sum(count(each) for each in parts)

    return count(fitted_map)
