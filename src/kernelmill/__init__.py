"""Kernel machines at linear cost: fast random feature maps with a C++ core.

Contents
--------
fit_table, compare_table, load, load_predictor, TableModel
    From a data file to a model, and from a model file to predictions.
diagnose_table
    The number of features that each map needs on a data file, and their cost.
KernelClassifier, KernelRegressor
    Support vector machines, logistic regression, ridge regression and Gaussian processes on
    features that are computed in blocks and never stored.
diagnostics
    Approximation errors of maps on data, error bounds, and the number of features needed.
scale
    Maps, learners and tests on a Dask cluster.
two_sample_test
    Test whether two samples come from the same distribution.
Fastfood, RandomFourier
    Feature maps of shift-invariant kernels: scikit-learn transformers.
AdditiveFourier
    Random features and step functions of single columns, for tables with thresholds.
PrincipalFourier
    Random features of principal components, for images and other data with many columns.
Nystroem
    A feature map that is exact at landmarks, which are rows of the data.
TaylorSketch, GaussianTemplates
    Feature maps of the Gaussian kernel: Taylor series, and positive, local features.
TensorSketch, RandomMaclaurin, CountSketch, DotProductFastfood
    Feature maps of dot-product kernels; the last one also supports kernels of angles.
PermutationEncoder
    Encoding of permutations as vectors for these maps.
kernels
    The kernels, with their exact values and spectral measures.
fwht
    Fast Walsh-Hadamard transform.
transforms
    `fwht`, circular convolution (`circular_convolve`), simultaneous sine and cosine (`sincos`).
random
    Counter-based random streams (`Stream`), the same on every machine.
get_num_threads, set_num_threads, runtime
    Threads and instruction sets.
"""

from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kernelmill.cli.program.signals import exit_on_interrupt as _exit_on_interrupt
from kernelmill.cli.program.signals import runs_as_program as _runs_as_program

with _exit_on_interrupt() if _runs_as_program() else nullcontext():  # numpy takes a while
    from kernelmill import kernels, runtime, transforms
    from kernelmill import random as random
    from kernelmill.runtime import get_num_threads, set_num_threads
    from kernelmill.runtime.isa import apply_environment as _apply_environment
    from kernelmill.transforms import fwht

if TYPE_CHECKING:
    from kernelmill import diagnostics, learners, maps, report, scale, stats, workflows
    from kernelmill import io as io
    from kernelmill.learners import KernelClassifier, KernelRegressor
    from kernelmill.maps import (
        AdditiveFourier,
        CountSketch,
        DotProductFastfood,
        Fastfood,
        GaussianTemplates,
        Nystroem,
        PermutationEncoder,
        PrincipalFourier,
        RandomFourier,
        RandomMaclaurin,
        TaylorSketch,
        TensorSketch,
    )
    from kernelmill.stats import two_sample_test
    from kernelmill.workflows import (
        TableModel,
        compare_table,
        diagnose_table,
        fit_table,
        load,
        load_predictor,
    )

__version__ = "0.1.0.dev0"

# What `from kernelmill import *` imports: without `io` and `random`, which would hide modules of
# the standard library.
__all__ = [
    "AdditiveFourier",
    "CountSketch",
    "DotProductFastfood",
    "Fastfood",
    "GaussianTemplates",
    "KernelClassifier",
    "KernelRegressor",
    "Nystroem",
    "PermutationEncoder",
    "PrincipalFourier",
    "RandomFourier",
    "RandomMaclaurin",
    "TableModel",
    "TaylorSketch",
    "TensorSketch",
    "__version__",
    "compare_table",
    "diagnose_table",
    "diagnostics",
    "fit_table",
    "fwht",
    "get_num_threads",
    "kernels",
    "learners",
    "load",
    "load_predictor",
    "maps",
    "report",
    "runtime",
    "scale",
    "set_num_threads",
    "stats",
    "transforms",
    "two_sample_test",
    "workflows",
]

_PACKAGE_OF = {
    "KernelClassifier": "learners",
    "KernelRegressor": "learners",
    "TableModel": "workflows",
    "compare_table": "workflows",
    "diagnose_table": "workflows",
    "fit_table": "workflows",
    "load": "workflows",
    "load_predictor": "workflows",
    "two_sample_test": "stats",
}
_LAZY_PACKAGES = (
    "diagnostics",
    "io",
    "learners",
    "maps",
    "report",
    "scale",
    "stats",
    "workflows",
)

_apply_environment()


def __getattr__(name: str) -> Any:
    # Maps and the layers above import scikit-learn, which takes a second, so they are imported on
    # first use. All names that the imports above do not define are theirs.
    if name in _LAZY_PACKAGES:
        return import_module(f"kernelmill.{name}")
    if name in __all__:
        return getattr(import_module(f"kernelmill.{_PACKAGE_OF.get(name, 'maps')}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "io", "random"])
