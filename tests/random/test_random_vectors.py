"""Spheres, balls and permutations.

Tests at level 1e-4 with fixed seeds; see test_random_distributions.py for the sum.
"""

import itertools

import numpy as np
import pytest
from scipy import stats

from kernelmill.random import Stream

LEVEL = 1e-4
DIMS = [1, 2, 3, 100]
ROWS = {1: 50_000, 2: 50_000, 3: 50_000, 100: 10_000}


def assert_uniform(u):
    assert stats.kstest(u, stats.uniform.cdf).pvalue > LEVEL


def assert_direction(unit):
    """Coordinates, their signs and their pairs are those of a uniform direction."""
    n, dim = unit.shape
    bound = stats.norm.isf(LEVEL / 2)
    for column in {0, 1 % dim, dim - 1}:
        x = unit[:, column]
        assert stats.binomtest(int((x > 0).sum()), n, 0.5).pvalue > LEVEL
        if dim > 1:
            beta = stats.beta(0.5, (dim - 1) / 2)
            assert stats.kstest(x**2, beta.cdf).pvalue > LEVEL
    for i, j in itertools.islice(itertools.combinations(range(dim), 2), 3):
        product = unit[:, i] * unit[:, j]
        assert abs(product.mean() / product.std()) * np.sqrt(n) < bound


@pytest.mark.parametrize("dim", DIMS)
def test_sphere(dim):
    x = Stream.from_seed(21).sphere(ROWS[dim], dim)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-14)
    assert_direction(x)
    if dim == 1:
        assert set(np.unique(x)) == {-1.0, 1.0}
    if dim == 2:
        assert_uniform(np.arctan2(x[:, 1], x[:, 0]) / (2 * np.pi) + 0.5)
    if dim == 3:
        assert_uniform((x[:, 2] + 1) / 2)  # Archimedes: the height is uniform


@pytest.mark.parametrize("dim", DIMS)
def test_ball(dim):
    x = Stream.from_seed(22).ball(ROWS[dim], dim)
    radius = np.linalg.norm(x, axis=1)
    assert radius.max() < 1 + 1e-14
    assert_uniform(np.minimum(radius**dim, 1))
    assert_direction(x / radius[:, None])
    size = np.sign(radius**dim - 0.5) * np.sign(x[:, 0])  # radius and direction are independent
    assert abs(size.mean()) * np.sqrt(len(x)) < stats.norm.isf(LEVEL / 2)


def test_rows_do_not_depend_on_the_thread_that_made_them():
    stream = Stream.from_seed(23)
    for dim in (1, 255, 256, 257, 5000):
        one = stream.ball(50, dim, n_threads=1)
        np.testing.assert_array_equal(one, stream.ball(50, dim, n_threads=3))
        np.testing.assert_array_equal(one[17], stream.ball(1, dim, start=17)[0])


@pytest.mark.parametrize("n", [0, 1, 2, 3, 255, 256, 257, 2**16])
def test_permutations_are_permutations(n):
    p = Stream.from_seed(24).permutation(n)
    assert p.dtype == np.int64
    np.testing.assert_array_equal(np.sort(p), np.arange(n))


def test_all_permutations_of_four_are_equally_likely():
    stream, count = Stream.from_seed(25), 24_000
    drawn = np.array([stream.permutation(4, index=i) for i in range(count)])
    _, counts = np.unique(drawn @ [64, 16, 4, 1], return_counts=True)
    assert counts.size == 24
    assert stats.chisquare(counts).pvalue > LEVEL


def test_every_element_goes_everywhere():
    stream, n, count = Stream.from_seed(26), 50, 10_000
    drawn = np.array([stream.permutation(n, index=i) for i in range(count)])
    for place in (0, 1, 25, 48, 49):
        assert stats.chisquare(np.bincount(drawn[:, place], minlength=n)).pvalue > LEVEL
        where = np.argmax(drawn == place, axis=1)
        assert stats.chisquare(np.bincount(where, minlength=n)).pvalue > LEVEL
    fixed = np.minimum((drawn == np.arange(n)).sum(axis=1), 5)  # Poisson(1), to 1/50!
    expected = stats.poisson.pmf(np.arange(6), 1)
    expected[5] = stats.poisson.sf(4, 1)
    assert stats.chisquare(np.bincount(fixed, minlength=6), count * expected).pvalue > LEVEL


def test_long_permutations_have_no_trend():
    n = 2**16
    p = Stream.from_seed(27).permutation(n)
    rank_correlation = np.corrcoef(np.arange(n), p)[0, 1]
    assert abs(rank_correlation) * np.sqrt(n - 1) < stats.norm.isf(LEVEL / 2)
