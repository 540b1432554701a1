"""Kernels as sums of Legendre polynomials in d dimensions."""

import functools
import math

import numpy as np
import pytest
from scipy import special, stats

from kernelmill.kernels import (
    ArcCosine,
    ExponentialDotProduct,
    Gaussian,
    Maclaurin,
    Polynomial,
    SpherePower,
    Zonal,
    spherical_expansion,
)
from kernelmill.kernels.gegenbauer import (
    legendre_polynomials,
    legendre_recurrence,
    log_number_of_harmonics,
    number_of_harmonics,
    power_in_legendre_polynomials,
)
from kernelmill.random import Stream

DIMS = [2, 3, 4, 10, 101]
T = np.linspace(-1, 1, 21)


def peer(n, dim, t):
    """The polynomials by scipy, which has no index 0."""
    if dim == 2:
        return np.cos(n * np.arccos(t))
    alpha = dim / 2 - 1
    return special.eval_gegenbauer(n, alpha, t) / special.eval_gegenbauer(n, alpha, 1.0)


@functools.cache
def sphere_quadrature(dim, count=200):
    """Nodes and probabilities of a coordinate of a uniform direction, by the angle."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    angles = np.pi / 2 * (nodes + 1)
    weights = weights * np.sin(angles) ** (dim - 2)
    return np.cos(angles), weights / weights.sum()


@pytest.mark.parametrize("dim", DIMS)
class TestPolynomials:
    def test_against_scipy(self, dim):
        found = legendre_polynomials(T, dim, 12)
        for n in range(13):
            np.testing.assert_allclose(found[n], peer(n, dim, T), rtol=0, atol=1e-12)
        assert legendre_polynomials(0.5, dim, 0).tolist() == [1.0]

    def test_orthogonality_counts_the_harmonics(self, dim):
        """E[L_m L_n] is 1 / N(d, n) for m = n, and 0 otherwise."""
        t, weights = sphere_quadrature(dim)
        polynomials = legendre_polynomials(t, dim, 9)
        gram = (polynomials * weights) @ polynomials.T
        counts = np.array([number_of_harmonics(dim, n) for n in range(10)], float)
        roots = np.sqrt(counts)
        np.testing.assert_allclose(gram * np.outer(roots, roots), np.eye(10), atol=1e-10)
        np.testing.assert_allclose(
            log_number_of_harmonics(dim, np.arange(10)), np.log(counts), rtol=1e-14
        )

    def test_dimension_of_harmonics_from_homogeneous_polynomials(self, dim):
        """Those of degree n less those of degree n - 2."""
        for n in range(2, 30):
            expected = math.comb(n + dim - 1, n) - math.comb(n + dim - 3, n - 2)
            assert number_of_harmonics(dim, n) == expected

    def test_powers(self, dim):
        table = power_in_legendre_polynomials(dim, 15)
        assert (table >= 0).all()
        np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-14)
        np.testing.assert_allclose(
            table @ legendre_polynomials(T, dim, 15), T ** np.arange(16)[:, None], atol=1e-14
        )
        t, weights = sphere_quadrature(dim)
        polynomials = legendre_polynomials(t, dim, 6)
        for k in range(7):
            for n in range(7):
                moment = weights @ (t**k * polynomials[n]) * number_of_harmonics(dim, n)
                assert table[k, n] == pytest.approx(moment, abs=1e-9)


def test_many_dimensions():
    """In 10^5 dimensions: log N exactly, and the highest power almost alone."""
    n = 30
    expected = math.log((2 * n + 99_998) * math.comb(n + 99_997, n - 1) // n)
    assert log_number_of_harmonics(100_000, n) == pytest.approx(expected, rel=1e-15)
    table = power_in_legendre_polynomials(100_000, 100)
    assert (table >= 0).all()
    np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-13)
    assert table[10, 10] == pytest.approx(1 - 45 / 100_000, abs=1e-5)


def test_products_of_projections_estimate_the_polynomials():
    """E_v[L_n(<x, v>) L_n(<y, v>)] = L_n(<x, y>) / N: z-scores, false alarm 1e-6 by Bonferroni.

    With the number of homogeneous polynomials in the place of N it would fail by far.
    """
    dim, cosine = 4, 0.6
    v = Stream.from_seed(1).sphere(400_000, dim)
    first, second = v[:, 0], cosine * v[:, 0] + math.sqrt(1 - cosine**2) * v[:, 1]
    for n in range(1, 5):
        draws = legendre_polynomials(first, dim, n)[n] * legendre_polynomials(second, dim, n)[n]
        error = draws.std() / math.sqrt(draws.size)
        exact = legendre_polynomials(cosine, dim, n)[n]
        limit = stats.norm.isf(1e-6 / 8)
        assert abs(draws.mean() - exact / number_of_harmonics(dim, n)) < limit * error
        homogeneous = math.comb(n + dim - 1, n)
        if n > 1:  # at degree 1 the numbers are the same
            assert abs(draws.mean() - exact / homogeneous) > limit * error


PRODUCTS = np.array([0.0, 0.01, 0.5, 1.0, 4.0])[:, None]


@pytest.mark.parametrize("dim", [2, 3, 7, 1000, 100_000])
@pytest.mark.parametrize(
    "kernel",
    [
        Polynomial(1),
        Polynomial(5, gamma=0.3, coef0=2.0),
        ExponentialDotProduct(1.5),
        Maclaurin([1.0, 0.0, 0.5]),
    ],
    ids=repr,
)
def test_dot_products_at_all_norms(kernel, dim):
    """k of vectors of norms r and s at an angle is the sum at r s, on the sphere and off it."""
    found = spherical_expansion(kernel, dim, radius=2.0)
    assert (found.weights > 0).all()
    assert found.dim == dim
    exact = kernel.value(PRODUCTS * T)
    np.testing.assert_allclose(found.value(T, PRODUCTS), exact, rtol=1e-12, atol=1e-12)
    assert abs(found.remainder) <= 1e-14 * kernel.value(4.0)


def test_the_power_of_norms_is_not_the_degree():
    """Eq. (16) of Le, Sarlós & Smola has it so, which is right on the unit sphere only."""
    kernel = Polynomial(2)
    found = spherical_expansion(kernel, 3)
    wrong = type(found)(
        dim=3, weights=found.weights, radial_power=found.degree * 1.0, degree=found.degree
    )
    np.testing.assert_allclose(wrong.value(T), kernel.value(T), atol=1e-15)
    assert np.abs(wrong.value(T, 4.0) - kernel.value(4 * T)).max() > 1
    np.testing.assert_allclose(found.value(T, 4.0), kernel.value(4 * T), atol=1e-14)


def test_series_cut_short_leave_a_remainder():
    found = spherical_expansion(ExponentialDotProduct(), 5, max_degree=3)
    assert found.radial_power.max() == 3
    assert found.remainder == pytest.approx(math.e - (1 + 1 + 1 / 2 + 1 / 6), rel=1e-12)
    assert spherical_expansion(Polynomial(2), 5, max_degree=9).remainder == 0
    assert spherical_expansion(SpherePower([1.0, 1.0]), 5, max_degree=0).remainder == pytest.approx(
        0.2
    )


@pytest.mark.parametrize("dim", [2, 3, 50, 100_000])
def test_sphere_power(dim):
    """By Funk and Hecke, the coefficient of degree n is the square of that of t^p, over N."""
    kernel = SpherePower([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    found = spherical_expansion(kernel, dim)
    of_power = power_in_legendre_polynomials(dim, 5)[5]
    np.testing.assert_array_equal(found.degree, [1, 3, 5])
    for degree, weight in zip(found.degree, found.weights, strict=True):
        expected = of_power[degree] ** 2 / number_of_harmonics(dim, int(degree))
        assert weight == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(
        found.value(T, PRODUCTS), kernel.value(T, PRODUCTS, dim), rtol=1e-11, atol=1e-300
    )


class TestZonal:
    @pytest.mark.parametrize("dim", [2, 3, 8, 40])
    def test_exponential_against_its_series(self, dim):
        zonal = Zonal(np.exp, power=1.5)
        found = spherical_expansion(zonal, dim, max_degree=20)
        series = spherical_expansion(ExponentialDotProduct(), dim)
        expected = np.zeros(series.degree.max() + 1)
        np.add.at(expected, series.degree, series.weights)
        bound = 1e-12 * np.exp(0.5 * log_number_of_harmonics(dim, found.degree))
        assert (np.abs(found.weights - expected[found.degree]) < bound).all()
        assert (found.radial_power == 1.5).all()
        np.testing.assert_allclose(found.value(T, 4.0), 4.0**1.5 * np.exp(T), rtol=1e-6)
        assert found.degree[0] == 0

    @pytest.mark.parametrize("order", [0, 1, 2])
    @pytest.mark.parametrize("dim", [2, 3, 5, 20, 200, 5000, 100_000])
    def test_arc_cosines(self, order, dim):
        """Degrees add up to the kernel, the faster the smoother it is."""
        kernel = ArcCosine(order)
        found = spherical_expansion(kernel, dim)
        assert (found.weights > 0).all()
        assert set(found.degree) >= set(range(2))
        assert 0 < found.remainder < [0.05, 5e-4, 5e-5][order]
        inside = np.linspace(-0.5, 0.5, 11)
        np.testing.assert_allclose(
            found.value(inside), kernel.value(inside), atol=[3e-4, 1e-6, 1e-8][order]
        )

    def test_quadrature_and_series_agree(self):
        """Both ways to the coefficients, where both are precise."""
        for order in (0, 1, 2):
            known = ArcCosine(order)
            unknown = Zonal(known.profile, power=order)
            for dim in (10, 30):
                both = [spherical_expansion(k, dim, max_degree=8) for k in (known, unknown)]
                np.testing.assert_array_equal(both[0].degree, both[1].degree)
                np.testing.assert_allclose(both[0].weights, both[1].weights, rtol=1e-8, atol=1e-11)

    def test_not_positive_definite(self):
        """cos(2 theta) is L_2 on the circle; 2 t^2 - 1 has the mean 2/3 - 1 on the sphere."""
        twice = Zonal(lambda t: 2 * t * t - 1)
        assert spherical_expansion(twice, 2).weights == pytest.approx([1.0])
        with pytest.raises(ValueError, match=r"in 3 dimensions its coefficient of degree 0"):
            spherical_expansion(twice, 3)
        with pytest.raises(ValueError, match=r"degree 1 is -1; choose another profile"):
            spherical_expansion(Zonal(np.negative), 5)
        with pytest.raises(ValueError, match="must be finite"):
            spherical_expansion(Zonal(lambda t: np.where(t > 0, np.inf, 1.0)), 3)

    def test_rounding_is_not_taken_for_a_coefficient(self):
        for dim in (2, 3, 100, 100_000):
            found = spherical_expansion(Zonal(lambda t: 0 * t + 1), dim)
            assert found.degree.tolist() == [0]
            assert found.weights == pytest.approx([1.0], abs=1e-14)

    def test_wrong_series(self):
        for wrong in (lambda n: -np.ones(n), lambda n: np.ones(3)):
            with pytest.raises(ValueError, match="numbers that are not negative"):
                spherical_expansion(Zonal(np.exp, maclaurin=wrong), 3)


def test_errors():
    for call in (
        lambda: spherical_expansion(Polynomial(), 1),
        lambda: legendre_recurrence(1, 3),
        lambda: number_of_harmonics(1, 3),
        lambda: power_in_legendre_polynomials(1, 3),
    ):
        with pytest.raises(ValueError, match=r"dim must be at least 2, got 1.*second coordinate 0"):
            call()
    with pytest.raises(TypeError, match=r"kernel must be a DotProductKernel.*got Gaussian\(\)"):
        spherical_expansion(Gaussian(), 3)
    with pytest.raises(ValueError, match="max_degree must be between 0"):
        spherical_expansion(Polynomial(), 3, max_degree=-1)
    with pytest.raises(ValueError, match="radius must be a positive"):
        spherical_expansion(Polynomial(), 3, radius=0)
    with pytest.raises(ValueError, match="dim must be at least 1, got 0"):
        spherical_expansion(Polynomial(), 0)
