"""Sums of features over bins of rows: all that a permutation test keeps of two samples.

Bins have the same number of rows in both samples, so that they are exchangeable if all rows have
one distribution. The number of bins is bounded: where there are too many, neighbours are merged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BinnedSample", "BinnedSamples", "most_bins_for"]

_BYTES = 1 << 26  # of sums
_MOST_BINS = 1024
_FEWEST_BINS = 128
_LEAST_SHARE = 16  # one bin of so many, at least, is of the smaller sample where its rows suffice


def most_bins_for(n_features: int) -> int:
    """How many bins to keep: 1024, or less (a power of two) where features are very many."""
    fitting = max(1, _BYTES // (8 * n_features))
    return max(_FEWEST_BINS, min(_MOST_BINS, 1 << (fitting.bit_length() - 1)))


class BinnedSample:
    """The sums of one sample: of complete bins, of the last bin begun, of rows outside of bins."""

    def __init__(self, n_features: int, capacity: int) -> None:
        self._sums = np.empty((min(capacity, 16), n_features))
        self._capacity = capacity
        self.n_bins = 0
        self.n_rows = 0
        self.rest = np.zeros(n_features)
        self.rest_rows = 0
        self.squares = 0.0
        self._begun = np.zeros(n_features)
        self._begun_rows = 0

    @property
    def bins(self) -> NDArray[np.float64]:
        """The sums of the complete bins, of shape (n_bins, n_features)."""
        return self._sums[: self.n_bins]

    @property
    def unpermuted(self) -> tuple[NDArray[np.float64], int]:
        """The sum over all rows that are in no complete bin, and their number."""
        return self.rest + self._begun, self.rest_rows + self._begun_rows

    @property
    def total(self) -> NDArray[np.float64]:
        """The sum over all rows."""
        total: NDArray[np.float64] = self.bins.sum(axis=0) + self.unpermuted[0]
        return total

    def add(self, Z: NDArray[np.float64], bin_rows: int) -> None:
        """Put rows, in their order, into bins of this size."""
        self.n_rows += Z.shape[0]
        self.squares += float(np.vdot(Z, Z))
        while Z.shape[0]:
            if self._begun_rows == 0 and Z.shape[0] >= bin_rows:
                whole = Z.shape[0] // bin_rows
                split = Z[: whole * bin_rows].reshape(whole, bin_rows, -1)
                self._append(Z if bin_rows == 1 else split.sum(axis=1))
                Z = Z[whole * bin_rows :]
                continue
            taken = min(bin_rows - self._begun_rows, Z.shape[0])
            self._begun += Z[:taken].sum(axis=0)
            self._begun_rows += taken
            Z = Z[taken:]
            if self._begun_rows == bin_rows:
                self._append(self._begun[np.newaxis])
                self._begin_bin()

    def _append(self, sums: NDArray[np.float64]) -> None:
        needed = self.n_bins + sums.shape[0]
        if needed > self._sums.shape[0]:
            grown = np.empty((max(needed, min(2 * needed, self._capacity)), sums.shape[1]))
            grown[: self.n_bins] = self.bins
            self._sums = grown
        self._sums[self.n_bins : needed] = sums
        self.n_bins = needed

    def _begin_bin(self) -> None:
        self._begun[:] = 0
        self._begun_rows = 0

    def merge_neighbours(self, bin_rows: int) -> None:
        """Make bins of twice `bin_rows`, the size they have; a single last one is begun again."""
        pairs = self.n_bins // 2
        if self.n_bins % 2:
            self._begun += self._sums[self.n_bins - 1]
            self._begun_rows += bin_rows
        for i in range(pairs):  # in place: a copy of the sums would be the largest array of all
            np.add(self._sums[2 * i], self._sums[2 * i + 1], out=self._sums[i])
        self.n_bins = pairs

    def release(self, surplus: int, bin_rows: int) -> None:
        """Count the last bins among the rows outside of bins."""
        self.rest += self._sums[self.n_bins - surplus : self.n_bins].sum(axis=0)
        self.rest_rows += surplus * bin_rows
        self.n_bins -= surplus


class BinnedSamples:
    """Two samples in bins of one size, which grows by factors of two with the number of rows.

    Which row is in which bin depends on the numbers of rows alone. A sample far larger than the
    other has its surplus outside of bins: with larger bins the smaller one would have too few.
    """

    def __init__(self, n_features: int, most_bins: int, block_rows: int) -> None:
        self.most_bins = most_bins
        self.bin_rows = 1
        self.samples = tuple(BinnedSample(n_features, most_bins + block_rows) for _ in range(2))

    def add(self, which: int, Z: NDArray[Any]) -> None:
        """Add rows to sample 0 or 1: at most a quarter of `most_bins`, from both in turn."""
        self.samples[which].add(np.asarray(Z, np.float64), self.bin_rows)
        while (surplus := sum(sample.n_bins for sample in self.samples) - self.most_bins) > 0:
            smaller = min(sample.n_rows for sample in self.samples)
            if smaller // (2 * self.bin_rows) < self.most_bins // _LEAST_SHARE:
                self.samples[which].release(surplus, self.bin_rows)
                return
            for sample in self.samples:
                sample.merge_neighbours(self.bin_rows)
            self.bin_rows *= 2
