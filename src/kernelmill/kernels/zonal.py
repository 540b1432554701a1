"""Kernels of the angle between points, with or without their norms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.arguments import check_positive
from kernelmill.formatting import name_of
from kernelmill.kernels.base import RotationInvariantKernel
from kernelmill.kernels.points import cosines_and_norms
from kernelmill.runtime.arrays import as_real


@dataclass(frozen=True, init=False, repr=False)
class Zonal(RotationInvariantKernel):
    r"""A kernel of the angle :math:`\theta` between two points, times a power of their norms.

    .. math:: k(x, y) = \lVert x \rVert^q \lVert y \rVert^q \, \kappa(\cos \theta)

    Parameters
    ----------
    profile : callable
        :math:`\kappa`, a function of an array of cosines in [-1, 1]. It must be positive definite
        on the sphere of the dimension where the kernel is used, which is checked where the kernel
        is expanded: see :func:`kernelmill.kernels.spherical_expansion`.
    power : float, default=0.0
        q, finite and not negative.
    maclaurin : callable, optional
        ``maclaurin(count)`` returns the first Maclaurin coefficients of :math:`\kappa` if they are
        known and none of them is negative. In many dimensions, high degrees of an
        expansion can only be computed from them, not from the values of :math:`\kappa`.

    Notes
    -----
    A zero vector has no direction: its kernel with every point, including itself, is 0 for any
    power. Cosines have an error of about 1e-16, so angles near 0 have an error of 1e-8, except for
    those of a row with itself in ``kernel(X)``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.kernels import Zonal
    >>> kernel = Zonal(lambda cosine: np.exp(2 * (cosine - 1)), power=1)
    >>> kernel([[2.0, 0.0]], [[3.0, 0.0], [0.0, 1.0]]).round(4)
    array([[6.    , 0.2707]])
    """

    profile: Callable[[NDArray[np.float64]], ArrayLike]
    power: float
    maclaurin: Callable[[int], ArrayLike] | None

    def __init__(
        self,
        profile: Callable[[NDArray[np.float64]], ArrayLike],
        *,
        power: float = 0.0,
        maclaurin: Callable[[int], ArrayLike] | None = None,
    ) -> None:
        if not callable(profile):
            raise TypeError(f"profile must be a function of cosines, got {profile!r}.")
        if maclaurin is not None and not callable(maclaurin):
            raise TypeError(f"maclaurin must be a function of a count or None, got {maclaurin!r}.")
        is_zero = isinstance(power, (int, float, np.number)) and power == 0
        object.__setattr__(self, "profile", profile)
        object.__setattr__(self, "power", 0.0 if is_zero else check_positive("power", power))
        object.__setattr__(self, "maclaurin", maclaurin)

    def value(self, cosine: ArrayLike) -> NDArray[np.float64]:
        """Return the kernel of unit vectors whose angles have these cosines, elementwise."""
        cosine = np.asarray(cosine, np.float64)
        result = as_real(
            np.asarray(self.profile(cosine.copy())), "The result of profile", "return reals"
        )
        if result.shape != cosine.shape:
            raise ValueError(
                f"profile must return one number for each cosine, shape {cosine.shape}, got shape "
                f"{result.shape}; write it with numpy functions of its argument."
            )
        return result.astype(np.float64, copy=False)

    def _values(self, X: Any, Y: Any) -> NDArray[np.float64]:
        cosines, own, others = cosines_and_norms(X, Y)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            left, right = (np.where(r > 0, r**self.power, 0.0) for r in (own, others))
            return np.asarray(left[:, np.newaxis] * self.value(cosines) * right)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({name_of(self.profile)}, power={self.power})"
