"""Feature maps: scikit-learn transformers whose inner products estimate kernels.

Contents
--------
RandomFourier
    Shift-invariant kernels with a dense matrix of frequencies.
Fastfood
    Radial kernels in loglinear time, without a matrix.
Nystroem
    Shift-invariant kernels by their values at landmarks, where they are exact.
AdditiveFourier
    Shift-invariant kernels, and step functions of single columns.
PrincipalFourier
    Radial kernels of the leading principal components, for many columns such as pixels.
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
    Dot-product kernels and kernels of angles by spherical harmonics, with the directions of
    Fastfood.
PermutationEncoder
    Encodes permutations as vectors for dot-product kernels; it is not a map itself.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernelmill.maps.permutation_encoder import PermutationEncoder
    from kernelmill.maps.registry import (
        AdditiveFourier,
        CountSketch,
        DotProductFastfood,
        Fastfood,
        GaussianTemplates,
        Nystroem,
        PrincipalFourier,
        RandomFourier,
        RandomMaclaurin,
        TaylorSketch,
        TensorSketch,
    )

__all__ = [
    "AdditiveFourier",
    "CountSketch",
    "DotProductFastfood",
    "Fastfood",
    "GaussianTemplates",
    "Nystroem",
    "PermutationEncoder",
    "PrincipalFourier",
    "RandomFourier",
    "RandomMaclaurin",
    "TaylorSketch",
    "TensorSketch",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_module("kernelmill.maps.base").load_scikit_learn()  # predictions do without
    module = "permutation_encoder" if name == "PermutationEncoder" else "registry"
    return getattr(import_module(f"{__name__}.{module}"), name)
