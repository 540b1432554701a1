"""Feature maps: scikit-learn transformers whose inner products estimate kernels.

Contents
--------
RandomFourier
    Shift-invariant kernels with a dense matrix of frequencies.
Fastfood
    Radial kernels in loglinear time, without a matrix.
PermutationEncoder
    Permutations as vectors, for dot-product kernels.
"""

from kernelmill.maps.fastfood import Fastfood
from kernelmill.maps.permutation_encoder import PermutationEncoder
from kernelmill.maps.random_fourier import RandomFourier

__all__ = ["Fastfood", "PermutationEncoder", "RandomFourier"]
