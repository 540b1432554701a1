"""Scores of penalties against their definitions: refits without each row, and the hat matrix."""

import numpy as np
import pytest

from kernelmill import Fastfood
from kernelmill.learners.regressor import KernelRegressor

ALPHAS = [1e-3, 0.1, 1.0, 30.0]


def problem(n_outputs=2):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (40, 3))
    Y = np.sin(X[:, :n_outputs]) + 0.3 * rng.standard_normal((40, n_outputs)) + 4
    weights = rng.uniform(0.5, 2, 40)
    weights[[3, 17]] = 0
    feature_map = Fastfood(n_components=32, length_scale=1.5, random_state=1)
    return X, Y, weights, feature_map


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_leave_one_out_is_that_of_refitting(weighted, fit_intercept):
    X, Y, weights, feature_map = problem()
    weights = weights if weighted else np.ones(40)
    model = KernelRegressor(
        feature_map, alpha=ALPHAS, scoring="loo", fit_intercept=fit_intercept
    ).fit(X, Y, weights if weighted else None)
    expected = []
    for alpha in ALPHAS:
        errors = []
        for i in range(40):
            rest = np.arange(40) != i
            refit = KernelRegressor(feature_map, alpha=alpha, fit_intercept=fit_intercept)
            refit.fit(X[rest], Y[rest], weights[rest])
            errors.append(np.mean((refit.predict(X[[i]])[0] - Y[i]) ** 2))
        expected.append(weights @ errors / weights.sum())
    # The condition number is below 1e6 (40 by the least penalty, squared in M but not here).
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-8)
    np.testing.assert_array_equal(model.alphas_, ALPHAS)
    assert model.alpha_ == ALPHAS[int(np.argmin(expected))]


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("times", [1, 3])  # few penalties have a factor each
def test_gcv_is_its_definition(weighted, fit_intercept, times):
    X, Y, weights, feature_map = problem()
    alphas = np.tile(ALPHAS, times)
    model = KernelRegressor(feature_map, alpha=alphas, fit_intercept=fit_intercept)
    model.fit(X, Y, weights if weighted else None)
    weights = weights if weighted else np.ones(40)
    root = np.sqrt(weights)[:, None]
    Z = feature_map.fit(X).transform(X)
    design = np.hstack([Z, np.ones((40, 1))]) if fit_intercept else Z
    for alpha, score in zip(alphas, model.scores_, strict=True):
        penalty = alpha * np.eye(design.shape[1])
        if fit_intercept:
            penalty[-1, -1] = 0
        A = root * design
        hat = A @ np.linalg.solve(A.T @ A + penalty, A.T)
        residuals = root * Y - hat @ (root * Y)
        n = np.count_nonzero(weights)
        gcv = np.square(residuals).mean(axis=1).sum() / weights.sum()
        gcv /= (1 - np.trace(hat) / n) ** 2
        assert score == pytest.approx(gcv, rel=1e-8)


def test_the_best_one_is_what_is_fitted():
    X, Y, weights, feature_map = problem(1)
    several = KernelRegressor(feature_map, alpha=ALPHAS).fit(X, Y[:, 0], weights)
    one = KernelRegressor(feature_map, alpha=several.alpha_).fit(X, Y[:, 0], weights)
    assert several.alpha_ == ALPHAS[int(np.argmin(several.scores_))]
    np.testing.assert_allclose(several.coef_, one.coef_, rtol=0, atol=1e-9)
    for got, expected in zip(
        several.predict(X, return_std=True), one.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-8)
    assert several.log_marginal_likelihood() == pytest.approx(one.log_marginal_likelihood())
    one_of_several = clone_and_refit(several, X, Y[:, 0])
    assert not hasattr(one_of_several, "scores_")


def clone_and_refit(model, X, y):
    return model.set_params(alpha=1.0).fit(X, y)


def test_equal_scores_take_the_largest_penalty():
    X, _, _, feature_map = problem()
    model = KernelRegressor(feature_map, alpha=ALPHAS).fit(X, np.ones(40))
    np.testing.assert_allclose(model.scores_, 0, atol=1e-25)
    model = KernelRegressor(feature_map, alpha=ALPHAS).fit(X[:1], [2.0])
    assert np.isinf(model.scores_).all()
    assert model.alpha_ == max(ALPHAS)
    np.testing.assert_allclose(model.predict(X), 2.0)
    model.set_params(scoring="loo").fit(X[:1], [2.0])
    assert np.isinf(model.scores_).all()


@pytest.mark.parametrize("alpha", [[], [1.0, 0.0], [1.0, -1.0], [np.nan], ["a"], [[1.0], [2.0]]])
def test_bad_sequences(alpha):
    X, Y, _, feature_map = problem()
    with pytest.raises(ValueError, match="alpha must be"):
        KernelRegressor(feature_map, alpha=alpha).fit(X, Y)


def test_leave_one_out_needs_the_rows():
    X, Y, _, feature_map = problem()
    model = KernelRegressor(feature_map, alpha=ALPHAS, scoring="loo")
    with pytest.raises(ValueError, match="scoring must be 'gcv'"):
        model.fit_blocks([(X, Y)])
    with pytest.raises(ValueError, match="scoring must be 'gcv'"):
        model.partial_fit(X, Y)
