"""Evidence and noise against dense n x n formulas, and their maximum."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import DotProduct

from kernelmill import Fastfood
from kernelmill.learners.evidence import log_evidence_at, most_likely_alpha
from kernelmill.learners.regressor import KernelRegressor
from kernelmill.learners.statistics import RidgeStatistics

MAP = Fastfood(n_components=48, length_scale=1.5, random_state=1)


def problem():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (30, 2))
    Y = np.stack([np.sin(X[:, 0]), 10 * X[:, 1] + 3], axis=1) + 0.2 * rng.standard_normal((30, 2))
    weights = rng.uniform(0.5, 2, 30)
    weights[[3, 17]] = 0
    return X, Y, weights, MAP.fit(X).transform(X)


def dense_log_evidence(Z, y, weights, signal, noise, fit_intercept):
    """The normal density of y; with an intercept, that times the integral over it."""
    present = weights > 0
    Z, y, weights = Z[present], y[present], weights[present]
    covariance = signal * Z @ Z.T + np.diag(noise / weights)
    if not fit_intercept:
        return multivariate_normal(np.zeros(len(y)), covariance).logpdf(y)
    # p(y | b) is a normal density in b, with precision 1ᵀC⁻¹1 around the best b.
    solved = np.linalg.solve(covariance, np.ones(len(y)))
    precision = solved.sum()
    best = solved @ y / precision
    at_best = multivariate_normal(np.full(len(y), best), covariance).logpdf(y)
    return at_best + 0.5 * np.log(2 * np.pi / precision)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("noise", [1e-3, 0.04, 3.0])
def test_evidence_at_a_given_noise(weighted, fit_intercept, noise):
    X, Y, weights, Z = problem()
    model = KernelRegressor(MAP, noise=noise, fit_intercept=fit_intercept)
    model.fit(X, Y, weights if weighted else None)
    weights = weights if weighted else np.ones(30)
    expected = sum(dense_log_evidence(Z, y, weights, 1.0, noise, fit_intercept) for y in Y.T)
    assert model.log_marginal_likelihood() == pytest.approx(expected, rel=1e-9)
    np.testing.assert_array_equal(model.noise_, [noise, noise])


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-3, 0.04, 3.0])
def test_estimated_noise_is_the_most_likely_one(weighted, fit_intercept, alpha):
    X, Y, weights, Z = problem()
    model = KernelRegressor(MAP, alpha=alpha, fit_intercept=fit_intercept)
    model.fit(X, Y, weights if weighted else None)
    weights = weights if weighted else np.ones(30)
    total = 0.0
    for y, noise in zip(Y.T, model.noise_, strict=True):

        def loss(factor, y=y, noise=noise):
            given = noise * np.exp(factor)
            return -dense_log_evidence(Z, y, weights, given / alpha, given, fit_intercept)

        found = minimize_scalar(loss, bounds=(-1, 1), method="bounded", options={"xatol": 1e-6})
        assert abs(found.x) < 1e-4  # the square root of the rounding of a maximum, and more
        total -= loss(0.0)
    assert model.log_marginal_likelihood() == pytest.approx(total, rel=1e-9)


def test_other_values_than_the_fitted_ones():
    X, Y, weights, _ = problem()
    model = KernelRegressor(MAP, alpha=0.3).fit(X, Y, weights)
    for name, value in [("alpha", 0.01), ("noise", 0.5)]:
        other = KernelRegressor(MAP, **{name: value}).fit(X, Y, weights)
        assert model.log_marginal_likelihood(**{name: value}) == pytest.approx(
            other.log_marginal_likelihood(), rel=1e-12
        )
    with pytest.raises(ValueError, match="only one of alpha and noise"):
        model.log_marginal_likelihood(alpha=1.0, noise=1.0)


def test_evidence_is_that_of_scikit_learn():
    X, Y, _, Z = problem()
    process = GaussianProcessRegressor(DotProduct(0.0, "fixed"), alpha=0.3, optimizer=None)
    process.fit(Z, Y[:, 0])
    model = KernelRegressor(MAP, noise=0.3, fit_intercept=False).fit(X, Y[:, 0])
    assert model.log_marginal_likelihood() == pytest.approx(
        process.log_marginal_likelihood_value_, rel=1e-10
    )


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_most_likely_alpha_has_no_better_neighbor(fit_intercept):
    _, Y, weights, Z = problem()
    equations = RidgeStatistics(48, 2).update(Z, Y, weights).finalize(fit_intercept=fit_intercept)
    alpha, value = most_likely_alpha(equations)
    assert value == pytest.approx(log_evidence_at(equations, alpha), rel=1e-10)
    for factor in np.geomspace(1e-5, 1e5, 41):
        assert log_evidence_at(equations, alpha * factor) <= value + 1e-9 * abs(value)


def test_noise_of_a_known_process_is_found():
    # y = Zw + e with w ~ N(0, 4), e ~ N(0, 0.25) and n = 4000 rows, D = 48: the estimate of the
    # noise has a relative standard deviation of √(2 / 3952) = 2.3 %; that of s² one of √(2 / 48)
    # = 20 %. Six deviations: a false alarm of 1e-8 for normal estimates.
    rng = np.random.default_rng(5)
    X = rng.uniform(-2, 2, (4000, 2))
    Z = MAP.fit(X).transform(X)
    y = Z @ (2 * rng.standard_normal(48)) + 0.5 * rng.standard_normal(4000)
    equations = RidgeStatistics(48, 1).update(Z, y).finalize(fit_intercept=False)
    alpha, _ = most_likely_alpha(equations)
    model = KernelRegressor(MAP, alpha=alpha, fit_intercept=False).fit(X, y)
    assert model.noise_ == pytest.approx(0.25, rel=6 * 0.023)
    # Directions with eigenvalues below the noise tell nothing of s²: half of them are left.
    assert np.log(model.noise_ / alpha / 4) == pytest.approx(0, abs=6 * np.sqrt(2 / 24))


def test_no_evidence_without_a_penalty():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 2))
    model = KernelRegressor(Fastfood(n_components=4, random_state=0), alpha=0).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="alpha must be positive to compute the evidence"):
        model.log_marginal_likelihood()


def test_constant_targets_have_no_noise():
    X, _, _, _ = problem()
    model = KernelRegressor(MAP).fit(X, np.full(30, 2.5))
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, 2.5, rtol=1e-14)
    np.testing.assert_allclose(std, 0.0, atol=1e-14)
    assert model.log_marginal_likelihood() > 100
