"""Gaussian templates: means, second moments, the choice of the spread, references and errors.

Statistics are t tests over independent seeds, with a false alarm of probability 1e-6 a test.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import optimize, stats

from kernelmill import GaussianTemplates
from kernelmill.kernels import Gaussian
from kernelmill.maps.scales import column_means
from kernelmill.projections import FeatureLayout

N_SEEDS = 200


def rows_of(dim, n_rows=4, seed=0):
    return np.random.default_rng([dim, seed]).standard_normal((n_rows, dim))


def centres_of(fitted, dim):
    """The centres themselves, found by projecting unit vectors."""
    n = fitted.n_components
    out = np.empty((dim, n))
    fitted.projection_.features(np.eye(dim), FeatureLayout("projection", n), None, out)
    return out.T * fitted.template_scale_**2


def products_of(X, n_components=64, **options):
    """The products of features of all pairs: shape (seeds, rows, rows, columns)."""
    features = [
        GaussianTemplates(n_components=n_components, random_state=seed, **options)
        .fit(X)
        .transform(X)
        for seed in range(N_SEEDS)
    ]
    Z = np.array(features)
    return Z[:, :, np.newaxis] * Z[:, np.newaxis]


def scores(means, expected):
    """Of means over seeds, along the first axis."""
    errors = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    return np.abs(means.mean(axis=0) - expected) / errors


def limit(n_scores):
    return stats.t.isf(1e-6 / 2 / n_scores, N_SEEDS - 1)


OPTIONS = [
    {},
    {"proper": False},
    {"center": None},
    {"spread": 0.5, "proper": False, "center": None},
    {"spread": 2.0},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dim", [1, 3, 64])
def test_unbiased(dim, options):
    X = rows_of(dim)
    if dim == 64 and options.get("spread") == 2.0:
        options = {"spread": 1.0}  # with 2, second moments are 1e13 times the squared kernel
    length_scale = 1.5 * np.sqrt(dim)
    estimates = products_of(X, length_scale=length_scale, **options).sum(axis=3)
    fitted = GaussianTemplates(length_scale=length_scale, **options).fit(X)
    expected = fitted.exact_kernel(X)
    assert scores(estimates, expected).max() < limit(16)
    assert scores(estimates, 1.5 * expected).max() > limit(16)
    if fitted.proper:
        np.testing.assert_allclose(expected, Gaussian()(X, length_scale=length_scale), rtol=1e-12)
        np.testing.assert_allclose(np.diag(expected), 1)


def test_kernel_without_division():
    """Eq. (25) with its constant, by a quadrature of one dimension."""
    X = np.array([[0.3], [-1.1], [2.0]])
    fitted = GaussianTemplates(length_scale=0.8, spread=1.3, proper=False, center=None).fit(X)
    z = np.linspace(-15, 15, 20_001)
    measure = stats.norm.pdf(z, scale=1.3) * (z[1] - z[0])
    templates = np.exp(-((X - z) ** 2) / (2 * fitted.template_scale_**2))
    k = (templates * measure) @ templates.T
    at_zero = measure @ np.exp(-(z**2) / fitted.template_scale_**2)
    np.testing.assert_allclose(fitted.exact_kernel(X), k / at_zero, rtol=1e-9)


def log_second_moment(dim, length_scale, spread, x, y):
    """Of the product of one feature of x with that of y, over the square of the kernel."""
    a = (1 + np.sqrt(1 + (length_scale / spread) ** 2)) / length_scale**2
    q = (a * length_scale**2 - 2) / (a * length_scale**2 + 2)
    squares = np.square(x + y).sum() / length_scale**2
    return dim / 2 * np.log((1 + q) ** 2 / (4 * q)) + q * squares


@pytest.mark.parametrize("spread", [0.3, 1.0])
@pytest.mark.parametrize("dim", [1, 3, 8])
def test_second_moment_is_that_of_the_notes(dim, spread):
    X, length_scale, n = rows_of(dim) / np.sqrt(dim), 1.7, 64
    options = {"length_scale": length_scale, "spread": spread, "center": None}
    squares = np.square(n * products_of(X, n, **options)).mean(axis=3)
    k = Gaussian()(X, length_scale=length_scale)
    logs = [[log_second_moment(dim, length_scale, spread, x, y) for y in X] for x in X]
    expected = k**2 * np.exp(logs)
    assert scores(squares, expected).max() < limit(16)
    assert scores(squares, 1.5 * expected).max() > limit(16)


@pytest.mark.parametrize("dim", [1, 4, 30, 1000])
@pytest.mark.parametrize("length_scale", [0.5, 2.0, 30.0])
def test_spread_of_least_variance(dim, length_scale):
    X = rows_of(dim, 50)
    X -= X.mean(axis=0)
    fitted = GaussianTemplates(length_scale=length_scale).fit(X)
    x = np.zeros(dim)
    x[0] = np.sqrt(np.square(X).sum(axis=1).mean())

    def objective(log_spread):
        return log_second_moment(dim, length_scale, np.exp(log_spread), x, x)

    best = optimize.minimize_scalar(
        objective, bounds=(np.log(fitted.spread_) - 3, np.log(fitted.spread_) + 3), method="bounded"
    )
    assert objective(np.log(fitted.spread_)) == pytest.approx(best.fun, rel=1e-6)
    assert np.exp(best.x) == pytest.approx(fitted.spread_, rel=1e-2)
    # and that is a part of the spread of the data
    a = (length_scale / fitted.template_scale_) ** 2
    q = (a - 2) / (a + 2)
    assert fitted.spread_ == pytest.approx(np.sqrt((1 - q) / dim) * x[0], rel=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"proper": False},
        {"weighting": "student", "proper": False},
        {"weighting": "student", "df": 1.0, "proper": False},
        {"weighting": lambda stream, n, dim: stream.uniforms(n), "proper": False},
        {},
    ],
    ids=["gaussian", "student", "cauchy", "custom", "proper"],
)
@pytest.mark.parametrize("dim", [1, 5, 64])
def test_columns_are_templates_around_centres(dim, options):
    X = rows_of(dim, 9) + 3
    fitted = GaussianTemplates(n_components=150, random_state=1, **options).fit(X)
    np.testing.assert_allclose(fitted.center_, X.mean(axis=0), rtol=1e-13)
    centres = centres_of(fitted, dim)
    moved = X - fitted.center_
    distances = np.square(moved[:, np.newaxis] - centres).sum(axis=2)
    expected = -distances / (2 * fitted.template_scale_**2)
    if fitted.proper:
        growth = 0.5 / fitted.template_scale_**2 - 1 / fitted.length_scale_**2
        expected += growth * np.square(moved).sum(axis=1)[:, np.newaxis]
    with np.errstate(divide="ignore"):
        logs = np.log(fitted.transform(X))
    seen = expected > -600
    constant = (logs - expected)[seen]
    np.testing.assert_allclose(constant, constant[0], atol=1e-9)
    if fitted.weighting != "gaussian":
        assert constant[0] == pytest.approx(-np.log(150) / 2, abs=1e-9)
        assert fitted.template_scale_ == pytest.approx(fitted.length_scale_ / np.sqrt(2))


def test_law_of_the_centres():
    """Kolmogorov-Smirnov tests with a false alarm of probability 1e-6 each."""
    X = rows_of(64, 30)
    laws = {"gaussian": stats.chi(64).cdf, "student": lambda r: stats.f(64, 3).cdf(r**2 / 64)}
    for weighting, law in laws.items():
        fitted = GaussianTemplates(
            n_components=3000, weighting=weighting, proper=False, spread=0.7, random_state=0
        ).fit(X)
        lengths = np.linalg.norm(centres_of(fitted, 64), axis=1) / 0.7
        assert stats.kstest(lengths, law).pvalue > 1e-6
        assert stats.kstest(1.1 * lengths, law).pvalue < 1e-6


def test_positive_and_finite_far_away(same_bits):
    for dtype in (np.float32, np.float64):
        X = rows_of(3, 20).astype(dtype)
        fitted = GaussianTemplates(n_components=500, random_state=0).fit(X)
        assert (fitted.transform(X) > 0).all()
        for factor in (1e1, 1e3, 1e10, 1e18):
            Z = fitted.transform(X * dtype(factor))
            assert np.isfinite(Z).all()
            assert (Z >= 0).all()
        plain = GaussianTemplates(n_components=500, proper=False, random_state=0).fit(X)
        assert (plain.transform(X * dtype(1e4)) == 0).all()  # far from every centre


def test_float32_is_close_to_float64():
    X = rows_of(10, 30)
    fitted = GaussianTemplates(n_components=300, random_state=0).fit(X)
    double, single = fitted.transform(X), fitted.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, double, rtol=2e-4, atol=1e-30)


@pytest.mark.parametrize("shape", [(1, 1), (5000, 1), (300_000, 5), (40, 3)])
def test_means_are_the_same_for_sparse_data(shape, same_bits):
    X = np.random.default_rng(0).standard_normal(shape)
    X[X < 0.3] = 0
    means = column_means(X)
    np.testing.assert_allclose(means, X.mean(axis=0), rtol=1e-12)
    same_bits(column_means(sp.csr_array(X)), means)
    same_bits(column_means(np.asfortranarray(X)), means)


def test_centering_is_a_shift(same_bits):
    X = rows_of(6, 30)
    far = GaussianTemplates(length_scale=2.0, random_state=0).fit(X + 8)
    near = GaussianTemplates(length_scale=2.0, random_state=0).fit(X)
    np.testing.assert_allclose(far.transform(X + 8), near.transform(X), rtol=1e-9)
    sparse = np.where(X > 0, X, 0.0)
    csr = sp.csr_array(sparse)
    features = GaussianTemplates(center=None, random_state=0)
    same_bits(features.fit(csr).transform(csr), features.fit(sparse).transform(sparse))
    features = GaussianTemplates(random_state=0)
    dense = features.fit(sparse).transform(sparse)
    np.testing.assert_allclose(features.fit(csr).transform(csr), dense, rtol=1e-12)


def test_equal_rows():
    X = np.full((5, 3), 2.0)
    fitted = GaussianTemplates(n_components=500, random_state=0).fit(X)
    Z = fitted.transform(X)
    np.testing.assert_allclose(Z @ Z.T, 1, rtol=1e-4)


ERRORS = [
    ({"spread": 0}, ValueError, "spread must be a positive"),
    ({"spread": "wide"}, ValueError, "spread must be a positive number or 'scale', got 'wide'"),
    ({"spread": None}, TypeError, "spread must be a positive"),
    ({"weighting": "uniform"}, ValueError, "weighting must be one of 'gaussian', 'student'"),
    ({"weighting": "student"}, ValueError, "proper=True needs weighting='gaussian'.*proper=False"),
    ({"df": -1}, ValueError, "df must be a positive"),
    ({"proper": 1}, TypeError, "proper must be True or False, got 1"),
    ({"center": "median"}, ValueError, "center must be 'mean' or None, got 'median'"),
    ({"length_scale": 1.0, "gamma": 2.0}, ValueError, "only one of length_scale and gamma"),
    ({"length_scale": -1}, ValueError, "length_scale must be a positive"),
    ({"n_components": 0}, ValueError, "n_components must be between 1 and"),
    (
        {"weighting": lambda stream, n, dim: -stream.uniforms(n), "proper": False},
        ValueError,
        "radii must be finite and not negative",
    ),
]


@pytest.mark.parametrize(("parameters", "error", "message"), ERRORS)
def test_errors(parameters, error, message):
    with pytest.raises(error, match=message):
        GaussianTemplates(**parameters).fit(np.eye(4))


def test_kernels_without_a_closed_form():
    fitted = GaussianTemplates(weighting="student", proper=False).fit(np.eye(4))
    with pytest.raises(
        ValueError, match=r"needs weighting='gaussian', .* closed form, got 'student'"
    ):
        fitted.exact_kernel(np.eye(4))
