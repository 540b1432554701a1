"""KernelRegressor against exact kernel methods: KernelRidge and GaussianProcessRegressor."""

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import FunctionTransformer

from kernelmill import Fastfood, Nystroem, RandomFourier, TensorSketch
from kernelmill.learners.regressor import KernelRegressor
from kernelmill.learners.solvers import exact

MAPS = [
    Fastfood(n_components=64, length_scale=1.5, random_state=1),
    RandomFourier(n_components=50, features="complex", random_state=1),
    TensorSketch(2, coef0=1.0, n_components=32, random_state=1),
]


def problem(n_rows=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n_rows, 3))
    Y = np.stack([np.sin(X[:, 0]), 5 * X[:, 1] + 3], axis=1)
    Y += 0.2 * rng.standard_normal((n_rows, 2))
    return X, Y, rng.uniform(0.5, 2, n_rows), rng.uniform(-3, 3, (25, 3))


def real(Z):
    return np.hstack([Z.real, Z.imag]) if Z.dtype.kind == "c" else Z


@pytest.mark.representative
@pytest.mark.parametrize("feature_map", MAPS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("alpha", [1e-2, 1.0, 100.0])
@pytest.mark.parametrize("weighted", [True, False])
def test_mean_is_that_of_kernel_ridge(feature_map, alpha, weighted):
    X, Y, weights, X_new = problem()
    weights = weights if weighted else None
    model = KernelRegressor(feature_map, alpha=alpha, fit_intercept=False).fit(X, Y, weights)
    fitted = feature_map.fit(X)
    Z, Z_new = real(fitted.transform(X)), real(fitted.transform(X_new))
    peer = KernelRidge(alpha=alpha, kernel="precomputed").fit(Z @ Z.T, Y, weights)
    expected = peer.predict(Z_new @ Z.T)
    # Condition numbers up to 1e5: of 200 of the kernel's trace by alpha, times the features' size.
    np.testing.assert_allclose(model.predict(X_new), expected, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(model.intercept_, 0.0)


@pytest.mark.parametrize("feature_map", MAPS[:2], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("noise", [1e-2, 1.0])
def test_mean_and_std_are_those_of_gaussian_processes(feature_map, noise):
    X, Y, _, X_new = problem()
    model = KernelRegressor(feature_map, noise=noise, fit_intercept=False).fit(X, Y)
    fitted = feature_map.fit(X)
    Z, Z_new = real(fitted.transform(X)), real(fitted.transform(X_new))
    process = GaussianProcessRegressor(DotProduct(0.0, "fixed"), alpha=noise, optimizer=None)
    mean, std = process.fit(Z, Y).predict(Z_new, return_std=True)
    got_mean, got_std = model.predict(X_new, return_std=True)
    np.testing.assert_allclose(got_mean, mean, rtol=0, atol=1e-9)
    # Theirs is the root of a difference of numbers about 1, which rounds by some 1e-14.
    np.testing.assert_allclose(got_std**2, std**2, rtol=0, atol=1e-12)
    single = KernelRegressor(feature_map, noise=noise, fit_intercept=False).fit(X, Y[:, 0])
    got_mean, got_std = single.predict(X_new, return_std=True)
    np.testing.assert_allclose(got_mean, mean[:, 0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(got_std**2, std[:, 0] ** 2, rtol=0, atol=1e-12)


@pytest.mark.parametrize("weighted", [True, False])
def test_intercept_is_a_constant_with_a_flat_prior(weighted):
    # A constant of variance v → ∞ beside the kernel; for v = 1e7 the rest is of order 1/v.
    X, Y, weights, X_new = problem()
    weights = weights if weighted else np.ones(60)
    fitted = MAPS[0].fit(X)
    Z, Z_new = fitted.transform(X), fitted.transform(X_new)
    noise, v = 0.1, 1e7
    factor = cho_factor(Z @ Z.T + v + np.diag(noise / weights))
    cross = Z_new @ Z.T + v
    mean = cross @ cho_solve(factor, Y)
    variance = (Z_new * Z_new).sum(axis=1) + v - (cross * cho_solve(factor, cross.T).T).sum(axis=1)
    model = KernelRegressor(MAPS[0], noise=noise).fit(X, Y, weights if weighted else None)
    got_mean, got_std = model.predict(X_new, return_std=True)
    # v is some 1e8 times what it cancels to; 60 rows.
    np.testing.assert_allclose(got_mean, mean, rtol=0, atol=1e-5)
    np.testing.assert_allclose(got_std[:, 0] ** 2, variance, rtol=0, atol=1e-5)
    noisy = model.predict(X_new, return_std=True, include_noise=True)[1]
    np.testing.assert_allclose(noisy**2, got_std**2 + noise, rtol=1e-12)


def test_std_of_an_estimated_scale_follows_the_targets():
    X, Y, _, X_new = problem()
    model = KernelRegressor(MAPS[0], alpha=0.1).fit(X, Y)
    scaled = KernelRegressor(MAPS[0], alpha=0.1).fit(X, 7 * Y - 3)
    mean, std = model.predict(X_new, return_std=True)
    scaled_mean, scaled_std = scaled.predict(X_new, return_std=True)
    np.testing.assert_allclose(scaled_mean, 7 * mean - 3, rtol=0, atol=1e-10)
    np.testing.assert_allclose(scaled_std, 7 * std, rtol=1e-10)
    # And is that of a process with the estimated variances.
    factor = 1 / np.sqrt(model.noise_ / 0.1)
    process = KernelRegressor(MAPS[0], noise=0.1).fit(X, Y * factor)
    np.testing.assert_allclose(process.predict(X_new, return_std=True)[1] / factor, std, rtol=1e-9)


def test_intervals_cover_what_they_say():
    # 2000 new targets in the 95 % interval of the noisy function: a share of 0.95 ± 0.005. The fit
    # is one draw, so its own errors move all shares: ± 0.02 is 4 deviations and some of that.
    rng = np.random.default_rng(3)
    X, X_new = rng.uniform(-3, 3, (500, 1)), rng.uniform(-3, 3, (2000, 1))

    def targets(rows):
        return np.sin(3 * rows[:, 0]) + 0.3 * rng.standard_normal(len(rows))

    feature_map = Fastfood(n_components=200, length_scale=0.7, random_state=0)
    model = KernelRegressor(feature_map, alpha=np.geomspace(1e-3, 10, 9)).fit(X, targets(X))
    mean, std = model.predict(X_new, return_std=True, include_noise=True)
    inside = np.abs(targets(X_new) - mean) < 1.96 * std
    assert inside.mean() == pytest.approx(0.95, abs=0.02)


def test_many_features_come_to_the_true_kernel():
    # |ΔK| ≤ ε for all N = 80·79/2 pairs of rows, with ε = √(2 log(2N/δ) / (D/2)) by Hoeffding's
    # bound for D/2 independent frequencies with terms in [-1, 1] and δ = 1e-6, the probability of a
    # false alarm. The mean kᵀ(K + α)⁻¹y then moves by at most √n ε |y|/α (1 + n/α). (For variances
    # such a bound says nothing at sizes that can be run; they are compared at equal kernels above.)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 2))
    X_new = rng.uniform(-1, 1, (40, 2))
    y = np.sin(2 * X[:, 0])
    alpha, D = 50.0, 100_000
    peer = GaussianProcessRegressor(RBF(1.0), alpha=alpha, optimizer=None).fit(X, y)
    expected = peer.predict(X_new)
    feature_map = RandomFourier(n_components=D, length_scale=1.0, random_state=0)
    model = KernelRegressor(feature_map, noise=alpha, fit_intercept=False, tol=1e-10).fit(X, y)
    assert not hasattr(model, "statistics_")  # too many features for the exact solver
    epsilon = np.sqrt(2 * np.log(2 * 3160 / 1e-6) / (D / 2))
    bound = np.sqrt(40) * epsilon * np.linalg.norm(y) / alpha * (1 + 40 / alpha)
    assert np.abs(model.predict(X_new) - expected).max() < bound
    assert bound < 0.25 * np.abs(expected).max()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float32_rows(dtype):
    # Features of float32 rows differ by up to 1e-5 from those of float64 ones (phases below 100
    # radians). The fit follows with √n by the root of the penalty, here 8 / 0.3.
    X, Y, _, X_new = problem()
    X, X_new = X.astype(np.float32), X_new.astype(np.float32)
    exact = KernelRegressor(MAPS[0], alpha=0.1).fit(X.astype(np.float64), Y)
    model = KernelRegressor(MAPS[0], alpha=0.1).fit(X.astype(dtype), Y)
    got = model.predict(X_new.astype(dtype))
    assert got.dtype == np.float64
    expected = exact.predict(X_new.astype(np.float64))
    tolerance = 1e-5 * 8 / 0.3 * np.abs(Y).max() if dtype == np.float32 else 0
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("X", [np.ones((30, 3)), np.zeros((30, 3))])
def test_constant_rows(X):
    y = np.arange(30.0)
    feature_map = Fastfood(n_components=16, random_state=0)
    model = KernelRegressor(feature_map).fit(X, y)
    np.testing.assert_allclose(model.predict(X), 14.5, rtol=1e-12)
    mean, std = KernelRegressor(feature_map, alpha=1e-12).fit(X, y).predict(X, return_std=True)
    np.testing.assert_allclose(mean, 14.5, rtol=1e-9)
    np.testing.assert_allclose(std, np.sqrt(y.var() * 30 / 29 / 30), rtol=1e-9)
    with pytest.raises(ValueError, match="alpha must be positive, got 0"):
        KernelRegressor(feature_map, alpha=0).fit(X, y)


def test_duplicated_rows_are_weights():
    X, Y, _, X_new = problem()
    feature_map = Fastfood(n_components=64, length_scale=1.5, random_state=1)
    twice = KernelRegressor(feature_map, noise=0.1).fit(np.tile(X, (2, 1)), np.tile(Y, (2, 1)))
    weighted = KernelRegressor(feature_map, noise=0.1).fit(X, Y, np.full(60, 2.0))
    for a, b in zip(
        twice.predict(X_new, return_std=True), weighted.predict(X_new, return_std=True), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10)


@pytest.mark.parametrize("alpha", [1e-300, 1e-12])
def test_tiny_penalties_interpolate(alpha):
    X, Y, _, X_new = problem(20)
    model = KernelRegressor(MAPS[0], alpha=alpha).fit(X, Y)
    # 20 rows in 64 features: M has rank 19, with eigenvalues down to some 1e-3.
    np.testing.assert_allclose(model.predict(X), Y, rtol=0, atol=1e-8)
    mean, std = model.predict(X_new, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()


def test_a_huge_offset_costs_its_own_digits_only():
    X, Y, _, X_new = problem()
    plain = KernelRegressor(MAPS[0], alpha=0.1).fit(X, Y)
    offset = KernelRegressor(MAPS[0], alpha=0.1).fit(X, Y + 1e9)
    # An ulp of 1e9 is 1.2e-7, in each target; averaging over rows amplifies by at most √60 / 0.6.
    np.testing.assert_allclose(
        offset.predict(X_new) - 1e9, plain.predict(X_new), rtol=0, atol=1.2e-7 * 13
    )
    np.testing.assert_allclose(offset.noise_, plain.noise_, rtol=1e-5)


def test_a_single_row():
    X, Y, _, X_new = problem()
    model = KernelRegressor(MAPS[0]).fit(X[:1], Y[:1, 0])
    np.testing.assert_allclose(model.predict(X_new), Y[0, 0], rtol=1e-12)
    assert np.isnan(model.noise_)
    with pytest.raises(ValueError, match="two rows"):
        model.predict(X_new, return_std=True)
    model = KernelRegressor(MAPS[0], noise=0.1).fit(X[:1], Y[:1, 0])
    std = model.predict(X[:1], return_std=True)[1]
    assert std == pytest.approx([np.sqrt(0.1)])


def test_products_are_summed_in_float32_where_that_is_harmless(monkeypatch):
    """Where they are, predictions change by less than 1e-6 of the targets in the mean square."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 4)).astype(np.float32)
    y = np.sin(X.sum(axis=1)) + 0.1 * rng.standard_normal(6000)
    X_new = rng.standard_normal((500, 4)).astype(np.float32)
    chosen = []

    class Statistics(exact.RidgeStatistics):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            chosen.append(self.single_precision)

    monkeypatch.setattr(exact, "RidgeStatistics", Statistics)

    def predict(alpha, rows=X, weights=None):
        feature_map = Fastfood(n_components=256, length_scale=2.0, random_state=0)
        model = KernelRegressor(feature_map, alpha=alpha, solver="exact").fit(rows, y, weights)
        return model.predict(X_new)

    expected = {alpha: predict(alpha) for alpha in (1.0, 10.0)}
    assert chosen == [False, False]  # too few products
    monkeypatch.setattr(exact, "_LEAST_PRODUCTS", 1)
    for alpha, right in expected.items():
        assert np.sqrt(np.mean((predict(alpha) - right) ** 2)) < 1e-6 * y.std()
    assert chosen[2:] == [True, True]
    predict(1e-3)
    predict([1e-3, 10.0])
    predict(1.0, X.astype(np.float64))
    predict(1.0, X, np.ones(6000))
    # Lengths that differ: those of the first rows say nothing about the others.
    KernelRegressor(FunctionTransformer(), alpha=10.0, solver="exact").fit(X, y)
    projection = Fastfood(n_components=64, features="projection", random_state=0)
    KernelRegressor(projection, alpha=1e4, solver="exact").fit(X, y)
    assert chosen[4:] == [False] * 6


def test_the_same_predictions_with_and_without_deviations():
    """Long length scales: dual weights are large and nearly cancel, so that rounding shows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)).astype(np.float32)
    y = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * rng.standard_normal(300)
    kernel = Nystroem("laplacian", n_components=300, length_scale=2000.0, random_state=0)
    model = KernelRegressor(kernel, alpha=1e-6).fit(X, y)
    alone, (beside, _) = model.predict(X), model.predict(X, return_std=True)
    exact = model.predict(X.astype(np.float64))
    np.testing.assert_allclose(beside, alone, rtol=0, atol=1e-9)
    np.testing.assert_allclose(alone, exact, rtol=0, atol=1e-7)
