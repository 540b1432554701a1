"""Random projections z = V x of data, and features of z computed while it is in the cache.

Contents
--------
DenseProjection
    V is a matrix of frequencies: independent, orthogonal, or by quasi-Monte Carlo.
HadamardProjection, GivenProjection, FastfoodFactors, GivenFactors
    V is a product of diagonals, permutations and Walsh-Hadamard transforms (Fastfood, SORF), random
    or given.
FourierProjection
    The same with cosine or Fourier transforms.
FeatureLayout
    The features of z: cosines and sines, complex exponentials, or cosines with phases.
Projection
    The base class.
"""

from kernelmill.projections.base import FeatureLayout, Projection
from kernelmill.projections.dense import DenseProjection
from kernelmill.projections.fastfood import (
    FastfoodFactors,
    GivenFactors,
    GivenProjection,
    HadamardProjection,
)
from kernelmill.projections.fourier import FourierProjection

__all__ = [
    "DenseProjection",
    "FastfoodFactors",
    "FeatureLayout",
    "FourierProjection",
    "GivenFactors",
    "GivenProjection",
    "HadamardProjection",
    "Projection",
]
