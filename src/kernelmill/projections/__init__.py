"""Random projections z = V x of data, and features of z computed while it is in the cache.

Contents
--------
DenseProjection
    V is a matrix of frequencies: independent, orthogonal, or by quasi-Monte Carlo.
HadamardProjection, FastfoodFactors
    V is a product of diagonals, permutations and Walsh-Hadamard transforms (Fastfood, SORF).
FourierProjection
    The same with cosine or Fourier transforms.
FeatureLayout
    The features of z: cosines and sines, complex exponentials, or cosines with phases.
"""

from kernelmill.projections.dense import DenseProjection
from kernelmill.projections.fastfood import FastfoodFactors, HadamardProjection
from kernelmill.projections.fourier import FourierProjection
from kernelmill.projections.layout import FeatureLayout

__all__ = [
    "DenseProjection",
    "FastfoodFactors",
    "FeatureLayout",
    "FourierProjection",
    "HadamardProjection",
]
