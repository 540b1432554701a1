"""The length scale: given directly or as gamma, or computed from the data."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.svm import SVC

from kernelmill import Fastfood, RandomFourier


@pytest.fixture(params=[RandomFourier, Fastfood])
def make(request):
    return request.param


def skewed(n_rows, dim, seed=0):
    return np.random.default_rng(seed).exponential(size=(n_rows, dim)) * np.arange(1, dim + 1)


def test_numbers(make):
    X = skewed(30, 4)
    assert make(length_scale=2.5).fit(X).length_scale_ == 2.5
    assert make(length_scale=3).fit(X).length_scale_ == 3.0
    assert make(length_scale=np.float32(0.5)).fit(X).length_scale_ == 0.5


@pytest.mark.parametrize("gamma", [0.2, 3, 1e-9, 1e9])
def test_gamma_is_a_length_scale(make, gamma, same_bits):
    X = skewed(30, 4)
    by_gamma = make(gamma=gamma, random_state=0).fit(X)
    by_scale = make(length_scale=np.sqrt(0.5 / gamma), random_state=0).fit(X)
    assert by_gamma.length_scale_ == pytest.approx(1 / np.sqrt(2 * gamma), rel=1e-15)
    same_bits(by_gamma.transform(X), by_scale.transform(X))
    np.testing.assert_allclose(by_gamma.exact_kernel(X), rbf_kernel(X, gamma=gamma), atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"length_scale": "scale"}, {"gamma": "scale"}])
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_matrix])
def test_scale_is_that_of_svc(make, options, form):
    X = skewed(40, 6)
    X[X < 2] = 0
    fitted = make(**options).fit(form(X))
    y = np.arange(40) % 2
    gamma = SVC(gamma="scale").fit(X, y)._gamma
    assert gamma == pytest.approx(1 / (6 * X.var()))
    assert fitted.length_scale_ == pytest.approx(1 / np.sqrt(2 * gamma), rel=1e-12)


def test_scale_of_many_rows_far_from_zero(make):
    X = skewed(400_000, 3).astype(np.float32) + 1000
    expected = np.sqrt(3 * X.var(dtype=np.float64) / 2)
    assert make(n_components=2).fit(X).length_scale_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n_rows", [2, 3, 10, 501, 1000])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_median_by_brute_force(make, n_rows, form):
    X = skewed(n_rows, 5)
    first, second = np.triu_indices(n_rows, 1)
    expected = np.median(np.sqrt(((X[first] - X[second]) ** 2).sum(axis=1)))
    fitted = make(length_scale="median").fit(form(X))
    assert fitted.length_scale_ == pytest.approx(expected, rel=1e-10)


def test_median_of_the_laplacian_is_of_its_own_distance():
    X = skewed(100, 5)
    first, second = np.triu_indices(100, 1)
    expected = np.median(np.abs(X[first] - X[second]).sum(axis=1))
    fitted = RandomFourier("laplacian", length_scale="median").fit(X)
    assert fitted.length_scale_ == pytest.approx(expected, rel=1e-10)


def test_median_of_many_rows_is_that_of_a_fixed_sample(make):
    X = skewed(5000, 5)
    fits = [
        make(length_scale="median", random_state=seed).fit(form(X)).length_scale_
        for seed in (0, 1)
        for form in (np.asarray, sp.csr_array)
    ]
    np.testing.assert_allclose(fits, fits[0], rtol=1e-12)
    assert fits[0] == fits[2]
    # By Hoeffding's inequality (for 900 rows, as good as 450 independent pairs) the probabilities
    # that the median or the quantiles below are 0.1 off in rank are 2.5e-4 and 1e-6.
    chosen = np.random.default_rng(0).permutation(5000)[:1500]
    distances = np.sqrt(((X[chosen[:750]] - X[chosen[750:]]) ** 2).sum(axis=1))
    assert np.quantile(distances, 0.3) < fits[0] < np.quantile(distances, 0.7)


def test_both_are_an_error(make):
    with pytest.raises(ValueError, match=r"only one of length_scale and gamma .*=1\.0 and gamma=2"):
        make(length_scale=1.0, gamma=2).fit(np.ones((3, 2)))


def test_laplacian_with_gamma():
    X = np.random.default_rng(0).uniform(size=(60, 5))
    fitted = RandomFourier("laplacian", gamma=0.7, n_components=4000, random_state=0).fit(X)
    Z = fitted.transform(X)
    exact = laplacian_kernel(X, gamma=0.7)
    np.testing.assert_allclose(fitted.exact_kernel(X), exact, rtol=1e-12)
    assert np.abs(Z @ Z.T - exact).mean() < 0.05


DEGENERATE = {
    "constant": np.full((10, 3), 4.0),
    "zero": np.zeros((10, 3)),
    "one row": np.array([[1.0, 2.0, 3.0]]),
    "one row and column": np.array([[5.0]]),
    "twins": np.repeat([[1.0, 2.0, 3.0]], 10, axis=0),
    "mostly twins": np.vstack([np.ones((99, 3)), np.zeros((1, 3))]),
    "many twins": np.ones((3000, 2)),
    "tiny": np.array([[0.0, 1e-300], [1e-300, 0.0]]),
}


@pytest.mark.parametrize("X", DEGENERATE.values(), ids=DEGENERATE.keys())
@pytest.mark.parametrize("length_scale", ["scale", "median"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_degenerate_data(make, X, length_scale, form):
    fitted = make(length_scale=length_scale, n_components=20, random_state=0).fit(form(X))
    assert 0 < fitted.length_scale_ < np.inf
    Z = fitted.transform(form(X))
    np.testing.assert_allclose((Z * Z).sum(axis=1), 1, rtol=1e-13)


def test_constant_data_has_gamma_one(make):
    assert make().fit(np.full((10, 3), 4.0)).length_scale_ == pytest.approx(np.sqrt(0.5))


def test_mostly_equal_rows_take_the_median_of_the_others(make):
    X = DEGENERATE["mostly twins"]
    assert make(length_scale="median").fit(X).length_scale_ == pytest.approx(np.sqrt(3))


@pytest.mark.parametrize("length_scale", ["scale", "median"])
def test_data_too_large_for_a_scale(make, length_scale):
    with pytest.raises(ValueError, match=r"scale the data, or set .*length_scale"):
        make(length_scale=length_scale).fit(np.array([[1e300, -1e300], [-1e300, 1e300]]))
