"""Errors of kernel values and of Gram matrices, and variances: formulas, intervals, bad input."""

import itertools
import math

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.optimize import brentq
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics.pairwise import rbf_kernel

from kernelmill import (
    CountSketch,
    Fastfood,
    GaussianTemplates,
    RandomFourier,
    RandomMaclaurin,
    TaylorSketch,
    TensorSketch,
)
from kernelmill.diagnostics import (
    KernelErrors,
    effective_dimension,
    estimate_variance,
    gram_errors,
    kernel_errors,
    mean_of_seeds,
)
from kernelmill.diagnostics.variance import _collision_probabilities
from kernelmill.errors import ArgumentError
from kernelmill.kernels import Gaussian, Matern, Polynomial
from kernelmill.maps.hashing import lattice_multipliers
from kernelmill.maps.registry import MAPS


def rows(n, dim, seed=0):
    return np.random.default_rng(seed).uniform(size=(n, dim))


@pytest.mark.representative
class TestErrors:
    errors = KernelErrors(
        exact=[[0.5, 0.1, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0]],
        estimated=[[0.4, 0.3, 0.1, 0.0], [1.0, 1.0, 1.0, 0.5]],
    )

    def test_definitions(self):
        """By hand: absolute errors 0.1, 0.2, 0.1, 0 and 0, 0, 0, 0.5."""
        assert self.errors.absolute.value == pytest.approx((0.1 + 0.125) / 2)
        assert self.errors.bias.value == pytest.approx((0.05 + 0.125) / 2)
        assert self.errors.rms.value == pytest.approx((math.sqrt(0.06 / 4) + 0.25) / 2)
        assert self.errors.relative.value == pytest.approx(((0.2 + 2.0) / 2 + 0) / 2)
        assert self.errors.capped_relative.value == pytest.approx((0.2 / 2 + 0) / 2)
        assert self.errors.share_capped.value == pytest.approx((2 / 4 + 3 / 4) / 2)
        assert self.errors.quantile(1.0).value == 0.5

    def test_interval_of_quantiles(self):
        """Errors of a seed share a factor: intervals of independent errors would be too narrow.

        Intervals by few seeds cover the quantile somewhat less often than 95 %; of 300 with a
        probability of 0.9, fewer than 240 would do so with probability 1e-8.
        """
        rng = np.random.default_rng(0)
        quantile = brentq(
            lambda q: np.mean(2 * stats.norm.cdf(q / np.array([0.5, 1.5])) - 1) - 0.9, 0.1, 5.0
        )
        n_covered = n_too_narrow = 0
        for _ in range(300):
            draws = rng.choice([0.5, 1.5], (16, 1)) * rng.normal(size=(16, 100))
            found = KernelErrors(np.zeros_like(draws), draws).quantile(0.9)
            n_covered += found.low <= quantile <= found.high
            mixed = rng.permuted(draws.ravel()).reshape(draws.shape)
            narrow = KernelErrors(np.zeros_like(mixed), mixed).quantile(0.9)
            n_too_narrow += not narrow.low <= quantile <= narrow.high
        assert n_covered >= 240
        assert n_too_narrow > 100

    def test_over_range(self):
        low, high = self.errors.over_range([0.0, 0.5, 1.0])
        assert (low.n_pairs, high.n_pairs) == (4, 4)
        assert low.absolute.value == pytest.approx((0.3 / 3 + 0.5) / 2)
        assert low.relative.value == pytest.approx(2.0)  # of the one pair that is not 0
        assert high.absolute.value == pytest.approx((0.1 + 0) / 2)
        assert sum(each.n_pairs for each in self.errors.over_range(7)) == 8

    def test_sample(self):
        exact, estimated = self.errors.sample(3)
        assert exact.shape == estimated.shape == (3,)

    def test_interval_covers_the_mean(self):
        """Of 1000 intervals of normal numbers, 950 on average; fewer than 910 with 1e-6."""
        draws = np.random.default_rng(0).normal(3.0, 2.0, (1000, 5))
        found = [mean_of_seeds(each) for each in draws]
        n_covered = sum(each.low <= 3.0 <= each.high for each in found)
        assert stats.binom.isf(1 - 1e-6, 1000, 0.95) < n_covered
        assert n_covered < stats.binom.isf(1e-6, 1000, 0.95)

    def test_one_seed_has_no_interval(self):
        assert np.isnan(mean_of_seeds([2.0]).high)
        assert str(mean_of_seeds([2.0])) == "2"
        assert np.isnan(mean_of_seeds([]).value)


