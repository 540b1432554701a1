"""Kernels as objects: equality, copies, named length scales and errors."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist

from kernelmill import kernels
from kernelmill.errors import ArgumentError
from kernelmill.kernels import (
    BallConvolution,
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    Radial,
    RationalQuadratic,
    Spectrum,
    resolve,
)
from kernelmill.random import Stream

pytestmark = pytest.mark.representative

STREAM = Stream.from_seed(0)


def test_kernels_are_values(kernel):
    assert kernel == copy.deepcopy(kernel)
    assert hash(kernel) == hash(copy.deepcopy(kernel))
    assert kernel != Matern(0.123)
    assert kernel != "gaussian"
    assert type(kernel).__name__ in repr(kernel)
    assert resolve(kernel) is kernel
    field = next(iter(vars(kernel)), "anything")
    with pytest.raises(AttributeError):
        setattr(kernel, field, 1)


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(), Matern(2.5), BallConvolution(3), Radial([1.0, 2.0]), Spectrum([[1.0, 2.0]])],
    ids=repr,
)
def test_kernels_can_be_pickled(kernel):
    again = pickle.loads(pickle.dumps(kernel))
    assert again == kernel
    np.testing.assert_array_equal(again.frequencies(STREAM, 1, 2), kernel.frequencies(STREAM, 1, 2))


def test_parameters_make_the_difference():
    assert Matern(1) == Matern(1.0) != Matern(2)
    assert BallConvolution(np.int64(2)) == BallConvolution(2) != BallConvolution(3)
    assert Radial([1.0, 2.0]) == Radial(np.array([1, 2])) != Radial([1.0, 3.0])
    assert Radial([1.0], value=np.cos) != Radial([1.0])
    assert Spectrum([[1.0, 2.0]]) == Spectrum([[1, 2]]) != Spectrum([[1.0], [2.0]])
    assert repr(RationalQuadratic(2)) == "RationalQuadratic(alpha=2.0)"
    assert repr(Radial([1.0, 2.0])) == "Radial(<2 radii>, value=None)"
    assert repr(Spectrum([[1.0, 2.0]])) == "Spectrum(<1 frequencies in 2 dimensions>, value=None)"


def test_arrays_given_are_copied():
    radii, frequencies = np.ones(3), np.ones((3, 2))
    custom, spectrum = Radial(radii), Spectrum(frequencies)
    radii[:] = 7
    frequencies[:] = 7
    assert custom == Radial(np.ones(3))
    assert spectrum == Spectrum(np.ones((3, 2)))
    spectrum.frequencies(STREAM, 3, 2)[:] = 7
    assert spectrum == Spectrum(np.ones((3, 2)))


def test_radial_says_whether_it_is(kernel):
    assert kernel.radial == isinstance(kernel, kernels.RadialKernel)
    assert kernel.radial == (not isinstance(kernel, (Laplacian, Spectrum)))


def test_length_scales(kernel):
    laplacian = isinstance(kernel, Laplacian)
    expected = 1 / 0.4 if laplacian else 1 / np.sqrt(0.8)
    assert kernel.length_scale_from_gamma(0.4) == pytest.approx(expected, rel=1e-15)
    expected = 7 * np.sqrt(1.5) if laplacian else np.sqrt(7 * 1.5)
    assert kernel.length_scale_of_spread(7, 3.0) == pytest.approx(expected, rel=1e-15)
    one = kernel.length_scale_from_gamma(1.0)
    assert kernel.length_scale_of_spread(7, 0.0) == one
    scale = kernel.length_scale_from_gamma(1 / (7 * 3.0))
    assert laplacian or kernel.length_scale_of_spread(7, 3.0) == pytest.approx(scale, rel=1e-15)


def test_distances(kernel):
    X, Y = np.arange(6.0).reshape(3, 2), np.ones((2, 2))
    metric = "cityblock" if isinstance(kernel, Laplacian) else "euclidean"
    np.testing.assert_allclose(kernel.distances(X, Y), cdist(X, Y, metric), rtol=1e-15)
    np.testing.assert_allclose(kernel.distances(X), cdist(X, X, metric), rtol=1e-15)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gaussian", Gaussian()),
        ("rbf", Gaussian()),
        ("exponential", Exponential()),
        ("laplacian", Laplacian()),
        ("matern", Matern(1.5)),
        ("rational_quadratic", RationalQuadratic(1.0)),
        ("cauchy", kernels.Cauchy()),
        ("ball_convolution", BallConvolution(1)),
    ],
)
def test_names(name, expected):
    assert resolve(name) == expected


def test_unknown_names():
    with pytest.raises(ValueError, match=r"one of 'ball_convolution'.*'rbf'.* got 'linear'"):
        resolve("linear")
    with pytest.raises(TypeError, match=r"'rbf'.*got 3 \(int\)"):
        resolve(3)
    with pytest.raises(TypeError, match=r"write Gaussian\(\)"):
        resolve(Gaussian)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("matern:nu=2.5", Matern(2.5)),
        ("matern: nu = 3 ", Matern(3.0)),
        ("matern:nu=inf", Matern(np.inf)),
        ("rational_quadratic:alpha=1e-1", RationalQuadratic(0.1)),
        ("ball_convolution:t=40", BallConvolution(40)),
    ],
)
def test_names_with_parameters(name, expected):
    assert resolve(name) == expected


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("matern:mu=2", "kernel must be matern:nu=NUMBER, got 'matern:mu=2'"),
        ("matern:nu", "kernel must be matern:nu=NUMBER, got 'matern:nu'"),
        ("matern:", "kernel must be matern:nu=NUMBER, got 'matern:'"),
        ("matern:2.5", "kernel must be matern:nu=NUMBER, got 'matern:2.5'"),
        ("matern:nu=1,nu=2", "kernel must be matern:nu=NUMBER, got 'matern:nu=1,nu=2'"),
        ("matern:nu=rough", "kernel 'matern:nu=rough' must have a number as nu, got 'rough'"),
        ("matern:nu=", "kernel 'matern:nu=' must have a number as nu, got ''"),
        ("matern:nu=-1", "is invalid: nu must be a positive, finite number, got -1"),
        ("matern:nu=nan", "is invalid: nu must be a positive, finite number, got nan"),
        ("ball_convolution:t=2.5", "is invalid: t must be an integer, got 2.5"),
        ("gaussian:nu=1", "'gaussian' has no parameters, .*leave them out .kernel='gaussian'"),
        ("mattern:nu=2", "similar name .kernel='matern:nu=2'"),
    ],
)
def test_parameters_that_are_wrong(name, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        resolve(name)
    assert caught.value.message.parameter == "kernel"


def test_points_that_are_none(kernel):
    for X, Y, error, message in [
        (np.zeros(3), None, ValueError, r"X must have two dimensions.*\(3,\).*reshape"),
        (np.zeros((2, 3, 4)), None, ValueError, "X must have two dimensions"),
        (np.zeros((2, 0)), None, ValueError, "at least one column"),
        ([[np.nan]], None, ValueError, "X must hold finite numbers, got NaN"),
        ([[0.0]], [[np.inf]], ValueError, "Y must hold finite numbers, got infinity"),
        (np.zeros((2, 3)), np.zeros((2, 4)), ValueError, "same number of columns, got 3 and 4"),
        ([[1j]], None, TypeError, "X must be real"),
        ([["a"]], None, TypeError, "X must hold real numbers"),
        (scipy.sparse.csr_array([[np.nan]]), None, ValueError, "X must hold finite numbers"),
        (scipy.sparse.csr_array([[1j]]), None, TypeError, "X must be real"),
        (scipy.sparse.coo_array(np.ones(3)), None, ValueError, "X must have two dimensions"),
    ]:
        with pytest.raises(error, match=message):
            kernel(X, Y)
        with pytest.raises(error, match=message):
            kernel.distances(X, Y)


def test_length_scales_that_are_none(kernel):
    for scale in [0, -1.0, np.inf, np.nan]:
        with pytest.raises(ValueError, match="length_scale must be a positive, finite number"):
            kernel([[0.0]], length_scale=scale)
        with pytest.raises(ValueError, match="gamma must be a positive, finite number"):
            kernel.length_scale_from_gamma(scale)
        if scale != 0:
            with pytest.raises(ValueError, match="variance must be a positive, finite number"):
                kernel.length_scale_of_spread(3, scale)
        with pytest.raises(TypeError, match="length_scale must be"):
            kernel([[0.0]], length_scale="median")


def test_counts_that_are_none(kernel):
    with pytest.raises(ValueError, match="n must be at least 0, got -1"):
        kernel.frequencies(STREAM, -1, 2)
    with pytest.raises(ValueError, match="dim must be at least 1, got 0"):
        kernel.frequencies(STREAM, 3, 0)
    with pytest.raises(ValueError, match="start must be"):
        kernel.frequencies(STREAM, 3, 2, start=-1)
    with pytest.raises(TypeError, match="n must be an integer"):
        kernel.frequencies(STREAM, 2.5, 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Matern(0), "nu must be a positive"),
        (lambda: Matern(np.nan), "nu must be a positive"),
        (lambda: Matern(-np.inf), "nu must be a positive"),
        (lambda: Matern("1.5"), "nu must be a positive"),
        (lambda: RationalQuadratic(-1), "alpha must be a positive"),
        (lambda: BallConvolution(0), "t must be at least 1"),
        (lambda: BallConvolution(1.5), "t must be an integer"),
        (lambda: Radial([]), "at least one length"),
        (lambda: Radial([[1.0]]), "one-dimensional"),
        (lambda: Radial([1.0, -2.0]), "finite and not negative, got -2.0"),
        (lambda: Radial([np.nan]), "finite and not negative, got nan"),
        (lambda: Radial("gaussian"), "radii must hold real numbers"),
        (lambda: Radial([1.0], value=2.0), "value must be a function"),
        (lambda: Spectrum([1.0]), r"shape \(m, dim\)"),
        (lambda: Spectrum([[np.inf]]), "frequencies must be finite, got inf"),
        (lambda: Spectrum([[1.0]], value=2.0), "value must be a function"),
    ],
)
def test_parameters_that_are_none(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_own_radii_are_checked():
    with pytest.raises(ValueError, match=r"value must be given.*Radial\(radii, value"):
        Radial(lambda stream, n, dim: stream.chis(n, dim))([[0.0]])
    for wrong, message in (
        (lambda stream, n, dim: stream.normals((n, dim)), r"shape \(n,\), \(5,\), got shape"),
        (lambda stream, n, dim: -stream.chis(n, dim), "not negative"),
        (lambda stream, n, dim: np.full(n, np.nan), "finite and not negative, got nan"),
    ):
        with pytest.raises(ValueError, match=message):
            Radial(wrong).radii(STREAM, 3, 2, start=2)
    with pytest.raises(ValueError, match="one number for each distance"):
        Radial([1.0], value=lambda r: 1.0)([[0.0]])


def test_own_frequencies_are_checked():
    with pytest.raises(ValueError, match=r"value must be given.*Spectrum\(frequencies, value"):
        Spectrum(lambda stream, n, dim: stream.normals((n, dim)))([[0.0]])
    with pytest.raises(ValueError, match=r"shape \(n, dim\), \(3, 2\), got shape \(3,\)"):
        Spectrum(lambda stream, n, dim: stream.normals(n)).frequencies(STREAM, 3, 2)
    with pytest.raises(ValueError, match="frequencies must be finite"):
        Spectrum(lambda stream, n, dim: np.full((n, dim), np.inf)).frequencies(STREAM, 3, 2)
    with pytest.raises(ValueError, match="one number for each difference"):
        Spectrum([[1.0]], value=np.cos)([[0.0]])
    rows = Spectrum(np.ones((4, 3)))
    with pytest.raises(ValueError, match="has 4 frequencies, but 5 are needed"):
        rows.frequencies(STREAM, 5, 3)
    with pytest.raises(ValueError, match="has 4 frequencies, but 5 are needed"):
        rows.frequencies(STREAM, 2, 3, start=3)
    for use in (lambda: rows.frequencies(STREAM, 1, 2), lambda: rows(np.ones((2, 2)))):
        with pytest.raises(ValueError, match=r"must have 3 columns.*got 2"):
            use()


def test_the_package_is_light_and_sorted():
    assert list(kernels.__all__) == sorted(kernels.__all__)
    code = "import sys, kernelmill.kernels; print('\\n'.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    assert "sklearn" not in loaded
    assert not {"scipy.sparse", "scipy.spatial"} & set(loaded)
