"""Monotone transforms of numeric columns that are skewed or have heavy tails.

A kernel machine distinguishes rows by their distances. In a standardized column with one value of
1e12, or with a long tail, almost all values are nearly equal. The transform maps ranks to quantiles
of the normal distribution (van der Waerden, 1952), which spreads the values out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np
import scipy  # scipy.special is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.files.fields import Stored
from kernelmill.files.kinds import Float, ListOf

__all__ = ["TRANSFORMS", "MonotoneTransform", "choose_transform", "most_knots"]

TRANSFORMS = ("auto", "none", "rank")

_MOST_KNOTS = 64
_FEWEST_KNOTS = 8
_KNOTS_OF_A_TABLE = 200_000  # some 6 MB of the header of a model file, which has at most 16 MiB
_FARTHEST = 5.0  # standard deviations from the mean, in the sample
_FARTHEST_OF_ALL = 10.0  # likewise, in the whole table, of which the sample may be a small part
_MOST_SKEWED = 1.5
_MORE_EXPLAINED = 0.25  # of the variance of the target, to keep a column linear
_DECIMALS = 7  # of scores: the resolution of float32, in fewer characters


@dataclass(frozen=True)
class MonotoneTransform(Stored):
    """A function that is linear between knots and constant beyond the first and the last.

    Parameters
    ----------
    knots : sequence of float
        Values of the column, increasing.
    scores : sequence of float
        The transformed values of the knots, not decreasing.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.encoding.monotone import MonotoneTransform
    >>> transform = MonotoneTransform((0.0, 10.0, 1e6), (-1.0, 1.0, 2.0))
    >>> transform.apply(np.array([-5.0, 0.0, 5.0, 1e12, np.nan]))
    array([-1., -1.,  0.,  2., nan])
    """

    knots: Annotated[tuple[float, ...], ListOf(Float(), 2, _MOST_KNOTS)]
    scores: Annotated[tuple[float, ...], ListOf(Float(), 2, _MOST_KNOTS)]

    def __post_init__(self) -> None:
        knots, scores = tuple(map(float, self.knots)), tuple(map(float, self.scores))
        object.__setattr__(self, "knots", knots)
        object.__setattr__(self, "scores", scores)
        if len(knots) != len(scores):
            raise ValueError(f"there must be a score for each of {len(knots)} knots")
        if len(knots) < 2 or not all(map(math.isfinite, knots + scores)):
            raise ValueError("knots and scores must be at least two finite numbers")
        if any(b <= a for a, b in pairwise(knots)):
            raise ValueError("knots must be increasing")
        if any(b < a for a, b in pairwise(scores)):
            raise ValueError("scores must not be decreasing")

    @property
    def is_linear(self) -> bool:
        """Whether it only clips values to the ends."""
        return len(self.knots) == 2

    def apply(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Transform float64 values; NaN stays NaN."""
        knots, scores = np.array(self.knots), np.array(self.scores)
        inside = np.clip(values, knots[0], knots[-1])
        place = np.searchsorted(knots, inside, side="right").clip(1, len(knots) - 1)
        low, high = place - 1, place
        # Halves where the difference of large numbers would overflow; those of the smallest are 0.
        with np.errstate(over="ignore"):
            unit = np.where(np.isinf(knots[high] - knots[low]), 0.5, 1.0)
        share = (inside * unit - knots[low] * unit) / (knots[high] * unit - knots[low] * unit)
        risen = scores[low] + share * (scores[high] - scores[low])
        # Rounding must not lift a value above the next knot, nor keep the last one below its score.
        result: NDArray[np.float64] = np.minimum(risen, scores[high])
        result[inside == knots[-1]] = scores[-1]
        return result