class TestKernelErrors:
    @pytest.mark.parametrize("features", ["cos_sin", "complex", "cos_phase"])
    def test_pairs_of_two_matrices(self, features):
        X, Y = rows(70, 5), rows(70, 5, 1)
        feature_map = Fastfood(n_components=64, features=features)
        found = kernel_errors(feature_map, X, Y, n_seeds=2, random_state=3)
        for at, seed in enumerate((3, 4)):
            fitted = feature_map.set_params(random_state=seed).fit(X)
            estimates = np.sum(fitted.transform(X) * fitted.transform(Y).conj(), axis=1).real
            np.testing.assert_allclose(found.estimated[at], estimates, rtol=1e-12, atol=1e-12)
            exact = np.diagonal(fitted.exact_kernel(X, Y))
            np.testing.assert_allclose(found.exact[at], exact, rtol=1e-12)
        assert (found.n_components, found.n_rows) == (64, 70)

    def test_pairs_are_of_different_rows_and_cover_them(self):
        X = np.arange(5.0)[:, np.newaxis]
        found = kernel_errors(RandomFourier(n_components=2, length_scale=1.0), X, n_pairs=2000)
        values = np.unique(np.exp(-(np.arange(1, 5.0) ** 2) / 2))
        np.testing.assert_allclose(np.unique(found.exact.round(12)), values.round(12))
        assert not np.array_equal(found.exact[0], found.exact[1])

    def test_all_pairs(self):
        X = rows(12, 4).astype(np.float32)
        found = kernel_errors(Fastfood(n_components=32), X, n_pairs=None, n_seeds=2)
        assert found.exact.shape == (2, 66)
        some = kernel_errors(Fastfood(n_components=32), X, X[[1, *range(11)]], n_seeds=2)
        np.testing.assert_allclose(found.estimated[:, 0], some.estimated[:, 0], rtol=1e-6)
        np.testing.assert_allclose(found.exact[:, 0], some.exact[:, 0], rtol=1e-6)

    def test_fitted_map_as_it_is(self):
        X = rows(30, 4)
        fitted = Fastfood(n_components=32, random_state=7).fit(X)
        found = kernel_errors(fitted, X[:10], X[10:20], n_seeds=None)
        estimates = np.sum(fitted.transform(X[:10]) * fitted.transform(X[10:20]), axis=1)
        np.testing.assert_allclose(found.estimated[0], estimates)
        assert np.isnan(found.absolute.low)

    def test_sparse_rows_and_other_transformers(self):
        X = rows(40, 6) * (rows(40, 6, 1) > 0.5)
        dense = kernel_errors(TensorSketch(n_components=32), X, n_seeds=2)
        found = kernel_errors(TensorSketch(n_components=32), sparse.csr_array(X), n_seeds=2)
        np.testing.assert_allclose(found.estimated, dense.estimated, atol=1e-12)
        found = kernel_errors(
            RBFSampler(gamma=0.5, n_components=500),
            X,
            kernel=lambda A, B: rbf_kernel(A, B, gamma=0.5),
        )
        assert found.absolute.high < 0.05

    def test_bad_input(self):
        X = rows(5, 2)
        with pytest.raises(ArgumentError, match="Y must have the shape of X"):
            kernel_errors(Fastfood(), X, X[:3])
        with pytest.raises(ArgumentError, match="at least two rows"):
            kernel_errors(Fastfood(), X[:1])
        with pytest.raises(ArgumentError, match="kernel must be given for RBFSampler"):
            kernel_errors(RBFSampler(), X)
        with pytest.raises(ArgumentError, match="n_seeds must be at least 1"):
            kernel_errors(Fastfood(), X, n_seeds=0)
        with pytest.raises(ArgumentError, match="estimated must have the shape"):
            KernelErrors([[1.0]], [[1.0, 2.0]])


