"""The two-sample test on Dask collections, beside the one in memory."""

import dask.array as da
import numpy as np
import pytest

from kernelmill import Fastfood, stats
from kernelmill.scale import two_sample_test
from kernelmill.stats.permutations import divide_into_bins

pytestmark = pytest.mark.usefixtures("synchronous")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2500, 3))
Y = RNG.normal(size=(1501, 3))
MAP = Fastfood(n_components=64, length_scale=1.0, random_state=0)


def test_statistics_are_those_in_memory():
    chunks = ((1, 999, 0, 1500), 3)
    found = two_sample_test(
        da.from_array(X, chunks), da.from_array(Y, (700, 2)), feature_map=MAP, random_state=0
    )
    expected = stats.two_sample_test(X, Y, feature_map=MAP, shuffle=False, random_state=0)
    for name in ("statistic", "mmd2", "mmd2_unbiased"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9)
    np.testing.assert_allclose(found.mean_difference, expected.mean_difference, atol=1e-12)
    assert (found.n_x, found.n_y, found.bin_rows) == (2500, 1501, expected.bin_rows)
    # Both permute bins of consecutive rows of the same size: the same null distribution, up to
    # the 999 permutations; Kolmogorov's distance of two such samples exceeds 0.1 with p < 1e-4.
    grid = np.quantile(expected.null_statistics, np.linspace(0.05, 0.95, 19))
    shares = [np.mean(r.null_statistics[:, None] <= grid, axis=0) for r in (found, expected)]
    assert np.abs(shares[0] - shares[1]).max() < 0.1


def test_chunks_change_nothing_but_rounding():
    results = [
        two_sample_test(
            da.from_array(X, (size, 3)),
            da.from_array(Y, (size, 3)),
            feature_map=MAP,
            random_state=1,
        )
        for size in (97, 1300)
    ]
    assert results[0].p_value == results[1].p_value
    np.testing.assert_allclose(results[0].null_statistics, results[1].null_statistics, rtol=1e-9)


def test_level_and_power():
    rejected = 0
    n_tests = 60
    for seed in range(n_tests):
        rows = np.random.default_rng(seed).normal(size=(600, 2))
        result = two_sample_test(
            da.from_array(rows[:400], (150, 2)),
            da.from_array(rows[400:], (90, 2)),
            feature_map=Fastfood(n_components=16, random_state=seed),
            n_permutations=19,
            random_state=seed,
        )
        rejected += result.p_value <= 0.05
    assert rejected <= 10  # binomial with p = 0.05: exceeded with probability 1.8e-4
    shifted = two_sample_test(
        da.from_array(X, (600, 3)), da.from_array(Y + 0.3, (600, 3)), random_state=0
    )
    assert shifted.p_value == 0.001


@pytest.mark.parametrize("sizes", [(1, 1), (500, 524), (1000, 1000), (10**6, 3), (10**5, 10**9)])
def test_bins_are_bounded_and_within_the_rows(sizes):
    bin_rows, bins = divide_into_bins(*sizes, 1024)
    assert sum(bins) <= 1024
    for n_rows, n_bins in zip(sizes, bins, strict=True):
        assert 0 <= n_bins * bin_rows <= n_rows
    if sum(sizes) <= 1024:
        assert bin_rows == 1
        assert bins == sizes


def test_columns_must_be_the_same():
    with pytest.raises(ValueError, match="X and Y must have the same columns"):
        two_sample_test(da.from_array(X), da.from_array(Y[:, :2]))
