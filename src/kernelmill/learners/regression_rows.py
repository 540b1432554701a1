"""Rows of a regression: checked targets and weights, and features made a block at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from kernelmill.learners.mapped_rows import features_of, n_rows_of, row_blocks, take_rows
from kernelmill.learners.statistics import check_weights

__all__ = ["Block", "check_targets", "feature_blocks", "gathered", "optional_weights"]

Block = tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64] | None]
"""Features (n, D), targets (n, T) and weights (n,), or None for weights of one."""

_Labels = tuple[NDArray[np.float64], NDArray[np.float64] | None]


def check_targets(estimator: Any, y: Any, n_rows: int) -> NDArray[np.float64]:
    """The targets in float64, of one or two dimensions as given."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    if isinstance(y, np.ma.MaskedArray):
        raise TypeError("y is a masked array, whose mask would be lost; leave those rows out.")
    if getattr(y, "dtype", None) is not None and getattr(y.dtype, "kind", "") in "mM":
        raise TypeError(f"y must be numbers, got dtype {y.dtype}; say in which unit, as floats.")
    Y = check_array(
        y,
        dtype=np.float64,
        ensure_2d=False,
        ensure_min_samples=0,
        input_name="y",
        estimator=estimator,
    )
    if Y.ndim not in (1, 2) or 0 in Y.shape[1:]:
        raise ValueError(
            f"y must be of shape (n_samples,) or (n_samples, n_outputs), got {Y.shape}."
        )
    if len(Y) != n_rows:
        raise ValueError(
            "X and y have inconsistent numbers of samples: y must have one entry for each row of "
            f"X, got {n_rows} rows and {len(Y)} entries."
        )
    return np.asarray(Y)


def optional_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """The weights of rows, or None for weights of one; a single number stands for all."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight)
    return check_weights(np.full(n_rows, weights) if weights.ndim == 0 else weights, n_rows)


def feature_blocks(
    feature_map: Any,
    X: Any,
    Y: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    rows: int,
    *,
    begin: int = 0,
) -> Iterator[Block]:
    """The checked rows from `begin` on, at most `rows` of them at a time, with their features."""
    targets = Y.reshape(len(Y), -1)
    for rest in row_blocks(n_rows_of(X) - begin, rows):
        part = slice(begin + rest.start, begin + rest.stop)
        Z = features_of(feature_map, take_rows(X, part))
        yield Z, targets[part], None if weights is None else weights[part]


def gathered(blocks: Iterable[Block], rows: int) -> Iterator[Block]:
    """The same rows in order, put together to about `rows` rows from blocks of fewer.

    Products with a D x D matrix take almost as long for ten rows as for some hundreds. The features
    are in one array, which is used again: a block is to be used before the next one is asked for.
    """
    features: NDArray[Any] | None = None
    waiting: list[_Labels] = []
    n_waiting = 0
    for block in blocks:
        Z = block[0]
        is_alike = features is not None and features.dtype == Z.dtype
        if features is not None and waiting and (n_waiting + len(Z) > rows or not is_alike):
            yield _joined(features[:n_waiting], waiting)
            waiting, n_waiting = [], 0
        if features is None or not is_alike:
            features = np.empty((rows, Z.shape[1]), Z.dtype)
        features[n_waiting : n_waiting + len(Z)] = Z
        # Copies: whoever gives the blocks may fill the same arrays again.
        waiting.append((block[1].copy(), None if block[2] is None else block[2].copy()))
        n_waiting += len(block[1])
    if features is not None and waiting:
        yield _joined(features[:n_waiting], waiting)


def _joined(features: NDArray[Any], blocks: list[_Labels]) -> Block:
    targets = np.concatenate([Y for Y, _ in blocks])
    if all(weights is None for _, weights in blocks):
        return features, targets, None
    parts = [np.ones(len(Y)) if weights is None else weights for Y, weights in blocks]
    return features, targets, np.concatenate(parts)