class TestGram:
    def test_norms_by_definition(self):
        X = rows(30, 3)
        feature_map = RandomFourier(n_components=40, length_scale=0.5)
        found = gram_errors(feature_map, X, X[:, 0], alpha=0.5, n_seeds=1)
        K = Gaussian()(X, length_scale=0.5)
        Z = feature_map.set_params(random_state=0).fit_transform(X)
        off = Z @ Z.T - K
        assert found.frobenius.value == pytest.approx(np.linalg.norm(off))
        assert found.spectral.value == pytest.approx(np.linalg.norm(off, 2))
        assert found.kernel_spectral == pytest.approx(np.linalg.norm(K, 2))
        regular, estimate = K + 0.5 * np.eye(30), Z @ Z.T + 0.5 * np.eye(30)
        d_eff = np.trace(K @ np.linalg.inv(regular))
        assert found.effective_dimension == pytest.approx(d_eff)
        assert effective_dimension(K, 0.5) == pytest.approx(d_eff)
        ratios = np.linalg.eigvals(np.linalg.solve(regular, estimate)).real
        assert found.distance.value == pytest.approx(np.abs(ratios - 1).max())
        y = X[:, 0] - X[:, 0].mean()
        exact, fit = K @ np.linalg.solve(regular, y), Z @ Z.T @ np.linalg.solve(estimate, y)
        change = np.linalg.norm(fit - exact) / np.linalg.norm(exact)
        assert found.fit_change.value == pytest.approx(change)

    def test_complex_features_and_no_penalty(self):
        found = gram_errors(RandomFourier(n_components=40, features="complex"), rows(20, 3))
        assert found.distance is None
        assert 0 < found.spectral.value <= found.frobenius.value

    def test_bad_input(self):
        X = rows(5, 2)
        with pytest.raises(ArgumentError, match="alpha must be given with targets"):
            gram_errors(Fastfood(), X, X[:, 0])
        with pytest.raises(ArgumentError, match="y must have one number for each of the 5 rows"):
            gram_errors(Fastfood(), X, [1.0], alpha=1.0)
        with pytest.raises(ArgumentError, match="alpha must be large enough"):
            gram_errors(Fastfood(length_scale=100.0), np.ones((9, 2)), alpha=1e-30)
        with pytest.raises(ArgumentError, match="not all equal"):
            gram_errors(Fastfood(), X, np.ones(5), alpha=1.0)
        with pytest.raises(ArgumentError, match="K must be a square matrix"):
            effective_dimension(np.ones((2, 3)), 1.0)


EXACT = [
    RandomFourier(n_components=5, length_scale=1.0),
    RandomFourier(Matern(1.5), n_components=4, length_scale=0.7, features="complex"),
    RandomFourier(n_components=3, length_scale=1.0, features="cos_phase"),
    TensorSketch(2, coef0=0.5, gamma=0.8, n_components=16),
    TensorSketch(3, n_components=24),
    TensorSketch(2, n_components=12, hashing="independent"),
    CountSketch(n_components=4),
    RandomMaclaurin(Polynomial(2, coef0=1.0), n_components=16),
    RandomMaclaurin([0.2, 1.0, 0.5], n_components=7),
    RandomMaclaurin(Polynomial(2, coef0=1.0), n_components=16, h01=True),
    TaylorSketch(n_components=20, length_scale=0.7, normalize=False),
    TaylorSketch(n_components=12, length_scale=[0.7, 1, 2, 1, 1], degree=2, normalize=False),
]
APPROXIMATE = [
    (RandomFourier(n_components=128, length_scale=1.0, sampling="orthogonal"), 0.1, 1.1),
    (Fastfood(n_components=512, length_scale=1.0), 0.1, 1.25),
    (Fastfood(n_components=512, length_scale=1.0, structure="sorf"), 0.05, 1.25),
    (TaylorSketch(n_components=64, length_scale=0.7), 0.2, 2.0),
    (GaussianTemplates(n_components=256, length_scale=1.5), 0.3, 1.4),
]


def name_of(parameter):
    return type(parameter).__name__


def squared_errors(feature_map, X, Y, n_seeds):
    found = kernel_errors(feature_map, X, Y, n_seeds=n_seeds)
    return np.square(found.differences)


@pytest.mark.parametrize("feature_map", EXACT, ids=name_of)
def test_exact_variances(feature_map):
    """Within 4.9 standard errors of a mean square: 1e-6 for each of 6 pairs."""
    X, Y = rows(6, 5), rows(6, 5, 1)
    squares = squared_errors(feature_map, X, Y, 160)
    variance = estimate_variance(feature_map.fit(X), X, Y)
    assert variance.is_exact
    errors = squares.std(axis=0, ddof=1) / math.sqrt(len(squares))
    assert (np.abs(squares.mean(axis=0) - variance.values) < 4.9 * errors).all()
    assert (np.abs(squares.mean(axis=0) - 2 * variance.values) > 4.9 * errors).any()


