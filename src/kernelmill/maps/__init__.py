"""Feature maps: scikit-learn transformers whose inner products estimate kernels.

Contents
--------
RandomFourier
    Shift-invariant kernels with a dense matrix of frequencies.
Fastfood
    Radial kernels in loglinear time, without a matrix.
Nystroem
    Shift-invariant kernels by their values at some rows, exact at these.
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
    Kernels of the inner product or of the angle by spherical harmonics, with Fastfood's directions.
PermutationEncoder
    Not a map itself: vectors of permutations, for kernels of the inner product.
"""

from typing import TYPE_CHECKING

from kernelmill.deferred import defer_imports

if TYPE_CHECKING:
    from kernelmill.maps.permutation_encoder import PermutationEncoder
    from kernelmill.maps.transformers import (
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

# Transformers import scikit-learn, which maps from model files do without.
__getattr__ = defer_imports(
    __name__,
    {
        name: "permutation_encoder" if name == "PermutationEncoder" else "transformers"
        for name in __all__
    },
)
