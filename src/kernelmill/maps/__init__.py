"""Feature maps: scikit-learn transformers whose inner products estimate kernels.

Contents
--------
RandomFourier
    Shift-invariant kernels with a dense matrix of frequencies.
Fastfood
    Radial kernels in loglinear time, without a matrix.
GaussianTemplates
    The Gaussian kernel by positive, local features.
DotProductFastfood
    Dot-product kernels and kernels of angles by spherical harmonics, with Fastfood's directions.
"""

from kernelmill.maps.dot_product_fastfood import DotProductFastfood
from kernelmill.maps.fastfood import Fastfood
from kernelmill.maps.gaussian_templates import GaussianTemplates
from kernelmill.maps.random_fourier import RandomFourier

__all__ = ["DotProductFastfood", "Fastfood", "GaussianTemplates", "RandomFourier"]