@pytest.mark.parametrize(("dim", "length", "degree"), [(5, 12, 3), (5, 9, 4), (9, 8, 2)])
def test_collisions_by_enumeration(dim, length, degree):
    """Sums over all kinds of places of convolved laws of differences, for lattice hashing."""
    laws = []
    for multiplier in lattice_multipliers(dim, length, degree):
        law = np.zeros(length)
        if dim <= length:
            for i, j in itertools.permutations(range(dim), 2):
                law[multiplier * (i - j) % length] += 1 / (dim * (dim - 1))
        else:  # two copies of each bucket
            law[:] = 2 / (2 * length - 1)
            law[0] = 1 / (2 * length - 1)
        laws.append(law)

    def law_of_sum(kinds, kind):
        total = np.eye(length)[0]
        for law, each in zip(laws, kinds, strict=True):
            if each == kind:
                total = np.array([np.roll(total[::-1], u + 1) @ law for u in range(length)])
        return total

    expected = {}
    for kinds in itertools.product("=bg", repeat=degree):
        key = (kinds.count("b"), kinds.count("g"))
        first, second = law_of_sum(kinds, "b"), law_of_sum(kinds, "g")
        both = sum(
            first[u] * second[v]
            for u in range(length)
            for v in range(length)
            if (u + v) % length == 0 and (u - v) % length == 0
        )
        expected[key] = expected.get(key, 0.0) + both
    del expected[0, 0]
    found = _collision_probabilities(dim, length, degree)
    assert found == pytest.approx(expected, abs=1e-12)


def test_variance_of_systematic_sampling():
    """RandomMaclaurin, by enumeration of all sign vectors and of the drawn numbers of columns."""
    X, Y = rows(3, 4), rows(3, 4, 1)
    signs = np.array(list(itertools.product([-1, 1], repeat=4)))
    products = (signs @ X.T) * (signs @ Y.T)
    coefficients = np.array([0.2, 1.0, 0.0, 0.5])
    means, squares, n_seeds = [], [], 400
    for seed in range(n_seeds):
        fitted = RandomMaclaurin(coefficients, n_components=7, random_state=seed).fit(X)
        degrees = fitted.degrees_
        weights = fitted.sketch_.weights**2 / fitted.radius_ ** (2 * degrees)
        powers = [np.mean([products, products**2], axis=1) ** n for n in range(4)]
        mean = sum(w * powers[n][0] for w, n in zip(weights, degrees, strict=True))
        variance = sum(
            w**2 * (powers[n][1] - powers[n][0] ** 2) for w, n in zip(weights, degrees, strict=True)
        )
        means.append(mean)
        squares.append(variance)
    expected = np.mean(squares, axis=0) + np.var(means, axis=0)
    found = estimate_variance(fitted, X, Y).values
    # Numbers of columns are a few kinds; 400 seeds have their shares within 12 % (1e-6).
    np.testing.assert_allclose(found, expected, rtol=0.05)
    exact = fitted.exact_kernel(X, Y).diagonal()
    errors = np.std(means, axis=0) / math.sqrt(n_seeds)
    assert (np.abs(np.mean(means, axis=0) - exact) < 4.9 * errors + 1e-9).all()


@pytest.mark.parametrize(("feature_map", "low", "high"), APPROXIMATE, ids=name_of)
def test_similar_variances(feature_map, low, high):
    """Mean squared error over 20 pairs and 100 seeds, as a ratio to the theoretical variance."""
    X, Y = rows(20, 5), rows(20, 5, 1)
    squares = squared_errors(feature_map, X, Y, 100)
    variance = estimate_variance(feature_map.fit(X), X, Y)
    assert not variance.is_exact
    assert low < squares.mean() / variance.values.mean() < high


def test_variance_of_other_numbers_of_features():
    X, Y = rows(4, 5), rows(4, 5, 1)
    for feature_map in (TensorSketch(2), RandomFourier(), RandomMaclaurin(), TaylorSketch()):
        few = feature_map.set_params(n_components=18).fit(X)
        expected = estimate_variance(few, X, Y)
        many = feature_map.set_params(n_components=30).fit(X)
        found = estimate_variance(many, X, Y, 18)
        np.testing.assert_allclose(found.values, expected.values)
    exact = TensorSketch(2, n_components=25).fit(X)
    assert not estimate_variance(exact, X, Y).values.any()


def test_unknown_variances():
    X = rows(4, 5)
    for feature_map in (RandomFourier(sampling="qmc"), Fastfood(structure="fft")):
        assert estimate_variance(feature_map.fit(X), X, X) is None


@pytest.mark.parametrize("feature_map", MAPS.values(), ids=MAPS)
def test_variance_of_an_unfitted_map(feature_map):
    X = rows(4, 5)
    name = feature_map.__name__
    with pytest.raises(NotFittedError, match=f"This {name} instance is not fitted yet. Call 'fit'"):
        estimate_variance(feature_map(), X, X)


def test_variance_of_sparse_rows():
    X, Y = rows(4, 5), rows(4, 5, 1)
    for feature_map in (
        TensorSketch(2, coef0=1),
        RandomFourier(),
        RandomMaclaurin(),
        TaylorSketch(),
    ):
        fitted = feature_map.set_params(n_components=18).fit(X)
        found = estimate_variance(fitted, sparse.csr_array(X), sparse.csr_array(Y))
        np.testing.assert_allclose(found.values, estimate_variance(fitted, X, Y).values)
