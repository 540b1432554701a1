"""Power and discrepancy beside the exact, quadratic test."""

import numpy as np
import pytest

from kernelmill import Fastfood, RandomFourier
from kernelmill.kernels import Gaussian
from kernelmill.stats import two_sample, two_sample_test

N_TESTS = 150
N_PERMUTATIONS = 99


def exact_discrepancies(X, Y, length_scale, labels):
    """Squared MMD for each row of labels, 1 for X and 0 for Y, with the whole kernel matrix."""
    kernel = Gaussian()(np.concatenate([X, Y]), length_scale=length_scale)
    weights = labels / len(X) - (1 - labels) / len(Y)
    return np.einsum("ij,jk,ik->i", weights, kernel, weights, optimize=True)


def exact_p_value(X, Y, length_scale, rng):
    labels = np.tile(np.r_[np.ones(len(X)), np.zeros(len(Y))], (1 + N_PERMUTATIONS, 1))
    labels[1:] = rng.permuted(labels[1:], axis=1)
    values = exact_discrepancies(X, Y, length_scale, labels)
    return np.mean(values >= values[0] * (1 - 1e-9))


def mean_shift(rng, n):
    return rng.normal(size=(n, 5)) + np.array([0.45, 0, 0, 0, 0])


def variance(rng, n):
    return rng.normal(scale=1.17, size=(n, 5))


def skewness(rng, n):
    return (rng.gamma(0.6, size=(n, 5)) - 0.6) / np.sqrt(0.6)


@pytest.mark.parametrize(
    ("other", "most_bins"),
    [(mean_shift, None), (variance, None), (skewness, None), (variance, 128)],
)
def test_power_is_that_of_the_exact_test(other, most_bins, monkeypatch):
    """Not less by more than 0.05 and four standard errors (a chance of 3e-5 each)."""
    if most_bins is not None:
        monkeypatch.setattr(two_sample, "choose_max_bins", lambda n_features: most_bins)
    rng = np.random.default_rng(0)
    features = Fastfood(n_components=512, length_scale="median")
    found = np.zeros((N_TESTS, 2), bool)
    n = 120
    for number in range(N_TESTS):
        X, Y = rng.normal(size=(n, 5)), other(rng, n)
        result = two_sample_test(
            X, Y, feature_map=features, n_permutations=N_PERMUTATIONS, random_state=number
        )
        assert result.bin_rows == (1 if most_bins is None else 2)
        found[number] = (
            result.p_value <= 0.05,
            exact_p_value(X, Y, result.length_scale, rng) <= 0.05,
        )
    ours, exact = found.mean(axis=0)
    assert 0.3 < exact < 0.95  # or the comparison would say nothing
    error = np.sqrt(np.mean(found[:, 0] != found[:, 1]) / N_TESTS)
    assert ours >= exact - 0.05 - 4 * error


def test_discrepancy_is_that_of_the_kernel():
    """Independent frequencies: within 4.5 of their standard errors (a chance of 7e-6)."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(150, 4)), rng.normal(0.5, 1.3, size=(90, 4))
    features = RandomFourier(n_components=2**14, length_scale=1.5)
    result = two_sample_test(X, Y, feature_map=features, random_state=0)
    labels = np.r_[np.ones(150), np.zeros(90)][np.newaxis]
    exact = exact_discrepancies(X, Y, 1.5, labels)[0]
    parts = np.square(result.mean_difference).reshape(2, -1).sum(axis=0) * 2**13
    error = parts.std() / np.sqrt(parts.size)
    assert error < 0.1 * exact
    assert abs(result.mmd2 - exact) < 4.5 * error


@pytest.mark.representative
def test_numbers_are_those_of_their_formulas():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(50, 3)), rng.normal(0.3, size=(70, 3))
    features = Fastfood(n_components=64, length_scale=2.0, random_state=1)
    result = two_sample_test(X, Y, feature_map=features, random_state=0)
    Z = features.fit_transform(np.concatenate([X, Y]))
    a, b = Z[:50], Z[50:]
    difference = a.mean(axis=0) - b.mean(axis=0)
    np.testing.assert_allclose(result.mean_difference, difference, rtol=0, atol=1e-14)
    assert result.mmd2 == pytest.approx(difference @ difference, rel=1e-10)
    assert result.statistic == pytest.approx(50 * 70 / 120 * result.mmd2, rel=1e-10)
    within_a = (np.sum(a @ a.T) - np.sum(a * a)) / (50 * 49)
    within_b = (np.sum(b @ b.T) - np.sum(b * b)) / (70 * 69)
    unbiased = within_a + within_b - 2 * np.mean(a @ b.T)
    assert result.mmd2_unbiased == pytest.approx(unbiased, rel=1e-9)
    assert (result.n_x, result.n_y, result.n_features) == (50, 70, 64)
    at_least = np.count_nonzero(result.null_statistics >= result.statistic)
    assert result.p_value == (1 + at_least) / 1000
    np.testing.assert_allclose(result.witness(X), a @ difference, rtol=0, atol=1e-13)


def test_small_sample_against_a_large_one():
    """50 rows against 20,000, most of which stay outside of bins."""
    rng = np.random.default_rng(0)
    features = Fastfood(n_components=128, length_scale="median")
    p_values = [
        two_sample_test(
            rng.normal(0.6, size=(50, 3)), rng.normal(size=(20_000, 3)),
            feature_map=features, random_state=seed,
        ).p_value
        for seed in range(3)
    ]  # fmt: skip
    assert p_values == [0.001] * 3
