"""The norm of typical rows: given, or taken from the data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernelmill.arguments import check_positive

__all__ = ["resolve_radius"]

_BLOCK_ELEMENTS = 1 << 20
_BITS = 10


def resolve_radius(radius: Any, X: Any) -> float:
    """The radius that the parameter means for X: a number, or the root mean square norm of rows.

    The latter is rounded to 10 bits: so it does not depend on the order in which squares are added,
    for dense and sparse data alike. It is 1 if X is 0.
    """
    if not isinstance(radius, str):
        return check_positive("radius", radius)
    if radius != "scale":
        raise ValueError(f"radius must be a positive number or 'scale', got {radius!r}.")
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
        raise ValueError(
            "The norms of the rows of X are too large for float64; divide the data by a number, or "
            "give radius as one."
        )
    return math.ldexp(round(math.ldexp(mantissa, _BITS)), exponent - _BITS)
