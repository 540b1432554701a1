"""Dot-product kernels by spherical harmonics: means, variances, references, limits and errors.

Means over independent seeds are compared with the kernel by t tests, with a false alarm of
probability 1e-6 a test (Bonferroni).
"""

from functools import lru_cache

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from kernelmill import DotProductFastfood
from kernelmill.kernels import (
    ArcCosine,
    ExponentialDotProduct,
    Maclaurin,
    Polynomial,
    SpherePower,
    Zonal,
    spherical_expansion,
)
from kernelmill.kernels.gegenbauer import legendre_polynomials, number_of_harmonics
from kernelmill.projections import FeatureLayout

N_SEEDS = 150
KERNELS = [
    Polynomial(2),
    Polynomial(3, gamma=0.5, coef0=1.0),
    ExponentialDotProduct(),
    Maclaurin([0.5, 0.0, 0.25, 0.0, 1.0]),
    SpherePower([1.0, 2.0, 0.0, 3.0, 1.0]),
    ArcCosine(0),
    ArcCosine(1),
    ArcCosine(2),
]


@pytest.fixture
def cached_expansions(monkeypatch):
    """The same expansion is asked for by every seed, and takes long for kernels of angles."""
    place = "kernelmill.maps.dot_product_fastfood.spherical_expansion"
    monkeypatch.setattr(place, lru_cache(spherical_expansion))


def rows_of(dim, on_sphere):
    rows = np.random.default_rng(dim).standard_normal((4, dim))
    norms = np.linalg.norm(rows, axis=1)
    wanted = 1.0 if on_sphere else np.array([0.5, 1.0, 1.3, 0.8])
    return rows / (norms / wanted)[:, np.newaxis]


def estimates_of(kernel, X, n_components, n_seeds=N_SEEDS, **options):
    maps = [
        DotProductFastfood(
            kernel, n_components=n_components, radius=1.0, random_state=seed, **options
        ).fit(X)
        for seed in range(n_seeds)
    ]
    features = [feature_map.transform(X) for feature_map in maps]
    return np.array([Z @ Z.T for Z in features]), maps[0].exact_kernel(X)


def largest_score(estimates, expected):
    errors = estimates.std(axis=0, ddof=1) / np.sqrt(len(estimates))
    away = np.abs(estimates.mean(axis=0) - expected)
    exact = errors <= 1e-12 * np.abs(expected).max()  # nothing is random there
    assert (away[exact] <= 1e-9 * np.abs(expected).max()).all()
    return (away[~exact] / errors[~exact]).max(initial=0.0)


@pytest.mark.usefixtures("cached_expansions")
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_unbiased(kernel):
    """For rows on the sphere, and for others; the same maps serve both."""
    options = {"max_degree": 12} if isinstance(kernel, Zonal) else {}
    dims = [1, 2, 3, 16, 20] if kernel == KERNELS[1] else [2, 20]
    limit = stats.t.isf(1e-6 / 2 / (len(dims) * 10), N_SEEDS - 1)
    wrong = [0.0, 0.0]
    for dim in dims:
        X = np.concatenate([rows_of(dim, on_sphere=True), rows_of(dim, on_sphere=False)])
        all_estimates, kernel_matrix = estimates_of(kernel, X, 41, **options)
        for i, part in enumerate((slice(0, 4), slice(4, 8))):
            estimates, expected = all_estimates[:, part, part], kernel_matrix[part, part]
            assert largest_score(estimates, expected) < limit, (dim, part)
            if dim > 1:
                wrong[i] = max(wrong[i], largest_score(estimates, 1.3 * expected))
    assert min(wrong) > limit  # weights that are off by 30 percent would be noticed


@pytest.mark.parametrize("n_components", [1, 5])
def test_few_columns_are_unbiased(n_components):
    """Most terms have no column then, and those that have one count for the others."""
    X = rows_of(3, on_sphere=False)
    estimates, expected = estimates_of(
        Polynomial(2, coef0=1.0), X, n_components, 600, blocks="independent"
    )
    assert largest_score(estimates, expected) < stats.t.isf(1e-6 / 2 / 10, 599)
    assert largest_score(estimates, 1.5 * expected) > stats.t.isf(1e-6 / 2 / 10, 599)


