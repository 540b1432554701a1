"""Arc-cosine kernels: infinitely wide layers of steps, ramps and squared ramps."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from kernelmill.arguments import check_integer
from kernelmill.kernels.zonal import Zonal


class ArcCosine(Zonal):
    r"""The arc-cosine kernels of Cho & Saul (2009).

    .. math::

        k_n(x, y) = \frac1\pi \lVert x \rVert^n \lVert y \rVert^n J_n(\theta), \quad
        J_0 = \pi - \theta, \quad
        J_1 = \sin\theta + (\pi - \theta) \cos\theta, \quad
        J_2 = 3 \sin\theta \cos\theta + (\pi - \theta) (1 + 2 \cos^2\theta)

    where :math:`\theta` is the angle between x and y. For a standard normal w it is
    :math:`2 E[\langle w, x \rangle_+^n \langle w, y \rangle_+^n]`, with 1 and 0 as powers 0 of
    positive and other numbers.

    Parameters
    ----------
    order : {0, 1, 2}, default=1
        n: 0 for steps, 1 for ramps (ReLU), 2 for squared ramps.

    Examples
    --------
    >>> from kernelmill.kernels import ArcCosine
    >>> ArcCosine(order=1)([[2.0, 0.0]], [[3.0, 0.0], [0.0, 1.0]]).round(4)
    array([[6.    , 0.6366]])
    """

    order: int

    def __init__(self, order: int = 1) -> None:
        order = check_integer("order", order, 0, 2)
        super().__init__(_PROFILES[order], power=order, maclaurin=_SERIES[order])
        object.__setattr__(self, "order", order)

    def __repr__(self) -> str:
        return f"ArcCosine(order={self.order})"


def _step(cosine: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 - np.arccos(cosine) / np.pi)


def _ramp(cosine: NDArray[np.float64]) -> NDArray[np.float64]:
    angle = np.arccos(cosine)
    return np.asarray((np.sin(angle) + (np.pi - angle) * cosine) / np.pi)


def _squared_ramp(cosine: NDArray[np.float64]) -> NDArray[np.float64]:
    angle = np.arccos(cosine)
    product = 3 * np.sin(angle) * cosine
    return np.asarray((product + (np.pi - angle) * (1 + 2 * cosine * cosine)) / np.pi)


def _step_series(count: int) -> NDArray[np.float64]:
    """Coefficients of 1/2 + arcsin(t) / pi: the odd ones are C(2m, m) / 4^m / (2m + 1) / pi."""
    out = np.zeros(count)
    out[:1] = 0.5
    m = np.arange(count // 2)
    central = np.cumprod(np.concatenate([[1.0], (2 * m[1:] - 1) / (2.0 * m[1:])]))[: m.size]
    out[1::2] = central / (2 * m + 1) / math.pi
    return out


def _ramp_series(count: int) -> NDArray[np.float64]:
    """The derivative of the ramps' kernel is that of the steps."""
    return _integral(_step_series(count), 1 / math.pi)


def _squared_ramp_series(count: int) -> NDArray[np.float64]:
    """The derivative of the squared ramps' kernel is 4 times that of the ramps."""
    return _integral(4 * _ramp_series(count), 0.5)


def _integral(series: NDArray[np.float64], constant: float) -> NDArray[np.float64]:
    out = np.empty_like(series)
    out[:1] = constant
    out[1:] = series[:-1] / np.arange(1, series.size)
    return out


_PROFILES = (_step, _ramp, _squared_ramp)
_SERIES = (_step_series, _ramp_series, _squared_ramp_series)
