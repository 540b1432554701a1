"""Hashes of rows: equal for equal rows in any representation, different for others."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelmill.random import Stream
from kernelmill.random.row_hashes import hash_rows, rank_keys


def small_integers(n_rows=100_000, n_columns=6):
    """Rows whose bits differ in few places, with many zeros."""
    numbers = np.arange(n_rows)
    return np.stack([(numbers // 8**k) % 8 for k in range(n_columns)], axis=1).astype(np.float64)


def test_rows_have_the_same_hash_in_any_representation():
    X = small_integers(5000)
    X[::3, 2] = -0.0
    expected = hash_rows(X)
    entries = csr_array(X)
    shuffled = entries.copy()
    for begin, end in zip(shuffled.indptr, shuffled.indptr[1:], strict=False):
        shuffled.indices[begin:end] = shuffled.indices[begin:end][::-1]
        shuffled.data[begin:end] = shuffled.data[begin:end][::-1]
    shuffled.has_sorted_indices = shuffled.has_canonical_format = False
    wider = csr_array((entries.data, entries.indices, entries.indptr), shape=(5000, 50))
    twice = csr_array((np.r_[1.0, 2.0, 5.0], [0, 0, 1], [0, 3]), shape=(1, 2))
    for same in (
        X.astype(np.float32),
        X.astype(np.uint8),
        np.asfortranarray(X),
        np.repeat(X, 2, axis=1)[:, ::2],
        np.c_[X, np.zeros(5000)],
        entries,
        entries.astype(np.float32),
        shuffled,
        wider,
    ):
        np.testing.assert_array_equal(hash_rows(same), expected)
    assert hash_rows(twice) == hash_rows(np.array([[3.0, 5.0]]))


@pytest.mark.parametrize("scale", [1.0, 0.1, -(2.0**60)])
def test_different_rows_have_different_hashes(scale):
    """100,000 rows; for random hashes, any two are equal with probability 3e-10."""
    hashes = hash_rows(small_integers() * scale)
    assert len(np.unique(hashes)) == 100_000
    # The low and the high bits are used for samples of keys and for their ranks: each bin has 1563
    # hashes on average; more than 6 standard deviations away with probability 1e-7 for any.
    for shift in (0, 58):
        counts = np.bincount((hashes >> np.uint64(shift)).astype(np.int64) % 64, minlength=64)
        assert abs(counts - 100_000 / 64).max() < 6 * (100_000 / 64) ** 0.5


def test_order_of_columns_matters_and_all_missing_values_are_equal():
    X = np.array([[1.0, 2.0], [2.0, 1.0], [np.nan, 1.0], [-np.nan, 1.0], [1.0, np.nan]])
    hashes = hash_rows(X)
    assert hashes[2] == hashes[3]
    assert len(set(hashes.tolist())) == 4


def test_ranks_are_uniform_and_depend_on_the_stream():
    """Kolmogorov–Smirnov at 1e-6: 2.7 / sqrt(n)."""
    keys = np.arange(20_000, dtype=np.uint64)
    ranks = [rank_keys(keys, Stream.from_seed(seed)) for seed in (0, 1)]
    for each in ranks:
        sorted_ranks = np.sort(each) / 2.0**64
        assert abs(sorted_ranks - (np.arange(20_000) + 0.5) / 20_000).max() < 2.7 / 20_000**0.5
    # Correlated with probability 1e-6 at 4.9 / sqrt(n).
    assert abs(np.corrcoef(ranks[0] / 2.0**64, ranks[1] / 2.0**64)[0, 1]) < 4.9 / 20_000**0.5
