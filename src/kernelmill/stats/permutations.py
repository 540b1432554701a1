"""The permutation test of two samples, on sums of features over bins of rows.

All bins of both samples have the same number of rows, so that they are exchangeable if all rows
have one distribution. Neighboring bins are merged if there are too many.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kernelmill.random import Stream
from kernelmill.runtime.arrays import Floats

__all__ = [
    "BinnedSample",
    "BinnedSamples",
    "PermutedNorms",
    "choose_max_bins",
    "divide_into_bins",
    "permute_norms",
]

_SUM_BYTES = 1 << 26
_MAX_BINS = 1024
_MIN_BINS = 128  # For very many features.
_MAX_RATIO = 16  # The smaller sample keeps at least 1/16 of the bins, if it has enough rows.
_PERMUTATIONS_AT_ONCE = 256


def choose_max_bins(n_features: int) -> int:
    """Return the maximum number of bins: 1024, or a smaller power of two for many features."""
    fitting = max(1, _SUM_BYTES // (8 * n_features))
    return max(_MIN_BINS, min(_MAX_BINS, 1 << (fitting.bit_length() - 1)))


class BinnedSample:
    """Sums over one sample: complete bins, an incomplete bin, and rows outside of bins."""

    def __init__(self, n_features: int, capacity: int) -> None:
        self._sums = np.empty((min(capacity, 16), n_features))
        self._capacity = capacity
        self.n_bins = 0
        self.n_rows = 0
        self.rest = np.zeros(n_features)
        self.rest_rows = 0
        self.squares = 0.0
        self._open = np.zeros(n_features)
        self._open_rows = 0

    @classmethod
    def from_sums(
        cls, sums: NDArray[np.float64], n_bins: int, bin_rows: int, n_rows: int, squares: float
    ) -> Self:
        """Return a complete sample from sums over its bins, followed by sums over its other rows.

        `squares` is the sum of all squared features.
        """
        sample = cls(sums.shape[1], 0)
        sample._sums = sums[:n_bins]
        sample.n_bins, sample.n_rows, sample.squares = n_bins, n_rows, squares
        sample.rest = sums[n_bins:].sum(axis=0)
        sample.rest_rows = n_rows - n_bins * bin_rows
        return sample

    @property
    def bins(self) -> NDArray[np.float64]:
        """The sums of the complete bins, of shape (n_bins, n_features)."""
        return self._sums[: self.n_bins]

    @property
    def unpermuted(self) -> tuple[NDArray[np.float64], int]:
        """The sum over all rows outside of complete bins, and their number."""
        return self.rest + self._open, self.rest_rows + self._open_rows

    @property
    def total(self) -> NDArray[np.float64]:
        """The sum over all rows."""
        total: NDArray[np.float64] = self.bins.sum(axis=0) + self.unpermuted[0]
        return total

    def add(self, Z: NDArray[np.float64], bin_rows: int) -> None:
        """Add rows, in order, to bins of `bin_rows` rows."""
        self.n_rows += Z.shape[0]
        self.squares += float(np.vdot(Z, Z))
        while Z.shape[0]:
            if self._open_rows == 0 and Z.shape[0] >= bin_rows:
                whole = Z.shape[0] // bin_rows
                split = Z[: whole * bin_rows].reshape(whole, bin_rows, -1)
                self._append(Z if bin_rows == 1 else split.sum(axis=1))
                Z = Z[whole * bin_rows :]
                continue
            taken = min(bin_rows - self._open_rows, Z.shape[0])
            self._open += Z[:taken].sum(axis=0)
            self._open_rows += taken
            Z = Z[taken:]
            if self._open_rows == bin_rows:
                self._append(self._open[np.newaxis])
                self._clear_open_bin()

    def _append(self, sums: NDArray[np.float64]) -> None:
        needed = self.n_bins + sums.shape[0]
        if needed > self._sums.shape[0]:
            grown = np.empty((max(needed, min(2 * needed, self._capacity)), sums.shape[1]))
            grown[: self.n_bins] = self.bins
            self._sums = grown
        self._sums[self.n_bins : needed] = sums
        self.n_bins = needed

    def _clear_open_bin(self) -> None:
        self._open[:] = 0
        self._open_rows = 0

    def merge_neighbors(self, bin_rows: int) -> None:
        """Merge pairs of bins of `bin_rows` rows; an unpaired last bin becomes incomplete."""
        pairs = self.n_bins // 2
        if self.n_bins % 2:
            self._open += self._sums[self.n_bins - 1]
            self._open_rows += bin_rows
        for i in range(pairs):  # In place: the sums are the largest array.
            np.add(self._sums[2 * i], self._sums[2 * i + 1], out=self._sums[i])
        self.n_bins = pairs

    def release(self, surplus: int, bin_rows: int) -> None:
        """Move the last bins to the rows outside of bins."""
        self.rest += self._sums[self.n_bins - surplus : self.n_bins].sum(axis=0)
        self.rest_rows += surplus * bin_rows
        self.n_bins -= surplus


def divide_into_bins(n_x: int, n_y: int, max_bins: int) -> tuple[int, tuple[int, int]]:
    """Return the number of rows of a bin, and the numbers of bins of two samples of known sizes.

    `BinnedSamples` follows the same rules. The surplus of a far larger sample is outside of bins.

    Examples
    --------
    >>> from kernelmill.stats.permutations import divide_into_bins
    >>> divide_into_bins(500, 500, 1024), divide_into_bins(10**6, 10**6, 1024)
    ((1, (500, 500)), (2048, (488, 488)))
    """
    bin_rows = 1
    while n_x // bin_rows + n_y // bin_rows > max_bins:
        if min(n_x, n_y) // (2 * bin_rows) < max_bins // _MAX_RATIO:
            break
        bin_rows *= 2
    bins = [n_x // bin_rows, n_y // bin_rows]
    larger = int(n_y > n_x)
    bins[larger] -= max(0, sum(bins) - max_bins)
    return bin_rows, (bins[0], bins[1])


class BinnedSamples:
    """Two samples in bins of one size, which doubles as the number of rows grows.

    The bin of a row depends only on the numbers of rows. The surplus of a far larger sample is
    outside of bins: with larger bins, the smaller sample would have too few.
    """

    def __init__(self, n_features: int, max_bins: int, block_rows: int) -> None:
        self.max_bins = max_bins
        self.bin_rows = 1
        self.samples = tuple(BinnedSample(n_features, max_bins + block_rows) for _ in range(2))

    @classmethod
    def from_samples(cls, x: BinnedSample, y: BinnedSample, bin_rows: int) -> Self:
        """Return two complete samples."""
        samples = cls(x.rest.size, x.n_bins + y.n_bins, 0)
        samples.bin_rows, samples.samples = bin_rows, (x, y)
        return samples

    def add(self, which: int, Z: Floats) -> None:
        """Add at most a quarter of `max_bins` rows to sample 0 or 1; samples take turns."""
        self.samples[which].add(np.asarray(Z, np.float64), self.bin_rows)
        while (surplus := sum(sample.n_bins for sample in self.samples) - self.max_bins) > 0:
            smaller = min(sample.n_rows for sample in self.samples)
            if smaller // (2 * self.bin_rows) < self.max_bins // _MAX_RATIO:
                self.samples[which].release(surplus, self.bin_rows)
                return
            for sample in self.samples:
                sample.merge_neighbors(self.bin_rows)
            self.bin_rows *= 2


class PermutedNorms(NamedTuple):
    """Norms of the sum over X minus n_x times the mean, which are multiples of the discrepancy."""

    observed: float
    permuted: NDArray[np.float64]
    rounding: float


def permute_norms(
    strata: list[BinnedSamples], n_permutations: int, block_rows: int, stream: Stream
) -> PermutedNorms:
    """Return the norm for the given labels, and for labels permuted among the bins of a stratum.

    Rows outside of bins keep their labels. `rounding` bounds the difference of two norms that are
    equal in exact arithmetic: each sum has at most n_bins + block_rows + blocks terms.
    """
    n_rows = sum(sample.n_rows for stratum in strata for sample in stratum.samples)
    totals = [sample.total for stratum in strata for sample in stratum.samples]
    mean = np.sum(totals, axis=0) / n_rows
    bins, lengths = _center_bins(strata, mean)
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
        labels = _permute_labels(strata, begin, part.size, stream)
        part[:] = _norms(labels, bins, fixed)
    return PermutedNorms(float(observed), permuted, rounding)


def _center_bins(
    strata: list[BinnedSamples], mean: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Return all bins, centered, and the sum of their norms before centering."""
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
    parts: list[NDArray[np.float64]] = []
    for stratum in strata:
        x, y = stratum.samples
        parts += [np.ones(x.n_bins), np.zeros(y.n_bins)]
    return np.concatenate(parts)[np.newaxis]


def _permute_labels(
    strata: list[BinnedSamples], first: int, count: int, stream: Stream
) -> NDArray[np.float64]:
    """Return random labels, 1 for X and 0 for Y, with the numbers of bins of each stratum."""
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