@pytest.mark.parametrize("kernel", KERNELS[:5], ids=repr)
@pytest.mark.parametrize("dim", [1, 2, 5, 64])
def test_columns_are_what_they_are_said_to_be(kernel, dim):
    """Against directions found by projecting unit vectors, and polynomials of another source."""
    X = 1.7 * np.random.default_rng(dim).standard_normal((7, dim))
    X[3] = 0
    fitted = DotProductFastfood(kernel, n_components=203, radius=1.5, random_state=2).fit(X)
    Z = fitted.transform(X)
    powers = isinstance(kernel, SpherePower)
    space = dim if powers else max(2, dim)
    directions = np.empty((space, 203))
    layout = FeatureLayout("projection", 203)
    fitted.projection_.features(np.eye(space), layout, None, directions)
    directions *= 1.5
    np.testing.assert_allclose(np.linalg.norm(directions, axis=0), 1, rtol=1e-12)
    norms = np.linalg.norm(X, axis=1)
    projections = X @ directions[:dim]
    degrees = fitted.degrees_
    assert (np.diff(degrees) >= 0).all()
    for j in range(203):
        n = degrees[j]
        if powers:
            shape = projections[:, j] ** n
        else:
            cosines = projections[:, j] / np.where(norms > 0, norms, 1)
            shape = legendre_polynomials(cosines, space, n)[n]
            shape *= np.sqrt(float(number_of_harmonics(space, n)))
            if n > 0:
                shape[norms == 0] = 0
        # What is left is a weight times a power of the norm: of the parity of the degree.
        used = np.abs(shape) > 1e-3 * np.abs(shape).max()
        radial = Z[used, j] / shape[used]
        if powers:
            np.testing.assert_allclose(radial, radial[0], rtol=1e-9)
        elif norms[used].min() > 0:
            slope = np.polyfit(np.log(norms[used]), np.log(radial), 1)[0]
            assert slope == pytest.approx(round(slope), abs=1e-6)
            assert round(slope) >= n
            assert (round(slope) - n) % 2 == 0


def test_zero_rows():
    X = np.zeros((2, 6))
    for kernel in KERNELS:
        options = {"max_degree": 4} if isinstance(kernel, Zonal) else {}
        fitted = DotProductFastfood(kernel, radius=1.0, random_state=0, **options).fit(X)
        Z = fitted.transform(X)
        np.testing.assert_allclose(Z @ Z.T, fitted.exact_kernel(X), rtol=1e-12)
        same = fitted.transform(sp.csr_array(X))
        np.testing.assert_array_equal(same, Z)


def test_constant_terms_are_exact():
    X = rows_of(9, on_sphere=False)
    fitted = DotProductFastfood(Polynomial(4, coef0=1.0), n_components=3000, radius=1.0).fit(X)
    assert np.count_nonzero(fitted.degrees_ == 0) == 3  # powers 0, 2 and 4 of the norms
    assert fitted.degrees_.size == 3000
    assert fitted.degrees_.max() == 4
    assert fitted.remainder_ == 0
    only = DotProductFastfood([2.0], n_components=5, random_state=0).fit(X)
    np.testing.assert_allclose(only.transform(X) @ only.transform(X).T, 2, rtol=1e-14)


class TestCutting:
    def test_dot_products(self):
        X = rows_of(4, on_sphere=False)
        fitted = DotProductFastfood("exponential", radius=1.0, max_degree=2, random_state=0).fit(X)
        t = X @ X.T
        np.testing.assert_allclose(fitted.exact_kernel(X), 1 + t + t**2 / 2, rtol=1e-12)
        assert fitted.remainder_ == pytest.approx(np.e - 2.5, rel=1e-12)
        assert fitted.degrees_.max() == 2
        whole = DotProductFastfood("exponential", radius=1.0, random_state=0).fit(X)
        assert whole.remainder_ < 1e-14
        np.testing.assert_allclose(whole.exact_kernel(X), np.exp(t), rtol=1e-12)

    def test_powers(self):
        X = rows_of(4, on_sphere=False)
        kernel = SpherePower([1.0, 2.0, 3.0])
        fitted = DotProductFastfood(kernel, radius=2.0, max_degree=1).fit(X)
        np.testing.assert_allclose(fitted.exact_kernel(X), SpherePower([1.0, 2.0])(X), rtol=1e-12)
        assert fitted.remainder_ == pytest.approx(3 * 16 * 3 / (4 * 6), rel=1e-12)  # E v_1^4

    def test_angles(self):
        X = rows_of(6, on_sphere=True)
        fitted = DotProductFastfood(ArcCosine(0), radius=1.0, max_degree=5).fit(X)
        full, cut = ArcCosine(0)(X), fitted.exact_kernel(X)
        np.testing.assert_allclose(np.diag(full - cut), fitted.remainder_, rtol=1e-9)
        assert 0.01 < fitted.remainder_ < 0.2
        both = fitted.exact_kernel(X, X[:2])
        np.testing.assert_allclose(both[2:], cut[2:, :2], rtol=1e-9)

    def test_series_that_end_at_a_radius(self):
        """1 / (1 - t/2) has no value at twice the radius."""
        kernel = Maclaurin(lambda n: 0.5**n)
        fitted = DotProductFastfood(kernel, radius=1.0, random_state=0).fit(np.eye(3))
        assert fitted.remainder_ < 1e-12


