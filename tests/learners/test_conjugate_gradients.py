"""Conjugate gradients against the exact solver, and what they reject."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernelmill import Fastfood
from kernelmill.learners.regressor import KernelRegressor
from kernelmill.learners.solvers import cg as module
from kernelmill.random import Stream

MAP = Fastfood(n_components=200, length_scale=1.5, random_state=1)


def problem(n_rows=3000):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n_rows, 3))
    Y = np.stack([np.sin(X[:, 0]) + 30, 100 * X[:, 1] * X[:, 2], np.zeros(n_rows)], axis=1)
    Y += [0.1, 1.0, 0.0] * rng.standard_normal((n_rows, 3))
    weights = rng.uniform(0, 2, n_rows)
    weights[::9] = 0
    return X, Y, weights


@pytest.mark.representative
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e3])
def test_solution_is_the_exact_one(weighted, fit_intercept, alpha):
    X, Y, weights = problem()
    weights = weights if weighted else None
    exact = KernelRegressor(MAP, alpha=alpha, fit_intercept=fit_intercept, solver="exact")
    exact.fit(X, Y, weights)
    model = KernelRegressor(
        MAP, alpha=alpha, fit_intercept=fit_intercept, solver="cg", tol=1e-10, max_iter=2000
    ).fit(X, Y, weights)
    # ‖W - W*‖ ≤ ‖residual‖/α ≤ tol ‖C‖/α; features have norm 1, and the mean another 1.
    statistics = exact.statistics_
    equations = statistics.finalize(fit_intercept=fit_intercept)
    bound = 2 * 1e-10 * np.linalg.norm(equations.cross, axis=0) / alpha
    error = np.abs(model.predict(X) - exact.predict(X)).max(axis=0)
    rounding = 1e-9 * np.abs(Y).max(axis=0) / min(1.0, alpha * 100)
    assert (error <= bound + rounding).all()
    assert 1 <= model.n_iter_ < 2000
    np.testing.assert_allclose(model.noise_, exact.noise_, rtol=1e-5, atol=1e-8)


def test_preconditioner_saves_iterations(monkeypatch):
    X, Y, _ = problem()
    model = KernelRegressor(MAP, alpha=0.1, solver="cg", tol=1e-8, max_iter=3000)
    with_it = model.fit(X, Y).n_iter_
    monkeypatch.setattr(
        module,
        "_compute_top_spectrum",
        lambda sample: (np.zeros(0), np.zeros((0, sample.shape[1]))),
    )
    without = model.fit(X, Y).n_iter_
    assert 4 * with_it < without


def test_auto_is_exact_as_long_as_the_matrices_fit():
    X, Y, _ = problem(50)
    model = KernelRegressor(Fastfood(n_components=8200, random_state=0)).fit(X, Y)
    assert not hasattr(model, "statistics_")
    assert hasattr(KernelRegressor(MAP).fit(X, Y), "statistics_")
    with pytest.raises(ValueError, match="at most 8192 features, got 8200"):
        KernelRegressor(Fastfood(n_components=8200, random_state=0)).partial_fit(X, Y)


def test_blocks_are_passed_over_again():
    X, Y, weights = problem()
    whole = KernelRegressor(MAP, alpha=1.0, solver="cg", tol=1e-10).fit(X, Y, weights)
    blocks = [(X[i : i + 700], Y[i : i + 700], weights[i : i + 700]) for i in range(0, 3000, 700)]
    model = KernelRegressor(MAP, alpha=1.0, solver="cg", tol=1e-10).fit_blocks(blocks)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match="blocks must be iterable more than once"):
        model.fit_blocks(iter(blocks))


def test_same_seed_same_bits():
    X, Y, _ = problem()
    model = KernelRegressor(MAP, alpha=1.0, solver="cg", random_state=3)
    first = model.fit(X, Y).coef_
    np.testing.assert_array_equal(model.fit(X, Y).coef_, first)


def test_warns_when_it_gives_up():
    X, Y, _ = problem()
    model = KernelRegressor(MAP, alpha=1e-6, solver="cg", max_iter=2)
    with pytest.warns(ConvergenceWarning, match="after 2 iterations.*increase max_iter"):
        model.fit(X, Y)
    assert model.n_iter_ == 2


@pytest.mark.parametrize("X", [np.zeros((20, 2)), np.ones((1, 2))])
def test_constant_rows_leave_the_mean(X):
    y = np.arange(len(X)) + 3.0
    model = KernelRegressor(MAP, solver="cg").fit(X, y)
    np.testing.assert_allclose(model.predict(X), y.mean(), rtol=1e-12)
    assert model.n_iter_ == 1


def test_no_uncertainties():
    X, Y, _ = problem(100)
    model = KernelRegressor(MAP, solver="cg").fit(X, Y)
    with pytest.raises(ValueError, match="return_std needs the exact solver"):
        model.predict(X, return_std=True)
    with pytest.raises(ValueError, match="log_marginal_likelihood needs the exact solver"):
        model.log_marginal_likelihood()
    assert not hasattr(model, "partial_fit")
    model.set_params(solver="exact")
    with pytest.raises(ValueError, match="fitted by conjugate gradients"):
        model.partial_fit(X, Y)
    assert model.fit(X, Y).predict(X, return_std=True)[1].shape == Y.shape


@pytest.mark.parametrize("alpha", [0.0, [1.0, 2.0]])
def test_one_positive_penalty(alpha):
    X, Y, _ = problem(100)
    model = KernelRegressor(MAP, solver="cg").fit(X, Y)
    before = pickle.dumps(model)
    model.set_params(alpha=alpha)
    with pytest.raises(ValueError, match="alpha must be one positive number"):
        model.fit(X, Y)
    assert pickle.dumps(model.set_params(alpha=None)) == before
    with pytest.raises(ValueError, match="only zeros"):
        model.fit(X, Y, np.zeros(100))


def test_the_sample_stands_for_all_rows():
    X, Y, weights = problem()
    Z = MAP.fit(X).transform(X)
    blocks = [(Z[i : i + 999], Y[i : i + 999], weights[i : i + 999]) for i in range(0, 3000, 999)]
    means = module._compute_means(blocks)
    np.testing.assert_allclose(means.features, weights @ Z / weights.sum(), rtol=0, atol=1e-13)
    chosen = module._choose_rows(3000, module._SAMPLE_ROWS, Stream.from_seed(0))
    cross, moments, sample = module._compute_moments(blocks, means, chosen)
    centered, targets = Z - means.features, Y - means.targets
    np.testing.assert_allclose(cross, centered.T @ (weights[:, None] * targets), atol=1e-7)
    np.testing.assert_allclose(moments, weights @ targets**2, rtol=1e-12)
    # The trace from some 870 of 3000 rows, whose squared norms are between 0 and 1 with a deviation
    # below a half: 6 deviations of the mean are 0.1.
    full = (weights[:, None] * centered**2).sum()
    assert np.square(sample).sum() == pytest.approx(full, rel=0.15)
