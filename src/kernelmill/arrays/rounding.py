"""Coefficients in the precision of the data, or an error where they do not fit into it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["divided_by_length_scale", "rounded"]


def divided_by_length_scale(
    frequencies: NDArray[np.float64], length_scale: float
) -> NDArray[np.float64]:
    """Frequencies of length scale 1 for another one."""
    with np.errstate(over="ignore"):
        return np.asarray(frequencies / length_scale)


def rounded(coefficients: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """A copy in this dtype, not to be written to."""
    with np.errstate(over="ignore"):
        out = coefficients.astype(dtype)
    if not np.isfinite(out).all():
        raise ValueError(
            f"Coefficients of the map are too large for {dtype.name}; give a larger length_scale "
            "where there is one, scale the data, or give them in float64."
        )
    out.flags.writeable = False
    return out
