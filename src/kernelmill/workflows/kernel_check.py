"""How well a map estimates its kernel on pairs of a table's rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelmill.workflows.records import KernelCheck

__all__ = ["kernel_check"]

_ROWS = 45  # 990 pairs, as many as a plot shows well


def kernel_check(fitted_map: Any, X: Any) -> KernelCheck | None:
    """Estimated and exact kernel values of the pairs of some rows."""
    X = X[:_ROWS]
    if X.shape[0] < 2 or not hasattr(fitted_map, "exact_kernel"):
        return None
    Z = fitted_map.transform(X)
    pairs = np.triu_indices(X.shape[0], 1)
    estimated = np.real(Z @ Z.conj().T)[pairs].astype(np.float64)
    exact = fitted_map.exact_kernel(X)[pairs]
    return KernelCheck(
        exact=exact.tolist(),
        estimated=estimated.tolist(),
        rms_error=float(np.sqrt(np.mean((estimated - exact) ** 2))),
        n_components=int(Z.shape[1]),
    )
