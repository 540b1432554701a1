"""Shift-invariant kernels: their exact values and their spectral measures.

A kernel is an immutable value with k(x, x) = 1. Called with points it gives the exact kernel
matrix; its `frequencies` are what random Fourier features are made of. Length scales belong to the
caller: they divide distances, and so frequencies.

Contents
--------
Gaussian, Matern, Exponential, RationalQuadratic, Cauchy
    Functions of the Euclidean distance whose spectra are scale mixtures of Gaussians.
BallConvolution
    A sum of uniform points in the unit ball as spectrum.
Laplacian
    The exponential of the sum of absolute differences.
Radial, Spectrum
    Your own, given by the lengths of frequencies or by the frequencies themselves.
Kernel, RadialKernel
    What all of them, and the radial ones, have in common.
resolve
    The kernel of a name such as "rbf".
"""

from kernelmill.kernels.ball_convolution import BallConvolution
from kernelmill.kernels.base import Kernel, RadialKernel
from kernelmill.kernels.custom_radial import Radial
from kernelmill.kernels.custom_spectrum import Spectrum
from kernelmill.kernels.gaussian import Gaussian
from kernelmill.kernels.laplacian import Laplacian
from kernelmill.kernels.matern import Exponential, Matern
from kernelmill.kernels.names import resolve
from kernelmill.kernels.rational_quadratic import Cauchy, RationalQuadratic

__all__ = [
    "BallConvolution",
    "Cauchy",
    "Exponential",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Matern",
    "Radial",
    "RadialKernel",
    "RationalQuadratic",
    "Spectrum",
    "resolve",
]
