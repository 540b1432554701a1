"""Rows for the feature maps, and a check that their features estimate the Gaussian kernel."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelmill import Fastfood, RandomFourier
from kernelmill.kernels import Gaussian


def draw_rows(n: int, d: int, dtype: Any = np.float32) -> NDArray[Any]:
    """Draw n normal rows; at length scale sqrt(d) two of them have a kernel of about 1 / e."""
    return np.random.default_rng(0).standard_normal((n, d), dtype=np.float32).astype(dtype)


def fit_map(kind: type[Any], X: Any, n_components: int, **options: Any) -> Any:
    """Fit a map of kernelmill with length scale sqrt(d)."""
    length_scale = float(np.sqrt(X.shape[1]))
    made = kind(n_components=n_components, length_scale=length_scale, random_state=0, **options)
    return made.fit(X[:2])


def fastfood(X: Any, n_components: int, **options: Any) -> Fastfood:
    """Fit Fastfood to rows of `draw_rows`."""
    made: Fastfood = fit_map(Fastfood, X, n_components, **options)
    return made


def random_fourier(X: Any, n_components: int, **options: Any) -> RandomFourier:
    """Fit RandomFourier to rows of `draw_rows`."""
    made: RandomFourier = fit_map(RandomFourier, X, n_components, **options)
    return made


def check_features(features: Any, X: Any) -> None:
    """Assert that the features of some rows, first and last ones, estimate the kernel."""
    rows = X[[0, 1, 2, -3, -2, -1]]
    if scipy.sparse.issparse(rows):
        rows = rows.toarray()
    Z = features.transform(rows).astype(np.float64)
    exact = Gaussian()(rows, length_scale=float(np.sqrt(X.shape[1])))
    error = np.abs(Z @ Z.T - exact).max()
    assert error < 6 / np.sqrt(Z.shape[1]), f"{features}: error {error:.3f}"