def choose_transform(
    values: NDArray[np.float64],
    kind: str,
    *,
    least: float,
    most: float,
    n_knots: int = _MOST_KNOTS,
    target: NDArray[np.float64] | None = None,
) -> MonotoneTransform | None:
    """Return the transform of a column, or None if it is to be standardized only.

    Parameters
    ----------
    values : ndarray of float64
        A sample of the column without missing values, in any order.
    kind : {"auto", "none", "rank"}
        "auto" transforms skewed and heavy-tailed columns, "rank" all. Columns with two values, and
        those that hold only 0 and 1, are never transformed.
    least, most : float
        The smallest and the largest value of the whole column.
    n_knots : int, default=64
    target : ndarray of float64, optional
        The numbers to predict, for the same rows; NaN for rows that must not be used. If the column
        itself is clearly more correlated with them than its ranks are, "auto" keeps it linear, and
        clips later values to the range of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.encoding.monotone import choose_transform
    >>> values = np.array([1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 5.0, 1e12])
    >>> choose_transform(values, "auto", least=1.0, most=1e12).apply(values).round(1)
    array([-1.7, -0.7, -0.7, -0.2,  0.3,  0.3,  1. ,  1.7])
    >>> choose_transform(values[:-1], "auto", least=1.0, most=5.0) is None
    True
    """
    if kind == "none":
        return None
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= 2 or (kind == "auto" and not _is_heavy(distinct, counts, least, most)):
        return None
    transform = _normal_scores(distinct, counts, n_knots)
    if kind == "auto" and target is not None:
        known = ~np.isnan(target)
        own, ranked, known_target = values[known], transform.apply(values[known]), target[known]
        gain = _squared_correlation(own, known_target) - _squared_correlation(ranked, known_target)
        if gain > _MORE_EXPLAINED:
            return _clip(distinct, counts)
    return transform


def most_knots(n_columns: int) -> int:
    """The largest number of knots for each of this many columns: a model file has to hold them."""
    return min(_MOST_KNOTS, max(_FEWEST_KNOTS, _KNOTS_OF_A_TABLE // max(1, n_columns)))


def _is_heavy(
    distinct: NDArray[np.float64], counts: NDArray[np.int64], least: float, most: float
) -> bool:
    """Return whether a column is strongly skewed or has values far from its mean."""
    unit = abs(distinct).max()
    z, mean, deviation = _standardize(distinct / unit, counts)
    with np.errstate(over="ignore"):
        ends = (np.array([least, most]) / unit - mean) / deviation
    return bool(
        abs(z).max() > _FARTHEST
        or abs(ends).max() > _FARTHEST_OF_ALL
        or abs((counts * z**3).sum() / counts.sum()) > _MOST_SKEWED
    )


def _standardize(
    values: NDArray[np.float64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], float, float]:
    """The standardized values, their mean and their deviation; at least two are different."""
    # Not products of vectors: their last bits depend on the number of threads.
    n = counts.sum()
    mean = float((counts * values).sum() / n)
    deviation = math.sqrt((counts * (values - mean) ** 2).sum() / n)
    return (values - mean) / deviation, mean, deviation


def _squared_correlation(values: NDArray[np.float64], target: NDArray[np.float64]) -> float:
    """Return the squared correlation of two columns; 0 if one of them is constant."""
    if len(values) < 3 or np.ptp(values / 2) == 0 or np.ptp(target / 2) == 0:
        return 0.0
    once = np.ones(len(values), np.int64)
    a, b = (_standardize(each / abs(each).max(), once)[0] for each in (values, target))
    return float((a * b).mean()) ** 2


def _clip(distinct: NDArray[np.float64], counts: NDArray[np.int64]) -> MonotoneTransform:
    """Return the standardized column, constant beyond the ends of the sample."""
    z, _, _ = _standardize(distinct / abs(distinct).max(), counts)
    return MonotoneTransform((distinct[0], distinct[-1]), tuple(np.round(z[[0, -1]], _DECIMALS)))


def _normal_scores(
    distinct: NDArray[np.float64], counts: NDArray[np.int64], n_knots: int
) -> MonotoneTransform:
    """Ranks to normal quantiles, standardized; a value that is frequent gets its middle rank."""
    scores = scipy.special.ndtri((np.cumsum(counts) - 0.5 * counts) / counts.sum())
    chosen = _choose_knots(scores, n_knots)
    knots = distinct[chosen]
    # The mean and the variance of the interpolated column, not of the scores of all ranks.
    rough = MonotoneTransform(tuple(knots), tuple(scores[chosen]))
    _, mean, deviation = _standardize(rough.apply(distinct), counts)
    return MonotoneTransform(
        tuple(knots), tuple(np.round((scores[chosen] - mean) / deviation, _DECIMALS))
    )


def _choose_knots(scores: NDArray[np.float64], n_knots: int) -> NDArray[np.intp]:
    """Return the positions whose scores are nearest to evenly spaced ones, ends included.

    Evenly spaced scores, rather than ranks, follow the tails. On both sides of a frequent value,
    where scores jump, there is a knot.
    """
    if len(scores) <= n_knots:
        return np.arange(len(scores))
    grid = np.linspace(scores[0], scores[-1], n_knots)
    right = np.searchsorted(scores, grid).clip(1, len(scores) - 1)
    nearest = right - (grid - scores[right - 1] < scores[right] - grid)
    nearest[0], nearest[-1] = 0, len(scores) - 1
    return np.unique(nearest)
