"""Exact values: properties of all kernels, scikit-learn as a reference, mpmath in hard cases."""

import mpmath
import numpy as np
import pytest
import scipy.sparse
from sklearn.gaussian_process import kernels as peers
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from kernelmill.kernels import (
    BallConvolution,
    Cauchy,
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    Radial,
    RationalQuadratic,
    Spectrum,
)
from kernelmill.kernels.bessel import normalized_bessel_j


def points(n, dim, seed=0):
    return np.random.default_rng(seed).normal(size=(n, dim))


@pytest.mark.parametrize("dim", [1, 2, 5, 40])
def test_matrices_are_symmetric_positive_and_one_on_the_diagonal(kernel, dim):
    X = points(60, dim)
    X[7] = X[3]
    K = kernel(X, length_scale=0.9)
    assert K.dtype == np.float64
    np.testing.assert_allclose(np.diag(K), 1, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K)[0] >= -1e-10 * len(X)
    np.testing.assert_allclose(K[7], K[3], rtol=0, atol=1e-15)


def test_two_sets_of_points_are_a_part_of_one(kernel):
    X = points(12, 4)
    whole = kernel(X, length_scale=2.5)
    np.testing.assert_allclose(kernel(X[:5], X[5:], length_scale=2.5), whole[:5, 5:], atol=1e-14)
    np.testing.assert_array_equal(kernel(X, X, length_scale=2.5), whole)


