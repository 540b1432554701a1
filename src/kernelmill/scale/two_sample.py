"""The two-sample test on Dask collections: sums of features over bins are collected by workers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelmill.arguments import check_integer
from kernelmill.errors import ArgumentError
from kernelmill.learners.blocks import count_rows, slice_rows, take_rows
from kernelmill.learners.features import compute_features, rows_per_block
from kernelmill.maps.base import check_data
from kernelmill.random import Stream
from kernelmill.runtime.threads import resolve_threads
from kernelmill.scale.cluster import Cluster
from kernelmill.scale.collections import pieces_of
from kernelmill.scale.pieces import KeyedSample, Pieces, merge_samples
from kernelmill.stats.permutations import (
    BinnedSample,
    BinnedSamples,
    choose_max_bins,
    divide_into_bins,
)
from kernelmill.stats.two_sample import (
    ROWS_TO_FIT,
    TwoSampleResult,
    TwoSampleTest,
    prepare_map,
    result_of_bins,
)

__all__ = ["two_sample_test"]


def two_sample_test(
    X: Any,
    Y: Any,
    *,
    feature_map: Any = "fastfood",
    n_permutations: int = 999,
    random_state: Any = None,
    n_threads: int | None = None,
    client: Any = None,
) -> TwoSampleResult:
    """Test whether the rows of X and Y, on a cluster, have the same distribution.

    The test is :func:`kernelmill.stats.two_sample_test`. Workers compute the features of their rows
    and their sums over bins of consecutive rows, at most 1024 bins for any number of rows; labels
    are permuted here. If rows are sorted or drift, bins of consecutive rows make the test
    conservative.

    Parameters
    ----------
    X, Y : dask array or data frame, with the same columns
    feature_map : str or transformer, default="fastfood"
        As in :func:`kernelmill.stats.two_sample_test`. It is fitted on a sample of 1000 rows of X
        and Y together, drawn independently of their labels.
    n_permutations : int, default=999
    random_state : int, RandomState, Generator or Stream, default=None
    n_threads : int, default=None
        The number of threads of each task.
    client : distributed.Client, default=None

    Returns
    -------
    TwoSampleResult

    Examples
    --------
    >>> import dask
    >>> import dask.array as da
    >>> from kernelmill.scale import two_sample_test
    >>> rng = da.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 3), chunks=(1000, 3))
    >>> Y = rng.exponential(size=(6000, 3), chunks=(1000, 3)) - 1  # the same mean and variance
    >>> with dask.config.set(scheduler="synchronous"):
    ...     two_sample_test(X, Y, random_state=0).p_value
    0.001
    """
    n_permutations = check_integer("n_permutations", n_permutations, 1)
    resolve_threads(n_threads)
    stream = Stream.from_random_state(random_state)
    unfitted = prepare_map(feature_map, stream, n_threads)
    cluster = Cluster(client)
    cluster.check_versions()
    both = [pieces_of(rows, None, None, cluster) for rows in (X, Y)]
    _check_columns(X, Y)
    draws = stream.substream("rows for the map")
    samples = [
        pieces.sample(ROWS_TO_FIT, draws.substream(label)) for label, pieces in enumerate(both)
    ]
    fitted, dtype = _fit(unfitted, samples)
    n_features = compute_features(fitted, np.ones((1, fitted.n_features_in_), dtype)).shape[1]
    n_x, n_y = (sum(sample.counts.values()) for sample in samples)
    bin_rows, n_bins = divide_into_bins(n_x, n_y, choose_max_bins(n_features))
    block_rows = rows_per_block(n_features, 8)
    x, y = (
        _collect(pieces, sample, _BinFold(fitted, dtype, bin_rows, kept, {}, block_rows))
        for pieces, sample, kept in zip(both, samples, n_bins, strict=True)
    )
    strata = [BinnedSamples.from_samples(x, y, bin_rows)]
    with np.errstate(over="ignore", invalid="ignore"):  # an error suggests a remedy
        return result_of_bins(strata, n_permutations, block_rows, stream, fitted)


def _check_columns(X: Any, Y: Any) -> None:
    columns = [list(rows.columns) if hasattr(rows, "columns") else rows.shape[1] for rows in (X, Y)]
    if columns[0] != columns[1]:
        raise ArgumentError(
            f"X and Y must have the same columns in the same order, got {columns[0]} and "
            f"{columns[1]}",
            "select the same columns in the same order in X and Y",
        )


def _fit(unfitted: Any, samples: list[KeyedSample]) -> tuple[Any, np.dtype[Any]]:
    """Return the map, fitted on a sample of all rows together, and the dtype to compute in."""
    rows = merge_samples(samples[0], samples[1], ROWS_TO_FIT).rows
    assert rows is not None
    checked = check_data(TwoSampleTest(), rows.X, reset=True)
    return unfitted.fit(checked), checked.dtype


def _collect(pieces: Pieces, sample: KeyedSample, fold: _BinFold) -> BinnedSample:
    """Return the sums of a sample whose rows were counted."""
    begin = 0
    for number in range(len(pieces.pieces)):
        fold.begins[number] = begin
        begin += sample.counts[number]
    sums = pieces.fold(fold, _merge_sums)
    total = np.zeros((fold.n_bins + 1, sums.values.shape[1]))
    total[sums.begin : sums.begin + len(sums.values)] = sums.values
    return BinnedSample.from_sums(total, fold.n_bins, fold.bin_rows, begin, sums.squares)


class _Sums(NamedTuple):
    """Sums of features over bins from `begin` on, and the sum of all their squares."""

    begin: int
    values: NDArray[np.float64]
    squares: float


@dataclass(frozen=True)
class _BinFold:
    """Sums features over bins; the last one has all rows outside of bins."""

    feature_map: Any
    dtype: np.dtype[Any]
    bin_rows: int
    n_bins: int
    begins: dict[int, int]  # the first row of each piece
    block_rows: int

    def __call__(self, before: _Sums | None, blocks: Iterable[Any], number: int) -> _Sums:
        sums, row = before, self.begins[number]
        for block in blocks:
            if count_rows(block[0]) == 0:
                continue
            rows = check_data(TwoSampleTest(), block[0], reset=True)
            for part in slice_rows(rows.shape[0], self.block_rows):
                some = take_rows(rows, part).astype(self.dtype, copy=False)
                Z = np.asarray(compute_features(self.feature_map, some), np.float64)
                found = self._sum(Z, row + part.start)
                sums = found if sums is None else _merge_sums(found, sums)
            row += rows.shape[0]
        if sums is None:
            n_features = compute_features(
                self.feature_map, np.ones((1, self.feature_map.n_features_in_), self.dtype)
            ).shape[1]
            return _Sums(0, np.zeros((0, n_features)), 0.0)
        return sums

    def _sum(self, Z: NDArray[np.float64], row: int) -> _Sums:
        bins = np.minimum((row + np.arange(len(Z))) // self.bin_rows, self.n_bins)
        starts = np.flatnonzero(np.diff(bins, prepend=-1))
        return _Sums(int(bins[0]), np.add.reduceat(Z, starts, axis=0), float(np.vdot(Z, Z)))


def _merge_sums(a: _Sums, b: _Sums) -> _Sums:
    """Return the sums of both, whose bins are neighbors or the same."""
    parts = [part for part in (a, b) if len(part.values)]
    if not parts:
        return a
    begin = min(part.begin for part in parts)
    end = max(part.begin + len(part.values) for part in parts)
    values = np.zeros((end - begin, a.values.shape[1]))
    for part in parts:
        values[part.begin - begin : part.begin - begin + len(part.values)] += part.values
    return _Sums(begin, values, a.squares + b.squares)
