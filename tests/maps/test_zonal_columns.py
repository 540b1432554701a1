"""Polynomials on the sphere: the identity that the features rest on, and the sharing of columns."""

import numpy as np
import pytest
from scipy import stats

from kernelmill.kernels.gegenbauer import legendre_polynomials, number_of_harmonics
from kernelmill.maps.dot_product_fastfood import (
    ZonalColumns,
    allocate_columns,
    legendre_terms,
    power_terms,
)
from kernelmill.random import Stream


def orthonormal(u, degree, dim):
    """The polynomial of the recurrence that the native core is given."""
    terms = legendre_terms(np.ones(1), np.zeros(1), np.array([degree]), dim)
    before, now = np.zeros_like(u), np.ones_like(u)
    for alpha, beta in zip(terms.alpha, terms.beta, strict=True):
        before, now = now, alpha * u * now - beta * before
    return now


@pytest.mark.parametrize("dim", [2, 3, 4, 7, 100, 10_000])
def test_recurrence_is_that_of_normalized_legendre_polynomials(dim):
    u = np.linspace(-1, 1, 41)
    polynomials = legendre_polynomials(u, dim, 9)
    for degree in range(10):
        expected = np.sqrt(float(number_of_harmonics(dim, degree))) * polynomials[degree]
        np.testing.assert_allclose(
            orthonormal(u, degree, dim), expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max()
        )


def points_on_the_circle():
    angles = 2 * np.pi * np.arange(64) / 64
    return np.stack([np.cos(angles), np.sin(angles)], axis=1), np.full(64, 1 / 64)


def points_on_the_sphere():
    """Exact for polynomials of degree 31: Gauss points of the height times equal angles."""
    heights, weights = np.polynomial.legendre.leggauss(16)
    circle, equal = points_on_the_circle()
    flat = np.sqrt(1 - heights**2)[:, np.newaxis, np.newaxis] * circle
    tall = np.broadcast_to(heights[:, np.newaxis, np.newaxis], (16, 64, 1))
    points = np.concatenate([flat, tall], axis=2).reshape(-1, 3)
    return points, np.outer(weights / 2, equal).ravel()


@pytest.mark.parametrize("make", [points_on_the_circle, points_on_the_sphere])
def test_identity_of_corollary_4_by_quadrature(make):
    """E_v[L_m(<x, v>) L_n(<y, v>)] is L_n(<x, y>) / N for m = n, and 0 otherwise."""
    points, weights = make()
    dim = points.shape[1]
    x, y = np.random.default_rng(dim).standard_normal((2, dim))
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    for m in range(10):
        for n in range(10):
            mean = weights @ (orthonormal(points @ x, m, dim) * orthonormal(points @ y, n, dim))
            expected = legendre_polynomials(x @ y, dim, n)[n] if m == n else 0.0
            assert mean == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("dim", [5, 40])
def test_identity_of_corollary_4_by_monte_carlo(dim):
    """A z test of 12 means over 200 000 directions, with a false alarm of probability 1e-6."""
    directions = Stream.from_seed(dim).sphere(200_000, dim)
    x = np.eye(1, dim)[0]
    limit = stats.norm.isf(1e-6 / 2 / 12)
    seen = 0
    for cosine in (1.0, 0.6, -0.3):
        y = np.zeros(dim)
        y[0], y[1] = cosine, np.sqrt(1 - cosine**2)
        for n in (1, 2, 3, 4):
            products = orthonormal(directions @ x, n, dim) * orthonormal(directions @ y, n, dim)
            error = products.std() / np.sqrt(products.size)
            expected = legendre_polynomials(cosine, dim, n)[n]
            assert abs(products.mean() - expected) < limit * error
            seen += abs(products.mean() - 1.2 * expected) > limit * error
    assert seen >= 6  # the number of homogeneous polynomials instead of N would be noticed


CASES = [
    (np.array([0.5, 0.25, 0.125, 0.125]), np.array([True, False, False, False]), 10),
    (np.array([0.9, 0.04, 0.05, 0.01]), np.array([True, False, True, False]), 10),
    (np.array([0.9, 0.04, 0.05, 0.01]), np.array([True, False, True, False]), 1),
    (np.array([1e-3, 3.0, 1e-9, 2.0]), np.array([False, False, False, False]), 7),
    (np.array([2.0, 1.0]), np.array([True, False]), 1),
    (np.array([5.0]), np.array([False]), 3),
]


@pytest.mark.parametrize(("shares", "constant", "n_columns"), CASES)
def test_shares_are_unbiased(shares, constant, n_columns):
    """Over all values of the uniform: an average over an even grid of them."""
    grid = (np.arange(5_000) + 0.5) / 5_000
    ratios = np.zeros(shares.size)
    for uniform in grid:
        counts, divisors = allocate_columns(shares, constant, n_columns, uniform)
        assert counts.sum() == n_columns
        ratios += counts / divisors
    # An interval of the uniforms is counted up to one point of the grid.
    means = n_columns * shares / shares.sum()
    np.testing.assert_allclose(ratios / grid.size, 1, atol=2 / grid.size / min(1, means.min()))


def test_constant_terms_take_one_column_and_others_the_rest():
    shares, constant = np.array([8.0, 1.0, 1.0]), np.array([True, False, False])
    counts, divisors = allocate_columns(shares, constant, 101, 0.3)
    assert counts.tolist() == [1, 50, 50]
    assert divisors.tolist() == [1, 50, 50]
    only = allocate_columns(np.array([1.0, 2.0]), np.array([True, True]), 9, 0.5)
    assert only[0].tolist() == [1, 1]
    columns = ZonalColumns(power_terms(np.ones(1), np.ones(1), 4), np.array([1]), np.ones(1), 5)
    z = np.ones((2, 5))
    columns.apply(z, np.ones(2))
    assert z.tolist() == [[1, 0, 0, 0, 0]] * 2  # what nobody needs is 0
