"""Which row is in which bin: found by rows that are unit vectors."""

import numpy as np
import pytest

from kernelmill.stats.permutations import BinnedSamples, choose_max_bins

MOST = 64
BLOCK = 16

SIZES = [(1, 1), (32, 32), (40, 25), (1000, 1000), (1001, 333), (5, 900), (900, 5), (63, 2000)]


def binned(n_x, n_y, most_bins=MOST, block=BLOCK):
    """Both samples in turn, as the test reads them; row i of a sample is the i-th unit vector."""
    samples = BinnedSamples(n_x + n_y, most_bins, block)
    rows = np.eye(n_x + n_y)
    parts = [rows[:n_x], rows[n_x:]]
    for begin in range(0, max(n_x, n_y), block):
        for which, part in enumerate(parts):
            if begin < len(part):
                samples.add(which, part[begin : begin + block])
    return samples


@pytest.mark.parametrize(("n_x", "n_y"), SIZES)
def test_every_row_is_in_one_bin_of_full_size_or_in_none(n_x, n_y):
    samples = binned(n_x, n_y)
    first = 0
    for sample, n in zip(samples.samples, (n_x, n_y), strict=True):
        own = np.zeros(n_x + n_y)
        own[first : first + n] = 1
        first += n
        rest, rest_rows = sample.unpermuted
        assert (sample.bins.sum(axis=1) == samples.bin_rows).all()
        np.testing.assert_array_equal(sample.bins.sum(axis=0) + rest, own)
        np.testing.assert_array_equal(sample.total, own)
        assert rest.sum() == rest_rows
        assert sample.n_rows == sample.squares == n


@pytest.mark.parametrize(("n_x", "n_y"), SIZES)
def test_bins_are_few_but_not_too_few(n_x, n_y):
    samples = binned(n_x, n_y)
    counts = [sample.n_bins for sample in samples.samples]
    assert sum(counts) <= MOST
    if n_x + n_y <= MOST:
        assert samples.bin_rows == 1
        assert counts == [n_x, n_y]
    else:
        assert sum(counts) > MOST // 2 - 2  # merged only where there were too many
        assert min(counts) >= min(n_x, n_y, MOST // 16)


def test_bins_hold_consecutive_rows():
    samples = binned(1000, 700)
    assert samples.bin_rows == 32
    for sample in samples.samples:
        places = [np.flatnonzero(row) for row in sample.bins]
        assert all(np.ptp(place) == samples.bin_rows - 1 for place in places)
        assert all(np.diff([place[0] for place in places]) == samples.bin_rows)


def test_surplus_of_the_larger_sample_stays_outside_of_bins():
    samples = binned(5, 900)
    small, large = samples.samples
    assert samples.bin_rows == 1
    assert (small.n_bins, large.n_bins) == (5, MOST - 5)
    assert large.unpermuted[1] == 900 - (MOST - 5)


def test_sums_are_bounded_in_memory():
    for n_features in (1, 100, 8192, 8193, 10**5, 10**6):
        bins = choose_max_bins(n_features)
        assert bins & (bins - 1) == 0
        assert 128 <= bins <= 1024
        assert bins == 128 or 8 * bins * n_features <= 1 << 26
