"""Feature maps on Dask collections: fitted on a sample of rows, applied chunk by chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelmill.arguments import check_integer
from kernelmill.random import Stream
from kernelmill.scale.cluster import Cluster
from kernelmill.scale.collections import map_rows, pieces_of
from kernelmill.scale.pieces import SAMPLE_ROWS

__all__ = ["fit_map", "sample_rows", "transform"]


def sample_rows(
    X: Any, n_rows: int = SAMPLE_ROWS, *, y: Any = None, random_state: Any = 0, client: Any = None
) -> Any:
    """Return a uniform sample of the rows of Dask collections, in memory.

    For functions that need only a sample of the rows, such as those of `kernelmill.diagnostics`.

    Parameters
    ----------
    X : dask array or data frame
    n_rows : int, default=8192
        The number of rows in the sample; all rows if there are fewer.
    y : dask array or series, optional
        With the same rows as X.
    random_state : int, RandomState, Generator or Stream, default=0
    client : distributed.Client, optional

    Returns
    -------
    rows or (rows, targets)
        Arrays, CSR matrices or frames, as the chunks are; in random order.

    Examples
    --------
    >>> import dask.array as da
    >>> from kernelmill import Fastfood
    >>> from kernelmill.diagnostics import kernel_errors
    >>> from kernelmill.scale import sample_rows
    >>> X = da.random.default_rng(0).normal(size=(100_000, 4), chunks=(10_000, 4))
    >>> rows = sample_rows(X, 500)
    >>> errors = kernel_errors(Fastfood(n_components=256), rows, n_seeds=3, random_state=0)
    """
    check_integer("n_rows", n_rows, 1)
    pieces = pieces_of(X, y, None, Cluster(client))
    rows = pieces.sample(n_rows, Stream.from_random_state(random_state)).rows
    assert rows is not None
    return rows.X if y is None else (rows.X, rows.y)


def fit_map(
    feature_map: Any,
    X: Any,
    *,
    n_rows: int = SAMPLE_ROWS,
    random_state: Any = 0,
    client: Any = None,
) -> Any:
    """Fit a map on a sample of the rows of a Dask collection, and return it.

    Parameters
    ----------
    feature_map : transformer
        A map of kernelmill or any other transformer. Only parameters estimated from data, such as
        ``length_scale="median"``, depend on the sample.
    X : dask array or data frame
    n_rows : int, default=8192
    random_state : int, RandomState, Generator or Stream, default=0
        The seed of the sample. The map has its own seed.
    client : distributed.Client, optional

    Returns
    -------
    feature_map

    Examples
    --------
    >>> import dask.array as da
    >>> from kernelmill import Fastfood
    >>> from kernelmill.scale import fit_map, transform
    >>> X = da.random.default_rng(0).normal(size=(10_000, 4), chunks=(1_000, 4))
    >>> fastfood = fit_map(Fastfood(n_components=256, random_state=0), X)
    >>> transform(fastfood, X).shape
    (10000, 256)
    """
    return feature_map.fit(sample_rows(X, n_rows, random_state=random_state, client=client))


def transform(feature_map: Any, X: Any) -> Any:
    """Apply a fitted map to a Dask collection, lazily and chunk by chunk.

    Parameters
    ----------
    feature_map : transformer
        A fitted map of kernelmill or any other transformer.
    X : dask array or data frame of shape (n, d)
        Chunks may be sparse, empty and of unknown size.

    Returns
    -------
    dask array of shape (n, D)
        The features, with the dtype of the map for X. The chunk sizes are not known if X is a data
        frame. After ``set_output(transform="pandas")``, the result for a data frame is a data
        frame.
    """
    check_is_fitted(feature_map)
    return map_rows(_Transform(feature_map), X)


class _Transform:
    """The features of some rows."""

    def __init__(self, feature_map: Any) -> None:
        self.feature_map = feature_map

    def __call__(self, rows: Any) -> Any:
        features = self.feature_map.transform(rows)
        if hasattr(features, "iloc") and hasattr(rows, "iloc"):
            return features
        return np.asarray(features)
