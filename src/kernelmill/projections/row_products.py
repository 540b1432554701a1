"""Lengths of rows and their inner products with a vector, bit-identical everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill import _native
from kernelmill.runtime.arrays import blocks_of_rows, native_rows
from kernelmill.runtime.threads import resolve_threads

__all__ = ["row_products"]


def row_products(
    X: Any, vector: NDArray[np.float64] | None = None, *, n_threads: int | None = None
) -> NDArray[np.float64]:
    """The inner product of each row with a vector, or without one its squared length.

    In float64, and to the last bit the same for dense and sparse rows on every machine.
    """
    out = np.empty(X.shape[0])
    like, threads = np.empty(0, X.dtype), resolve_threads(n_threads)
    for rows, part in blocks_of_rows(X, out):
        _native.row_products(native_rows(rows), like, vector, part, threads)
    return out
