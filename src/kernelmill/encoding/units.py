"""Columns in one unit, such as pixels, which lose by standardization.

Standardizing gives all columns the same weight. Where they have one unit, their variances are
information: the margins of images hardly vary, and noise there is not as important as strokes in
the middle. Such columns are divided by one number instead.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["common_scale", "may_share_unit"]

_FEWEST_COLUMNS = 8
_SMALLEST_RANGE = 1e-100
_LEAST_RANGE = 0.2  # of the median column, as a share of the range of all


def may_share_unit(least: ArrayLike, most: ArrayLike) -> bool:
    """Return whether the columns may have one unit, by their smallest and largest values.

    There must be at least eight columns, and half of them must range over a fifth of the interval
    that contains all values.

    Examples
    --------
    >>> from kernelmill.encoding.units import may_share_unit
    >>> may_share_unit([0.0] * 64, [16.0] * 60 + [1.0] * 4)  # pixels
    True
    >>> may_share_unit([0.0] * 10, [1.0, 90.0, 1e5, 3.0, 7.0, 12.0, 1.0, 5.0, 40.0, 2.0])
    False
    """
    lows, highs = np.asarray(least, np.float64), np.asarray(most, np.float64)
    if len(lows) < _FEWEST_COLUMNS or not np.isfinite([lows, highs]).all():
        return False
    with np.errstate(over="ignore"):
        whole = float(highs.max() - lows.min())
        # Not so small that the deviation of a column could vanish.
        is_sound = math.isfinite(whole) and whole >= _SMALLEST_RANGE
        return is_sound and float(np.median(highs - lows)) >= _LEAST_RANGE * whole


def common_scale(deviations: ArrayLike) -> float:
    """Return the root mean square of standard deviations: columns then vary by 1 on average.

    Examples
    --------
    >>> from kernelmill.encoding.units import common_scale
    >>> common_scale([3.0, 4.0, 5.0]).__round__(6)
    4.082483
    """
    values: NDArray[np.float64] = np.asarray(deviations, np.float64)
    largest = float(values.max())  # so that squares neither overflow nor underflow
    return largest * float(np.sqrt(np.mean(np.square(values / largest))))
