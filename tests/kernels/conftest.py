"""The table of kernels: every property is tested on each of them."""

import numpy as np
import pytest

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


def chi_radii(stream, n, dim):
    return stream.chis(n, dim)


def gaussian_of_distance(r):
    return np.exp(-(np.minimum(r, 1e3) ** 2) / 2)


def uniform_frequencies(stream, n, dim):
    return 2 * stream.uniforms((n, dim)) - 1


def product_of_sincs(differences):
    return np.sinc(differences / np.pi).prod(axis=-1)


KERNELS = [
    Gaussian(),
    Exponential(),
    Matern(0.01),
    Matern(0.3),
    Matern(1.5),
    Matern(2.5),
    Matern(7.0),
    Matern(60.0),
    Matern(np.inf),
    RationalQuadratic(0.2),
    RationalQuadratic(3.0),
    Cauchy(),
    BallConvolution(1),
    BallConvolution(3),
    Laplacian(),
    Radial([0.5, 1.0, 1.0, 4.0]),
    Radial(chi_radii, value=gaussian_of_distance),
    Spectrum(uniform_frequencies, value=product_of_sincs),
]


@pytest.fixture(params=KERNELS, ids=repr)
def kernel(request):
    return request.param


@pytest.fixture(params=[k for k in KERNELS if k.radial], ids=repr)
def radial_kernel(request):
    return request.param


@pytest.fixture(params=[k for k in KERNELS if getattr(k, "gaussian_mixture", False)], ids=repr)
def mixture_kernel(request):
    return request.param
