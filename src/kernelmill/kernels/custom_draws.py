"""What a user's function of a stream returns, if it is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelmill.random import Stream
from kernelmill.transforms.arrays import as_real

__all__ = ["custom_draws", "name_of"]

_REPEATED = 8


def name_of(function: Callable[..., Any] | None) -> str:
    """The name of a function, without the address in its repr."""
    return str(getattr(function, "__name__", repr(function)))


def custom_draws(
    law: Callable[[Stream, int, int], ArrayLike], what: str, stream: Stream, n: int, dim: int
) -> NDArray[Any]:
    """``law(stream, n, dim)``, checked to be real and to be a function of its arguments.

    The first few are asked for again: a map draws its coefficients whenever it needs them, after
    loading from a file for example, and they must be the same.
    """
    drawn = as_real(np.asarray(law(stream, n, dim)), f"The {what}", "return reals")
    few = min(n, _REPEATED)
    again = np.asarray(law(stream, few, dim))
    if drawn.shape[:1] == (n,) and not np.array_equal(again, drawn[:few], equal_nan=True):
        raise ValueError(
            f"{what}(stream, n, dim) must be a function of the stream whose first elements do not "
            f"depend on n, but {name_of(law)} returned others when called again; draw with the "
            "methods of the stream, such as stream.normals((n, dim)), not with numpy.random."
        )
    return drawn
