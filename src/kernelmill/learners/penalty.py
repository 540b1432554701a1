"""The penalty of ridge regression as users give it: alpha, several of them, or noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.arguments import check_positive
from kernelmill.learners.ridge import check_alpha

__all__ = ["penalties", "single_penalty"]


def single_penalty(alpha: Any, noise: Any) -> float:
    """The penalty that alpha or noise stands for; 1 if neither is given."""
    if alpha is not None and noise is not None:
        raise ValueError(
            f"Only one of alpha and noise can be given, got alpha={alpha!r} and noise={noise!r}; "
            "leave one out."
        )
    if noise is not None:
        return check_positive("noise", noise)
    return 1.0 if alpha is None else check_alpha("alpha", alpha)


def penalties(alpha: Any, noise: Any) -> float | NDArray[np.float64]:
    """The same, or an array of penalties to choose from if alpha is a sequence."""
    if alpha is None or noise is not None or np.ndim(alpha) == 0:
        return single_penalty(alpha, noise)
    alphas = np.asarray(alpha)
    if alphas.ndim != 1 or not alphas.size or alphas.dtype.kind not in "fiu":
        raise ValueError(f"alpha must be a number or a sequence of numbers, got {alpha!r}.")
    alphas = alphas.astype(np.float64)
    if not (np.isfinite(alphas) & (alphas > 0)).all():
        raise ValueError(
            f"Several alpha must be finite and positive, got {alpha!r}; leave others out."
        )
    return alphas
