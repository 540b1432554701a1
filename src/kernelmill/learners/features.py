"""The features of blocks of rows, as learners take them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.errors import ArgumentError
from kernelmill.learners.blocks import Block, count_rows, slice_rows, take_rows
from kernelmill.learners.few_outputs import CACHE_LINE, lay_out_rows, score_rows
from kernelmill.maps.base import REAL, FeatureMap
from kernelmill.maps.finite import NotFiniteError
from kernelmill.maps.random_fourier import ShiftInvariantMap

__all__ = [
    "FeatureBlock",
    "Features",
    "ReusedMemory",
    "compute_feature_blocks",
    "compute_features",
    "gather_blocks",
    "rows_per_block",
]

Features = Callable[[Any], NDArray[Any]]
"""From checked rows to features: a real, C-ordered matrix of float32 or float64.

Those of a fitted map or transformer are ``partial(compute_features, feature_map)``."""

FeatureBlock = tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64] | None]
"""Features (n, D), targets (n, T) and weights (n,), or None for weights of one."""

_BLOCK_BYTES = 1 << 22  # features of a block stay in the last level of cache
_FEWEST_ROWS = 64  # so that products with the weights are worth reading them
_MOST_ROWS = 8192


def compute_features(feature_map: Any, X: Any) -> NDArray[Any]:
    """Return the features of checked rows as a real, C-ordered matrix of float32 or float64.

    Complex features become their real and imaginary parts, which have the same inner products.
    Features of kernelmill's maps that are not finite raise a `NotFiniteError`.
    """
    if isinstance(feature_map, FeatureMap):
        dtype = X.dtype if X.dtype in REAL else np.dtype(np.float64)
        Z: Any = feature_map._features(X.astype(dtype, copy=False))
    else:
        try:
            Z = feature_map.transform(X)
        except NotFiniteError as error:  # of a map in a pipeline, which counts the rows of X
            raise error.found.error() from None
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


class ReusedMemory:
    """The features of rows in memory that the next rows overwrite.

    A new array in each call has new pages, which the operating system sets to zero: a quarter of
    the time of random Fourier features. Rows are an odd number of cache
    lines apart: at a distance of a power of two they would compete for few places in the cache.

    Parameters
    ----------
    features : callable
        What other transformers than random Fourier features return is passed on as it is.
    dtype : dtype, optional
        The type of the features, if it is not to be that of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill import Fastfood
    >>> from functools import partial
    >>> from kernelmill.learners.features import ReusedMemory, compute_features
    >>> X = np.ones((3, 2))
    >>> feature_map = Fastfood(n_components=4, random_state=0).fit(X)
    >>> features = ReusedMemory(partial(compute_features, feature_map))
    >>> np.array_equal(features(X), feature_map.transform(X))
    True
    >>> np.shares_memory(features(X), features(X))
    True
    """

    def __init__(self, features: Features, dtype: np.dtype[Any] | None = None) -> None:
        self._features = features
        self._dtype = dtype
        self._memory: NDArray[Any] = np.empty((0, 0))
        self._map: ShiftInvariantMap | None = None
        if isinstance(features, partial) and features.func is compute_features:
            found = features.args[0]
            writes = isinstance(found, ShiftInvariantMap)
            writes &= getattr(type(found), "_features", None) is FeatureMap._features
            self._map = found if writes else None

    @property
    def is_used(self) -> bool:
        """Whether features are written to such memory, and not to a new array in each call."""
        return self._map is not None

    def __call__(self, X: Any) -> NDArray[Any]:
        """Return the features of checked rows."""
        if self._map is None or not self._is_alike(X):
            return self._compute(X)
        return self._write(self._map, X, None)[0]

    def _compute(self, X: Any) -> NDArray[Any]:
        Z = self._features(X)
        return Z if self._dtype is None else Z.astype(self._dtype, copy=False)

    def _is_alike(self, X: Any) -> bool:
        dtype = X.dtype if X.dtype in REAL else np.dtype(np.float64)
        return self._dtype is None or dtype == self._dtype

    def score(
        self, X: Any, weights: NDArray[Any], n_threads: int | None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the features, and their inner products with each row of the weights."""
        if self._map is not None and self._is_alike(X):
            return self._write(self._map, X, weights)
        Z = self._compute(X)
        return Z, score_rows(Z, weights, n_threads)

    def _write(
        self, feature_map: ShiftInvariantMap, X: Any, weights: NDArray[Any] | None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        dtype = X.dtype if X.dtype in REAL else np.dtype(np.float64)
        n_rows = count_rows(X)
        n_columns = feature_map._n_features_out * (2 if feature_map.features == "complex" else 1)
        if self._memory.dtype != dtype or len(self._memory) < n_rows:
            lines = -(-n_columns * dtype.itemsize // CACHE_LINE) | 1
            whole = np.empty((n_rows * lines + 1) * CACHE_LINE, np.uint8)
            first = -whole.ctypes.data % CACHE_LINE
            rows = whole[first : first + n_rows * lines * CACHE_LINE].view(dtype)
            self._memory = rows.reshape(n_rows, -1)[:, :n_columns]
        out = self._memory[:n_rows]
        scores = np.empty((n_rows, 0 if weights is None else len(weights)), dtype)
        scoring = None if weights is None else (lay_out_rows(weights), scores)
        feature_map._fill(X.astype(dtype, copy=False), out, scoring=scoring)
        return out, scores


def rows_per_block(n_features: int, itemsize: int) -> int:
    """Return the number of rows to map at a time so that their features stay in the cache."""
    fitting = _BLOCK_BYTES // max(1, n_features * itemsize)
    return min(max(fitting, _FEWEST_ROWS), _MOST_ROWS)


def compute_feature_blocks(
    features: Features, block: Block, rows: int, *, begin: int = 0
) -> Iterator[FeatureBlock]:
    """Yield the features of the rows from `begin` on, at most `rows` at a time, with targets."""
    X, Y, weights = block
    targets = Y.reshape(len(Y), -1)
    for rest in slice_rows(count_rows(X) - begin, rows):
        part = slice(begin + rest.start, begin + rest.stop)
        Z = features(take_rows(X, part))
        yield Z, targets[part], None if weights is None else weights[part]


def gather_blocks(blocks: Iterable[FeatureBlock], rows: int) -> Iterator[FeatureBlock]:
    """Yield the same rows in order, in blocks of about `rows` rows put together from smaller ones.

    Products with a D x D matrix take almost as long for ten rows as for some hundreds. The features
    are in one array that is used again: use a block before asking for the next one. Larger blocks
    are passed on as they are.
    """
    features: NDArray[Any] | None = None
    waiting: list[tuple[NDArray[np.float64], NDArray[np.float64] | None]] = []
    n_waiting = 0
    for Z, Y, weights in blocks:
        is_alike = features is not None and features.dtype == Z.dtype
        if features is not None and waiting and (n_waiting + len(Z) > rows or not is_alike):
            yield (features[:n_waiting], *_concatenate_targets(waiting))
            waiting, n_waiting = [], 0
        if not waiting and len(Z) >= rows:
            yield Z, Y, weights
            continue
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
