"""Feature maps: scikit-learn transformers whose inner products estimate kernels.

Contents
--------
RandomFourier
    Shift-invariant kernels with a dense matrix of frequencies.
Fastfood
    Radial kernels in loglinear time, without a matrix.
"""

from kernelmill.maps.fastfood import Fastfood
from kernelmill.maps.random_fourier import RandomFourier

__all__ = ["Fastfood", "RandomFourier"]
