"""Dask arrays and data frames: as pieces to fold, and lazily mapped, chunk by chunk."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import scipy.sparse

from kernelmill.errors import ArgumentError, ArgumentTypeError
from kernelmill.learners.blocks import count_rows
from kernelmill.scale.cluster import Cluster, PieceError
from kernelmill.scale.pieces import Piece, Pieces
from kernelmill.scale.resources import use_worker

__all__ = ["is_dask", "map_rows", "pieces_of"]


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask array, data frame or series."""
    return isinstance(X, (da.Array, dd.DataFrame, dd.Series))


def pieces_of(X: Any, y: Any, sample_weight: Any, cluster: Cluster, *, seed: int = 0) -> Pieces:
    """Return the rows of Dask collections as pieces: one for each chunk or partition of X.

    Parameters
    ----------
    X : dask array of shape (n, d), dask data frame
        Chunks may be of any sizes, known or unknown, and sparse.
    y, sample_weight : dask array, series or data frame, or None
        With the same number of rows in each chunk; arrays of known chunks are rechunked.
    cluster : Cluster
    seed : int
    """
    _check_dtypes(X, "X", "fiubO")
    _check_dtypes(y, "y", "fiubOUSmM")  # labels may be anything but complex numbers
    X_parts, sizes = _split(X, "X")
    columns = [X_parts]
    for name, values in (("y", y), ("sample_weight", sample_weight)):
        if values is None:
            columns.append([None] * len(X_parts))
            continue
        parts, _ = _split(_rechunk_like(values, name, sizes), name)
        if len(parts) != len(X_parts):
            raise ArgumentError(
                f"must have the same chunks as X, {len(X_parts)} of them, got {len(parts)}",
                "rechunk or repartition it like X",
                "call compute_chunk_sizes on both",
                parameter=name,
            )
        columns.append(parts)
    pieces = [
        Piece(_place(X, number, sizes), list(parts), sizes[number])
        for number, parts in enumerate(zip(*columns, strict=True))
    ]
    return Pieces(pieces, _read_chunk, cluster, seed=seed)


def _check_dtypes(values: Any, name: str, kinds: str) -> None:
    """Raise for a collection of other dtypes, before any of it is computed."""
    if not is_dask(values):
        return
    has_columns = isinstance(values, dd.DataFrame)
    dtypes = values.dtypes.items() if has_columns else [("", values.dtype)]
    for column, dtype in dtypes:
        if getattr(dtype, "kind", "O") not in kinds or (
            name == "X" and isinstance(dtype, pd.StringDtype)
        ):
            raise ArgumentTypeError(
                f"must be real numbers, got dtype {dtype}"
                + (f" in column {column!r}" if has_columns else ""),
                "convert the column with astype",
                parameter=name,
            )


def _split(values: Any, name: str) -> tuple[list[Any], list[int | None]]:
    """Return the chunks as delayed values, and their numbers of rows."""
    if isinstance(values, da.Array):
        if values.ndim not in ((2,) if name == "X" else (1, 2)):
            raise ArgumentError(
                f"must have {'two dimensions' if name == 'X' else 'one or two dimensions'}, got "
                f"shape {values.shape}",
                parameter=name,
            )
        values = _with_whole_rows(values)
        sizes = [None if math.isnan(size) else int(size) for size in values.chunks[0]]
        return values.to_delayed().ravel().tolist(), sizes
    if isinstance(values, (dd.DataFrame, dd.Series)):
        parts = values.to_delayed()
        return parts, [None] * len(parts)
    raise ArgumentTypeError(
        f"must be a Dask array or data frame, got {type(values).__name__}",
        "use the estimator from kernelmill for data in memory",
        "convert it with dask.array.from_array",
        parameter=name,
    )


def _with_whole_rows(X: Any) -> Any:
    return X.rechunk({1: -1}) if X.ndim == 2 and len(X.chunks[1]) > 1 else X


def _rechunk_like(values: Any, name: str, sizes: list[int | None]) -> Any:
    """Return the values in chunks of these sizes, if they and their own are known."""
    if not isinstance(values, da.Array) or None in sizes or math.isnan(values.shape[0]):
        return values
    n_rows = sum(size or 0 for size in sizes)
    if values.shape[0] != n_rows:
        raise ArgumentError(
            f"must have one entry for each of the {n_rows} rows of X, got {values.shape[0]}",
            parameter=name,
        )
    return values.rechunk({0: tuple(sizes)})


