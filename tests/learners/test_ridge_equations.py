"""Normal equations: against dense solutions, singular and nearly singular ones, both inverses."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from kernelmill.learners.ridge import CholeskyInverse, SpectralInverse
from kernelmill.learners.statistics import RidgeStatistics


def equations(n_rows=80, n_features=12, fit_intercept=True, weights=None, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n_rows, n_features)) + 3
    Y = rng.standard_normal((n_rows, 2)) + 5
    statistics = RidgeStatistics(n_features, 2).update(Z, Y, weights)
    return Z, Y, statistics.finalize(fit_intercept=fit_intercept)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("n_features", [1, 12, 300])  # 256 rows are copied at a time
def test_solution_is_that_of_scikit_learn(fit_intercept, weighted, alpha, n_features):
    n_rows = 3 * n_features + 20
    weights = np.random.default_rng(1).uniform(0, 2, n_rows) if weighted else None
    Z, Y, system = equations(n_rows, n_features, fit_intercept, weights)
    coef, intercept = system.solve(alpha)
    peer = Ridge(alpha=alpha, fit_intercept=fit_intercept, solver="svd").fit(Z, Y, weights)
    # Normal equations lose the square of the condition number, here up to some 1e3 (the mean).
    np.testing.assert_allclose(coef, peer.coef_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(intercept, peer.intercept_, rtol=0, atol=1e-8)


def test_both_inverses_agree():
    Z, _, system = equations()
    rows = np.ascontiguousarray(Z[:5])
    by_factor = system.inverse(0.5)
    assert isinstance(by_factor, CholeskyInverse)
    got = [
        by_factor.log_determinant(),
        by_factor.quadratic_forms(rows.copy()),
        by_factor.times(Z.T),
    ]
    solved = system.weights(by_factor)
    system.spectrum()
    by_vectors = system.inverse(0.5)
    assert isinstance(by_vectors, SpectralInverse)
    centered = Z - Z.mean(axis=0)
    matrix = centered.T @ centered + 0.5 * np.eye(12)
    inverse = np.linalg.inv(matrix)
    expected = [
        np.linalg.slogdet(matrix)[1],
        np.einsum("ij,jk,ik->i", rows, inverse, rows),
        inverse @ Z.T,
    ]
    other = [by_vectors.log_determinant(), by_vectors.quadratic_forms(rows), by_vectors.times(Z.T)]
    for a, b, c in zip(got, other, expected, strict=True):
        np.testing.assert_allclose(a, c, rtol=1e-11)
        np.testing.assert_allclose(b, c, rtol=1e-11)
    for a, b in zip(solved, system.weights(by_vectors), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_one_penalty_after_the_other():
    _, _, system = equations()
    first = system.solve(2.0)[0]
    assert np.abs(system.solve(50.0)[0] - first).max() > 1e-4
    np.testing.assert_array_equal(system.solve(2.0)[0], first)


@pytest.mark.parametrize("n_rows", [1, 5, 12])  # one row less than features, once centered
@pytest.mark.parametrize("with_spectrum", [True, False])
def test_undetermined_weights_are_an_error(n_rows, with_spectrum):
    _, _, system = equations(n_rows)
    if with_spectrum:
        system.spectrum()
    with pytest.raises(ValueError, match="alpha must be positive, got 0"):
        system.solve(0.0)
    assert np.isfinite(system.solve(1.0)[0]).all()  # and the equations are as before


@pytest.mark.parametrize("alpha", [1e-300, 1e-20, 1e-12])
def test_a_tiny_penalty_gives_the_least_norm_solution(alpha):
    Z, Y, system = equations(20, 50)
    coef, intercept = system.solve(alpha)
    centered = Z - Z.mean(axis=0)
    # The limit of ridge regression as the penalty vanishes. The singular values are between 2 and
    # 12: normal equations lose some 1e2 of 1e-16 here, and alpha itself changes less than 1e-12.
    expected = np.linalg.lstsq(centered, Y - Y.mean(axis=0), rcond=1e-10)[0]
    np.testing.assert_allclose(coef, expected.T, rtol=0, atol=1e-10)
    np.testing.assert_allclose(Z @ coef.T + intercept, Y, rtol=0, atol=1e-9)


def test_constant_features_leave_the_mean():
    statistics = RidgeStatistics(3, 1).update(np.ones((10, 3)), np.arange(10.0))
    coef, intercept = statistics.finalize().solve(1e-12)
    np.testing.assert_array_equal(coef, 0.0)
    assert intercept == pytest.approx(4.5)
    with pytest.raises(ValueError, match="linearly dependent"):
        statistics.finalize().solve(0.0)


@pytest.mark.parametrize(
    ("alpha", "error"),
    [(-1.0, ValueError), (np.nan, ValueError), (np.inf, ValueError), ("1", TypeError),
     (None, TypeError), (True, TypeError), (1j, TypeError), ([1.0], TypeError)],
)  # fmt: skip
def test_bad_penalties(alpha, error):
    _, _, system = equations()
    with pytest.raises(error, match="alpha must be"):
        system.solve(alpha)
