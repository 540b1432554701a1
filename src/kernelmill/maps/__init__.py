"""Feature maps: scikit-learn transformers whose inner products estimate kernels.

Contents
--------
RandomFourier
    Shift-invariant kernels with a dense matrix of frequencies.
Fastfood
    Radial kernels in loglinear time, without a matrix.
Nystroem
    Shift-invariant kernels by their values at some rows, exact at these.
TaylorSketch
    The Gaussian kernel by its Taylor series, for large length scales.
GaussianTemplates
    The Gaussian kernel by positive, local features.
TensorSketch
    Polynomial kernels in loglinear time.
RandomMaclaurin
    Any kernel of the inner product with a Maclaurin series.
CountSketch
    The linear kernel, in time proportional to the nonzero entries.
DotProductFastfood
    Kernels of the inner product or of the angle by spherical harmonics, with Fastfood's directions.
PermutationEncoder
    Not a map itself: vectors of permutations, for kernels of the inner product.
"""

from kernelmill.maps.count_sketch import CountSketch
from kernelmill.maps.dot_product_fastfood import DotProductFastfood
from kernelmill.maps.fastfood import Fastfood
from kernelmill.maps.gaussian_templates import GaussianTemplates
from kernelmill.maps.nystroem import Nystroem
from kernelmill.maps.permutation_encoder import PermutationEncoder
from kernelmill.maps.random_fourier import RandomFourier
from kernelmill.maps.random_maclaurin import RandomMaclaurin
from kernelmill.maps.taylor_sketch import TaylorSketch
from kernelmill.maps.tensor_sketch import TensorSketch

__all__ = [
    "CountSketch",
    "DotProductFastfood",
    "Fastfood",
    "GaussianTemplates",
    "Nystroem",
    "PermutationEncoder",
    "RandomFourier",
    "RandomMaclaurin",
    "TaylorSketch",
    "TensorSketch",
]
