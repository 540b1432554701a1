"""Permutation of labels among bins of rows, and how far apart the two means then are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelmill.random import Stream
from kernelmill.stats.bins import BinnedSamples

__all__ = ["PermutedNorms", "permuted_norms"]

_PERMUTATIONS_AT_ONCE = 256


class PermutedNorms(NamedTuple):
    """Norms of sum over X minus n_x times the mean over all rows: a multiple of the discrepancy."""

    observed: float
    permuted: NDArray[np.float64]
    rounding: float


def permuted_norms(
    strata: list[BinnedSamples], n_permutations: int, block_rows: int, stream: Stream
) -> PermutedNorms:
    """The norm for the labels as they are, and for labels permuted among the bins of each stratum.

    Rows outside of bins keep their labels. `rounding` bounds how far apart two norms can be that
    are equal in exact arithmetic: any sum here has at most n_bins + block_rows + blocks terms.
    """
    n_rows = sum(sample.n_rows for stratum in strata for sample in stratum.samples)
    totals = [sample.total for stratum in strata for sample in stratum.samples]
    mean = np.sum(totals, axis=0) / n_rows
    bins, lengths = _centered_bins(strata, mean)
    fixed, fixed_rows = np.zeros_like(mean), 0
    for stratum in strata:
        unpermuted, rows = stratum.samples[0].unpermuted
        fixed += unpermuted
        fixed_rows += rows
    lengths += float(np.linalg.norm(fixed)) + n_rows * float(np.linalg.norm(mean))
    fixed -= fixed_rows * mean
    terms = bins.shape[0] + block_rows + n_rows / block_rows
    rounding = float(np.finfo(np.float64).eps * terms * lengths)

    observed = _norms(_observed_labels(strata), bins, fixed)[0]
    permuted = np.empty(n_permutations)
    for begin in range(0, n_permutations, _PERMUTATIONS_AT_ONCE):
        part = permuted[begin : begin + _PERMUTATIONS_AT_ONCE]
        labels = _permuted_labels(strata, begin, part.size, stream)
        part[:] = _norms(labels, bins, fixed)
    return PermutedNorms(float(observed), permuted, rounding)


def _centered_bins(
    strata: list[BinnedSamples], mean: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """All bins, minus the mean over all rows times theirs; and the sum of their norms before."""
    parts = [sample.bins for stratum in strata for sample in stratum.samples]
    bins = np.concatenate(parts)
    lengths = float(np.sqrt(np.einsum("ij,ij->i", bins, bins)).sum())
    begin = 0
    for stratum in strata:
        end = begin + sum(sample.n_bins for sample in stratum.samples)
        bins[begin:end] -= stratum.bin_rows * mean
        begin = end
    return bins, lengths


def _norms(
    labels: NDArray[np.float64], bins: NDArray[np.float64], fixed: NDArray[np.float64]
) -> NDArray[np.float64]:
    sums = labels @ bins
    sums += fixed
    norms: NDArray[np.float64] = np.sqrt(np.einsum("ij,ij->i", sums, sums))
    return norms


def _observed_labels(strata: list[BinnedSamples]) -> NDArray[np.float64]:
    parts: list[Any] = []
    for stratum in strata:
        x, y = stratum.samples
        parts += [np.ones(x.n_bins), np.zeros(y.n_bins)]
    return np.concatenate(parts)[np.newaxis]


def _permuted_labels(
    strata: list[BinnedSamples], first: int, count: int, stream: Stream
) -> NDArray[np.float64]:
    """Which bins count as X, 1 or 0: in each stratum as many as there are, anywhere."""
    n_bins = sum(sample.n_bins for stratum in strata for sample in stratum.samples)
    labels = np.zeros((count, n_bins))
    begin = 0
    for number, stratum in enumerate(strata):
        x, y = stratum.samples
        size = x.n_bins + y.n_bins
        source = stream.substream("labels", number)
        for i in range(count):
            chosen = source.permutation(size, index=first + i)[: x.n_bins]
            labels[i, begin + chosen] = 1
        begin += size
    return labels
