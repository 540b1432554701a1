"""Feature maps: scikit-learn transformers whose inner products estimate kernels.

Contents
--------
RandomFourier
    Shift-invariant kernels with a dense matrix of frequencies.
Fastfood
    Radial kernels in loglinear time, without a matrix.
RandomMaclaurin
    Dot-product kernels by products of random projections.
"""

from kernelmill.maps.fastfood import Fastfood
from kernelmill.maps.random_fourier import RandomFourier
from kernelmill.maps.random_maclaurin import RandomMaclaurin

__all__ = ["Fastfood", "RandomFourier", "RandomMaclaurin"]
