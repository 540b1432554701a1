"""The level: p-values under the hypothesis. Each test here fails by chance once in 10,000 seeds.

With 300 p-values, a level of 0.05 that is in truth 0.14 is noticed with probability 0.94, one of
0.1 that is 0.22 or 0.02 with 0.95.
"""

import numpy as np
import pytest
from scipy import stats

from kernelmill import Fastfood
from kernelmill.stats import two_sample, two_sample_test

FALSE_ALARM = 1e-4
N_PERMUTATIONS = 39  # p-values are multiples of 1/40
MAP = Fastfood(n_components=32, length_scale="median")


def p_values(n_x, n_y, n_tests, prepare=None, seed=0, feature_map=MAP):
    """P-values for samples of one skewed distribution."""
    rng = np.random.default_rng(seed)
    values = []
    for number in range(n_tests):
        X, Y = rng.exponential(size=(n_x, 3)), rng.exponential(size=(n_y, 3))
        if prepare is not None:
            X, Y = prepare(X), prepare(Y)
        result = two_sample_test(
            X, Y, feature_map=feature_map, n_permutations=N_PERMUTATIONS, random_state=number
        )
        values.append(result.p_value)
    return np.array(values)


def assert_level(values):
    """At levels 0.05 and 0.1, by exact binomial bounds (four tails share the false alarms)."""
    for level in (0.05, 0.1):
        low, high = stats.binom.ppf([FALSE_ALARM / 4, 1 - FALSE_ALARM / 4], len(values), level)
        assert low <= np.count_nonzero(values <= level + 1e-12) <= high


def in_blocks(X):
    return (X[begin : begin + 35] for begin in range(0, len(X), 35))


@pytest.fixture
def few_bins(monkeypatch):
    """Bins of several rows and streams with first rows, at sizes that take little time."""
    monkeypatch.setattr(two_sample, "choose_max_bins", lambda n_features: 32)
    monkeypatch.setattr(two_sample, "_FIRST_ROWS", 24)


def test_p_values_of_small_samples_are_uniform():
    values = p_values(15, 20, 600)
    assert_level(values)
    # 40 times the p-value is uniform on 1, ..., 40; minus a uniform part, it is continuous.
    uniform = np.random.default_rng(1).uniform(size=values.size)
    continuous = values - uniform / (1 + N_PERMUTATIONS)
    assert stats.kstest(continuous, "uniform").pvalue > FALSE_ALARM


@pytest.mark.parametrize(("n_x", "n_y"), [(2, 40), (1, 60)])
def test_very_unequal_sizes(n_x, n_y):
    """The rank of one row among 61 has ties: the level may then be less, but not more."""
    values = p_values(n_x, n_y, 300)
    for level in (0.05, 0.1):
        high = stats.binom.ppf(1 - FALSE_ALARM / 2, len(values), level)
        assert np.count_nonzero(values <= level + 1e-12) <= high


@pytest.mark.parametrize(("n_x", "n_y"), [(70, 90), (200, 9)])
def test_bins_of_several_rows_and_rows_outside_of_bins(few_bins, n_x, n_y):
    assert_level(p_values(n_x, n_y, 300))


@pytest.mark.parametrize(("n_x", "n_y"), [(30, 150), (8, 60)])
def test_streams(few_bins, n_x, n_y):
    assert_level(p_values(n_x, n_y, 300, in_blocks))


def test_length_scale_from_the_data_of_a_stream_matters_not(few_bins):
    """With "scale" and heavy tails, a single row decides on the length scale."""
    features = Fastfood(n_components=16, length_scale="scale")

    def heavy(X):
        return in_blocks(X**6)

    assert_level(p_values(40, 40, 300, heavy, feature_map=features))


def test_rows_in_order_make_no_false_alarms(few_bins):
    """Sorted streams: at most the level."""
    values = p_values(60, 60, 300, lambda X: in_blocks(X[X[:, 0].argsort()]))
    high = stats.binom.ppf(1 - FALSE_ALARM, len(values), 0.05)
    assert np.count_nonzero(values <= 0.05) <= high


def test_order_of_rows_in_matrices_does_not_matter(few_bins):
    assert_level(p_values(100, 100, 300, lambda X: X[X[:, 0].argsort()]))


def test_labels_are_uniform():
    """All ten choices of 3 rows of 5 are equally likely."""
    X, Y = np.array([[0.0], [1.0], [3.1]]), np.array([[7.3], [15.2]])
    result = two_sample_test(X, Y, n_permutations=5000, random_state=0)
    _, counts = np.unique(result.null_statistics.round(9), return_counts=True)
    assert counts.size == 10
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
