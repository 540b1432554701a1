"""Kernels: exact values, spectral measures and series.

A kernel is an immutable value. Called with points, it returns the exact kernel matrix.

Shift-invariant kernels have k(x, x) = 1. Random Fourier features are built from their
`frequencies`, draws from the spectral measure. Kernels have length scale 1; the caller divides
distances, or frequencies, by the length scale.

Contents
--------
Gaussian, Matern, Exponential, RationalQuadratic, Cauchy
    Functions of the Euclidean distance whose spectra are scale mixtures of Gaussians.
BallConvolution
    The spectrum is the distribution of a sum of uniform points in the unit ball.
Laplacian
    The exponential of the sum of absolute differences.
Radial, Spectrum
    Custom kernels, given by the lengths of frequencies or by the frequencies themselves.
Kernel, RadialKernel
    Their base classes.
resolve
    Return the kernel with a name such as "rbf" or "matern:nu=2.5".

Kernels of inner products and angles are sums of products of powers, given by their coefficients.

Polynomial, ExponentialDotProduct, Maclaurin
    Functions of the inner product: power series without negative coefficients.
SpherePower
    Mean powers of projections to random directions.
Zonal, ArcCosine
    Functions of the angle, times a power of the norms.
RotationInvariantKernel, DotProductKernel
    Their base classes.
SphericalExpansion, spherical_expansion
    Any of these as a sum of Legendre polynomials in d dimensions.
resolve_dot_product
    Return the kernel with a name such as "polynomial", or with given Maclaurin coefficients.

Conversion between the two kinds, by the norms of points:

convert, squared_norms
    Values of the polynomial or exponential kernel from those of the Gaussian, and back.
"""

from kernelmill.kernels.angles import ArcCosine, SpherePower, Zonal
from kernelmill.kernels.base import Kernel, RadialKernel, RotationInvariantKernel
from kernelmill.kernels.conversion import convert, squared_norms
from kernelmill.kernels.custom import Radial, Spectrum
from kernelmill.kernels.dot_product import (
    DotProductKernel,
    ExponentialDotProduct,
    Maclaurin,
    Polynomial,
)
from kernelmill.kernels.gegenbauer import SphericalExpansion, spherical_expansion
from kernelmill.kernels.names import resolve, resolve_dot_product
from kernelmill.kernels.shift_invariant import (
    BallConvolution,
    Cauchy,
    Exponential,
    Gaussian,
    Laplacian,
    Matern,
    RationalQuadratic,
)

__all__ = [
    "ArcCosine",
    "BallConvolution",
    "Cauchy",
    "DotProductKernel",
    "Exponential",
    "ExponentialDotProduct",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Maclaurin",
    "Matern",
    "Polynomial",
    "Radial",
    "RadialKernel",
    "RationalQuadratic",
    "RotationInvariantKernel",
    "Spectrum",
    "SpherePower",
    "SphericalExpansion",
    "Zonal",
    "convert",
    "resolve",
    "resolve_dot_product",
    "spherical_expansion",
    "squared_norms",
]
