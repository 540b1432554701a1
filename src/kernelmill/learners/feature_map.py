"""The features of blocks of rows, as learners take them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.errors import ArgumentError
from kernelmill.learners.blocks import Block, count_rows, slice_rows, take_rows
from kernelmill.maps.base import REAL, FeatureMap

__all__ = [
    "FeatureBlock",
    "Features",
    "compute_feature_blocks",
    "compute_features",
    "gather_blocks",
    "rows_per_block",
]

Features = Callable[[Any], NDArray[Any]]
"""From checked rows to features: a real, C-ordered matrix of float32 or float64."""

FeatureBlock = tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64] | None]
"""Features (n, D), targets (n, T) and weights (n,), or None for weights of one."""

_BLOCK_BYTES = 1 << 22  # features of a block stay in the last level of cache
_FEWEST_ROWS = 64  # so that products with the weights are worth reading them
_MOST_ROWS = 8192


def compute_features(feature_map: Any, X: Any) -> NDArray[Any]:
    """Return the features of checked rows as a real, C-ordered matrix of float32 or float64.

    Complex features become their real and imaginary parts, which have the same inner products.
    """
    if isinstance(feature_map, FeatureMap):
        dtype = X.dtype if X.dtype in REAL else np.dtype(np.float64)
        Z: Any = feature_map._features(X.astype(dtype, copy=False))
    else:
        Z = feature_map.transform(X)
        if scipy.sparse.issparse(Z):
            Z = Z.toarray()
        Z = np.asarray(Z)
        if Z.ndim != 2 or len(Z) != count_rows(X) or Z.shape[1] == 0:
            raise ArgumentError(
                f"must give a matrix with one row for each of {count_rows(X)} rows, got shape "
                f"{Z.shape}",
                "use a transformer that keeps the rows",
                parameter="feature_map",
            )
    if Z.dtype.kind == "c":
        Z = np.ascontiguousarray(Z).view(Z.real.dtype)
    return np.ascontiguousarray(Z, dtype=Z.dtype if Z.dtype in REAL else np.float64)


def rows_per_block(n_features: int, itemsize: int) -> int:
    """Return the number of rows to map at a time so that their features stay in the cache."""
    fitting = _BLOCK_BYTES // max(1, n_features * itemsize)
    return min(max(fitting, _FEWEST_ROWS), _MOST_ROWS)


def compute_feature_blocks(
    features: Features, block: Block, rows: int, *, begin: int = 0
) -> Iterator[FeatureBlock]:
    """Yield the features of the rows from `begin` on, at most `rows` at a time, with targets."""
    X, Y, weights, _ = block
    targets = Y.reshape(len(Y), -1)
    for rest in slice_rows(count_rows(X) - begin, rows):
        part = slice(begin + rest.start, begin + rest.stop)
        Z = features(take_rows(X, part))
        yield Z, targets[part], None if weights is None else weights[part]


def gather_blocks(blocks: Iterable[FeatureBlock], rows: int) -> Iterator[FeatureBlock]:
    """Yield the same rows in order, in blocks of about `rows` rows put together from smaller ones.

    Products with a D x D matrix take almost as long for ten rows as for some hundreds. The features
    are in one array that is used again: use a block before asking for the next one.
    """
    features: NDArray[Any] | None = None
    waiting: list[tuple[NDArray[np.float64], NDArray[np.float64] | None]] = []
    n_waiting = 0
    for Z, Y, weights in blocks:
        is_alike = features is not None and features.dtype == Z.dtype
        if features is not None and waiting and (n_waiting + len(Z) > rows or not is_alike):
            yield (features[:n_waiting], *_concatenate_targets(waiting))
            waiting, n_waiting = [], 0
        if features is None or not is_alike:
            features = np.empty((rows, Z.shape[1]), Z.dtype)
        features[n_waiting : n_waiting + len(Z)] = Z
        # Copies: the source of the blocks may fill the same arrays again.
        waiting.append((Y.copy(), None if weights is None else weights.copy()))
        n_waiting += len(Y)
    if features is not None and waiting:
        yield (features[:n_waiting], *_concatenate_targets(waiting))


def _concatenate_targets(
    parts: list[tuple[NDArray[np.float64], NDArray[np.float64] | None]],
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    targets = np.concatenate([Y for Y, _ in parts])
    if all(weights is None for _, weights in parts):
        return targets, None
    filled = [np.ones(len(Y)) if weights is None else weights for Y, weights in parts]
    return targets, np.concatenate(filled)