def test_length_scales_divide_the_points(kernel):
    X, Y = points(8, 3), points(9, 3, seed=1)
    expected = kernel(X / 4, Y / 4)  # a power of two: no rounding
    np.testing.assert_allclose(kernel(X, Y, length_scale=4.0), expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("make", ["csr_array", "csc_matrix", "coo_array", "lil_matrix"])
def test_sparse_points_are_like_dense_ones(kernel, make):
    X, Y = points(20, 6), points(15, 6, seed=1)
    X[np.abs(X) < 0.8] = 0
    Y[np.abs(Y) < 0.8] = 0
    sparse = getattr(scipy.sparse, make)
    for left, right in ((sparse(X), sparse(Y)), (X, sparse(Y)), (sparse(X), Y)):
        np.testing.assert_allclose(kernel(left, right), kernel(X, Y), rtol=0, atol=1e-12)
        np.testing.assert_allclose(kernel.distances(left, right), kernel.distances(X, Y), atol=1e-7)
    K = kernel(sparse(X))
    off_diagonal = ~np.eye(20, dtype=bool)
    np.testing.assert_allclose(np.diag(K), 1, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(K[off_diagonal], kernel(X)[off_diagonal], rtol=0, atol=1e-7)


def test_sparse_arguments_are_left_alone():
    X = scipy.sparse.csr_array((np.ones(3), np.array([2, 0, 0]), np.array([0, 3])), shape=(1, 3))
    Gaussian()(X)
    assert X.indices.tolist() == [2, 0, 0]
    assert X.data.tolist() == [1, 1, 1]


def test_damaged_sparse_arguments_are_rejected():
    for wrong in (3, -1, 2**31 - 1):
        damaged = scipy.sparse.csr_array(np.ones((50, 3)))
        damaged.indices[7] = wrong
        with pytest.raises(ValueError, match="Y is not a valid CSR matrix"):
            Gaussian()(np.ones((1, 3)), damaged)


def test_blocks_of_rows_make_no_difference(monkeypatch):
    X = points(30, 3)
    expected = Laplacian()(X)
    monkeypatch.setattr("kernelmill.kernels.points._BLOCK", 20)
    np.testing.assert_array_equal(Laplacian()(scipy.sparse.csr_array(X)), expected)
    custom = Spectrum(lambda s, n, d: s.cauchys((n, d)), value=lambda u: np.exp(-np.abs(u).sum(-1)))
    monkeypatch.setattr("kernelmill.kernels.custom._BLOCK_DIFFERENCES", 30)
    np.testing.assert_allclose(custom(X), expected, rtol=1e-14)


def test_values_are_computed_in_float64(kernel):
    for dtype in [np.float32, np.int64, np.uint8, bool, ">f8"]:
        X = np.array([[0, 1, 1], [1, 0, 1], [5, 3, 2]]).astype(dtype)
        np.testing.assert_array_equal(kernel(X), kernel(X.astype(np.float64)))


def test_extreme_points_are_harmless(kernel):
    """Finite and in [-1, 1], whatever the scale, and no warnings."""
    for size in (1e-310, 1e-200, 1e-9, 1e9, 1e100):
        K = kernel(size * np.array([[0.0], [1.0], [2.5]]))
        assert (np.abs(K) <= 1 + 1e-15).all()
        assert K[0, 0] == pytest.approx(1, abs=1e-15)
    for distance in (0.0, 5e-324, 1e300, np.inf):
        if kernel.radial and np.isfinite(distance):
            assert abs(kernel.value(distance, 3)) <= 1


def test_values_against_scikit_learn():
    X, Y = points(30, 5), points(20, 5, seed=1)
    scale = Gaussian().length_scale_from_gamma(0.3)
    compare = np.testing.assert_allclose
    compare(Gaussian()(X, Y, length_scale=scale), rbf_kernel(X, Y, gamma=0.3), rtol=1e-12)
    scale = Laplacian().length_scale_from_gamma(0.3)
    compare(Laplacian()(X, Y, length_scale=scale), laplacian_kernel(X, Y, gamma=0.3), rtol=1e-12)
    for nu in (0.1, 0.5, 0.7, 1.0, 1.5, 2.5, 3.2, 20.0, np.inf):
        peer = peers.Matern(length_scale=1.7, nu=nu)(X, Y)
        compare(Matern(nu)(X, Y, length_scale=1.7), peer, rtol=1e-11)
    peer = peers.Matern(length_scale=1.7, nu=0.5)(X, Y)
    compare(Exponential()(X, Y, length_scale=1.7), peer, rtol=1e-12)
    peer = peers.RationalQuadratic(length_scale=1.7, alpha=0.8)(X, Y)
    compare(RationalQuadratic(0.8)(X, Y, length_scale=1.7), peer, rtol=1e-12)
    peer = peers.RationalQuadratic(length_scale=1.7 / np.sqrt(2), alpha=1.0)(X, Y)
    compare(Cauchy()(X, Y, length_scale=1.7), peer, rtol=1e-12)


NUS = [1e-6, 0.01, 0.3, 0.5, 0.94, 0.96, 1.0, 1.5, 2.0, 2.5, 7.3, 29.9, 30.0, 31.5, 80.0, 200.0]


@pytest.mark.parametrize("nu", NUS)
def test_matern_against_mpmath(nu):
    distances = [1e-300, 1e-100, 1e-20, 1.1e-8, 1e-6, 1e-3, 0.1, 0.5, 1.0, 3.0, 8.0, 30.0]
    with mpmath.workdps(40):
        exact = []
        for r in distances:
            x = mpmath.sqrt(2 * mpmath.mpf(nu)) * mpmath.mpf(r)
            bessel = x ** mpmath.mpf(nu) * mpmath.besselk(nu, x)
            exact.append(float(mpmath.mpf(2) ** (1 - mpmath.mpf(nu)) / mpmath.gamma(nu) * bessel))
    values = Matern(nu).value(distances, 3)
    np.testing.assert_allclose(values, exact, rtol=0, atol=3e-13)
    np.testing.assert_allclose(values, exact, rtol=1e-11, atol=1e-300)
    assert Matern(nu).value(0.0, 3) == 1


@pytest.mark.parametrize("nu", [1e4, 1e8, 1e15, 1e17, 1e300])
def test_matern_of_large_nu_is_nearly_gaussian(nu):
    """By the expansion in 1 / nu: k = exp(-r**2 / 2) (1 + (r**4 / 8 - r**2 / 2) / nu + ...)."""
    r = np.linspace(0, 4, 50)
    first_order = np.exp(-(r**2) / 2) * (1 + (r**4 / 8 - r**2 / 2) / nu)
    np.testing.assert_allclose(
        Matern(nu).value(r, 3), first_order, rtol=0, atol=1e-15 + 3 / nu / nu
    )


@pytest.mark.parametrize("order", [-0.5, 0, 0.5, 1, 1.5, 5, 25, 59.5, 60, 100, 250, 500, 5000])
def test_normalized_bessel_j_against_mpmath(order):
    """On both sides of every change of method; scipy's hyp0f1 is infinite from order 200 on."""
    edge, middle = 2 * np.sqrt(order + 1), 0.6 * order
    x = [0.0, 1e-300, 1e-9, 0.3 * edge, 0.999 * edge, 1.001 * edge, 2 * edge, 3.3 * edge]
    x += [0.99 * middle, 1.01 * middle] if order > 20 else [20.0, 300.0, 1e5]
    with mpmath.workdps(30):
        exact = [float(mpmath.hyp0f1(mpmath.mpf(order) + 1, -(mpmath.mpf(t) ** 2) / 4)) for t in x]
    values = normalized_bessel_j(order, x)
    np.testing.assert_allclose(values, exact, rtol=0, atol=1e-13)
    assert values[0] == 1


def test_ball_convolution_in_three_dimensions():
    r = np.array([0.5, 1.0, 4.0, 20.0])
    ball = 3 * (np.sin(r) - r * np.cos(r)) / r**3
    np.testing.assert_allclose(BallConvolution(2).value(r, 3), ball**2, rtol=1e-11)


def test_an_array_of_radii_has_the_mean_of_its_spheres():
    r = np.linspace(0.1, 30, 40)
    radii = np.array([0.2, 1.0, 3.0])
    mean = np.mean([np.sin(w * r) / (w * r) for w in radii], axis=0)
    np.testing.assert_allclose(Radial(radii).value(r, 3), mean, atol=1e-14)
    np.testing.assert_allclose(
        Radial(radii).value(r, 1), np.cos(np.outer(radii, r)).mean(0), atol=1e-14
    )


def test_a_large_sample_of_chi_radii_is_nearly_the_gaussian_kernel():
    """The sphere's function deviates by less than 1 from its mean: 0.022 is over 4.9 deviations."""
    from kernelmill.random import Stream

    kernel = Radial(Gaussian().radii(Stream.from_seed(0), 50_000, 5))
    r = np.array([0.5, 1.0, 2.0])
    np.testing.assert_allclose(kernel.value(r, 5), Gaussian().value(r, 5), atol=0.022)