def _place(X: Any, number: int, sizes: list[int | None]) -> str:
    if not isinstance(X, da.Array):
        return f"partition {number}"
    if None in sizes:
        return f"chunk {number}"
    begin = sum(size or 0 for size in sizes[:number])
    return f"chunk {number} (rows {begin} to {begin + (sizes[number] or 0) - 1})"


def _read_chunk(source: list[Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the rows of a computed chunk as one block."""
    X, y, weight = source
    if scipy.sparse.issparse(X):
        X = X.tocsr()
    y, weight = (None if part is None else np.asarray(part) for part in (y, weight))
    for name, part in (("y", y), ("sample_weight", weight)):
        if part is not None and len(part) != count_rows(X):
            raise ArgumentError(
                f"must have as many rows as X in each chunk, got {len(part)} and {count_rows(X)}",
                "rechunk or repartition it like X",
                parameter=name,
            )
    yield X, y, weight


def map_rows(function: Callable[[Any], Any], X: Any, *, columns: Any = None) -> Any:
    """Apply a function of some rows to each chunk, lazily.

    Parameters
    ----------
    function : callable
        From rows, at least one, to an array or frame with as many rows. It travels once to each
        worker.
    X : dask array or data frame
    columns : str or list of str, optional
        If given and X is a data frame, results become a series or a frame with these names and
        with the index of X. Otherwise they are arrays.

    Returns
    -------
    dask array, series or data frame
    """
    _check_dtypes(X, "X", "fiubO")
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ArgumentError(f"must have two dimensions, got shape {X.shape}", parameter="X")
        X = _with_whole_rows(X)
        meta = np.asarray(function(np.ones((1, X.shape[1]), X.dtype)))[:0]
        return X.map_blocks(
            _call_chunk,
            dask.delayed(_Call(function, meta), traverse=False),
            dtype=meta.dtype,
            chunks=(X.chunks[0], *((size,) for size in meta.shape[1:])),
            drop_axis=[1] if meta.ndim == 1 else None,
            meta=np.empty((0,) * meta.ndim, meta.dtype),
        )
    if not isinstance(X, dd.DataFrame):
        raise ArgumentTypeError(
            f"must be a Dask array or data frame, got {type(X).__name__}", parameter="X"
        )
    meta = function(_one_row(X))[:0]
    call = _Call(function, meta, columns)
    if columns is not None or hasattr(meta, "iloc"):
        shared = dask.delayed(call, traverse=False)
        return X.map_partitions(_call_partition, shared, meta=call(X._meta, ""))
    call_part, shared = dask.delayed(_Call.__call__), dask.delayed(call, traverse=False)
    parts = [
        call_part(shared, part, f"partition {number}") for number, part in enumerate(X.to_delayed())
    ]
    shape = (math.nan, *meta.shape[1:])
    return da.concatenate([da.from_delayed(part, shape, meta=meta) for part in parts])


def _one_row(X: Any) -> Any:
    """Return a row with the columns of a data frame and valid numbers."""
    meta = X._meta
    return pd.DataFrame({name: np.ones(1, meta[name].dtype) for name in meta.columns})


class _Call:
    """Calls the function on the rows of a chunk, if there are any; errors name the chunk."""

    def __init__(self, function: Callable[[Any], Any], meta: Any, columns: Any = None) -> None:
        self.function = function
        self.meta = meta
        self.columns = columns

    def __call__(self, rows: Any, place: str) -> Any:
        if count_rows(rows) == 0:
            found = self.meta
        else:
            try:
                with use_worker():
                    found = self.function(rows.tocsr() if scipy.sparse.issparse(rows) else rows)
            except Exception as error:
                raise PieceError.of(place, error) from error
        if self.columns is None:
            return found
        if isinstance(self.columns, str):
            return pd.Series(found, index=rows.index, name=self.columns)
        return pd.DataFrame(found, index=rows.index, columns=self.columns)


def _call_chunk(rows: Any, call: _Call, block_info: Any = None) -> Any:
    if not block_info:
        return call(rows, "a chunk")
    number = block_info[0]["chunk-location"][0]
    begin, end = block_info[0]["array-location"][0]
    if math.isnan(begin) or math.isnan(end):
        return call(rows, f"chunk {number}")
    return call(rows, f"chunk {number} (rows {begin} to {end - 1})")


def _call_partition(rows: Any, call: _Call, partition_info: Any = None) -> Any:
    number = "" if partition_info is None else f" {partition_info['number']}"
    return call(rows, f"partition{number}")
