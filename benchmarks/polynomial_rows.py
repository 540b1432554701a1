"""Rows for sketches, and a check that inner products of features estimate a polynomial kernel."""

from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import clone

SEEDS = (1, 2, 3, 4)  # beside that of the map itself


def unit_rows(n: int, d: int) -> NDArray[np.float32]:
    """Draw n rows of length 1 in float32, with nonnegative entries so that kernels are not 0."""
    X = np.abs(np.random.default_rng(0).standard_normal((n, d), dtype=np.float32))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X


def standard_errors(
    X: NDArray[Any], degree: int, coef0: float, n_columns: int
) -> NDArray[np.float64]:
    """Return those of estimates of (<x, y> + coef0) ** degree with independent hashing."""
    U = np.hstack([X, np.full((len(X), 1), np.sqrt(coef0))]).astype(np.float64)
    a = (U @ U.T) ** 2
    s = U**2 @ (U**2).T
    b = np.outer(np.diag(U @ U.T), np.diag(U @ U.T)) - s
    terms = [
        comb(degree, m) * a ** (degree - m) * (b**m + (a - s) ** m) for m in range(1, degree + 1)
    ]
    return np.asarray(np.sqrt(np.maximum(sum(terms), 0) / n_columns))


def check_polynomial(features: Any, X: Any, degree: int, coef0: float = 0.0) -> None:
    """Assert that features of some rows, first and last ones, estimate the kernel.

    Errors are compared with those of a Tensor Sketch with independent hashing.
    """

    def expected(rows: NDArray[Any], n_columns: int) -> NDArray[np.float64]:
        return standard_errors(rows, degree, coef0, n_columns)

    check_estimates(features, X, lambda products: (products + coef0) ** degree, expected)


def check_estimates(
    features: Any,
    X: Any,
    kernel: Callable[[NDArray[Any]], NDArray[Any]],
    expected: Callable[[NDArray[Any], int], NDArray[Any]],
) -> None:
    """Assert that errors are not above 3 times the expected ones, for most of 5 seeds.

    The seed of `features` is one of them. Products of random signs have heavy tails: at degree 6,
    some draws in a hundred are more than 6 standard errors off, in every library. But the mean
    square of errors in units of standard errors is 1 on average, so that it is above 9 in at most
    one draw of 9, whatever the tails are. At high degrees and few columns it is a weak check.
    """
    some = X[[0, 1, 2, -3, -2, -1]]
    rows = np.asarray(some.toarray() if scipy.sparse.issparse(some) else some, np.float64)
    exact = kernel(rows @ rows.T)
    errors: list[float] = []
    for seed in (features.random_state, *SEEDS):
        other = clone(features).set_params(random_state=seed).fit(X[:8])
        Z = np.asarray((other if errors else features).transform(some), np.float64)
        scores = (Z @ Z.T - exact) / expected(rows, Z.shape[1])
        errors.append(float(np.sqrt((scores**2).mean())))
    assert np.median(errors) < 3, f"{features}: errors of {errors} standard errors"
