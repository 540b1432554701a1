"""Names of tensors with a prefix, for a record that is a part of a larger one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

__all__ = ["under_prefix", "without_prefix"]


def under_prefix(prefix: str, tensors: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The tensors with the prefix and a slash before their names.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.storage import under_prefix, without_prefix
    >>> under_prefix("map", {"center": np.zeros(2)})
    {'map/center': array([0., 0.])}
    >>> without_prefix("map", {"map/center": np.zeros(2), "coef": np.ones(3)})
    {'center': array([0., 0.])}
    """
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}


def without_prefix(prefix: str, tensors: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Those tensors whose names begin with the prefix and a slash, without these."""
    start = f"{prefix}/"
    return {n[len(start) :]: tensor for n, tensor in tensors.items() if n.startswith(start)}