@pytest.mark.parametrize("dim", [16, 20])
def test_variance_is_about_that_of_independent_directions(dim):
    """Degree 2 and 256 columns, four blocks of 64: a term of one degree beside its exact constant.

    p = sqrt(N) L_2 of independent directions has a variance found here by Monte Carlo. Measured
    ratios are 0.36 to 1.0 for equal and close rows, 0.9 to 1.3 for orthogonal ones; with 600 seeds
    the ratio has a standard error of some 7 percent, and more than 1.6 is a false alarm of
    probability below 1e-6. Fours of copies of one direction would have 4.
    """
    X = np.eye(3, dim)
    X[1] = 0.8 * X[0] + 0.6 * X[1]
    estimates, _ = estimates_of(Polynomial(2), X, 257, 600)
    measured = estimates.var(axis=0)[0]
    directions = np.random.default_rng(0).standard_normal((200_000, dim))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    u = directions @ X.T
    n_harmonics = float(number_of_harmonics(dim, 2))
    features = np.sqrt(n_harmonics) * legendre_polynomials(u, dim, 2)[2]
    weight = (dim - 1) / dim  # t^2 = 1/d + (1 - 1/d) L_2
    independent = (weight * features[:, :1] * features).var(axis=0) / 256
    assert (measured / independent < 1.6).all(), measured / independent


def test_many_dimensions_in_float32():
    """Polynomials and their numbers neither overflow nor underflow."""
    X = np.random.default_rng(0).standard_normal((3, 32_768)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    for kernel in (Maclaurin([0.0] * 9 + [1.0]), SpherePower([0.0] * 9 + [1.0])):
        fitted = DotProductFastfood(kernel, n_components=64, random_state=0).fit(X)
        Z = fitted.transform(X)
        assert Z.dtype == np.float32
        assert np.isfinite(Z).all()
        exact = fitted.transform(X.astype(np.float64))
        np.testing.assert_allclose(Z, exact, atol=2e-4 * np.abs(exact).max())
        assert (exact != 0).all()


def test_norms_far_from_the_radius():
    X = np.array([[1e-12, 0.0], [3.0, 4.0], [1e12, 1e12]])
    fitted = DotProductFastfood(Polynomial(2), n_components=300, radius=1.0, random_state=0)
    Z = fitted.fit(X).transform(X)
    ratios = np.diag(Z @ Z.T) / np.diag(fitted.exact_kernel(X))
    assert (np.abs(ratios - 1) < 0.5).all()


ERRORS = [
    ({"kernel": "rbf"}, ValueError, "kernel must be one of .*shift-invariant"),
    ({"kernel": ArcCosine}, TypeError, r"kernel must be an instance.*write ArcCosine\("),
    ({"kernel": 3.0}, TypeError, "kernel must be one of"),
    ({"radius": 0}, ValueError, "radius must be a positive"),
    ({"radius": "mean"}, ValueError, "radius must be a positive number or 'scale', got 'mean'"),
    ({"max_degree": -1}, ValueError, "max_degree must be between 0 and 4096, got -1"),
    ({"max_degree": 2.5}, TypeError, "max_degree must be an integer"),
    ({"max_degree": 1}, ValueError, r"Polynomial\(degree=2.* has no terms .*max_degree=1"),
    ({"blocks": "other"}, ValueError, "blocks must be one of"),
    ({"n_components": 0}, ValueError, "n_components must be between 1 and"),
    ({"kernel": Zonal(lambda t: -t)}, ValueError, "positive definite"),
]


@pytest.mark.parametrize(("parameters", "error", "message"), ERRORS, ids=str)
def test_errors(parameters, error, message):
    with pytest.raises(error, match=message):
        DotProductFastfood(**parameters).fit(np.eye(4))


def test_many_columns_are_padded():
    """The estimate for 1500 columns, on a sphere in 2048 dimensions; 4.9 standard errors of 60."""
    rng = np.random.default_rng(11)
    X = rng.standard_normal((2, 1500)) / 40
    X[1] += X[0]
    kernel = Polynomial(3, coef0=1.0)
    sample = []
    for seed in range(60):
        fitted = DotProductFastfood(kernel, n_components=2048, random_state=seed).fit(X)
        a, b = fitted.transform(X)
        sample.append(a @ b)
    assert fitted.projection_.dim == 2048
    error = np.std(sample) / np.sqrt(len(sample))
    assert abs(np.mean(sample) - kernel(X)[0, 1]) < 4.9 * error
