"""Approximation errors of feature maps on data, error bounds, and required numbers of features.

Contents
--------
kernel_errors, KernelErrors
    Absolute and relative errors of kernel values, over their range, with intervals.
required_features, list_maps, recommend_map
    The number of features that reach a tolerance, the maps that apply to a kernel, and the best
    one.
gram_errors, effective_dimension
    Errors of the Gram matrix, and their effect on ridge regression.
estimate_variance
    The variance of kernel estimates, where theory gives it.
bounds
    The bounds of the papers as functions.
Measured, mean_of_seeds
    Means over seeds with their intervals.
"""

from typing import TYPE_CHECKING

from kernelmill.deferred import defer_imports

if TYPE_CHECKING:
    from kernelmill.diagnostics import bounds
    from kernelmill.diagnostics.gram import GramErrors, effective_dimension, gram_errors
    from kernelmill.diagnostics.kernel_error import KernelErrors, RangeErrors, kernel_errors
    from kernelmill.diagnostics.needed_features import required_features
    from kernelmill.diagnostics.recommendation import list_maps, recommend_map
    from kernelmill.diagnostics.records import FeatureRequirement
    from kernelmill.diagnostics.seeds import Measured, mean_of_seeds
    from kernelmill.diagnostics.variance import Variance, estimate_variance

__all__ = [
    "FeatureRequirement",
    "GramErrors",
    "KernelErrors",
    "Measured",
    "RangeErrors",
    "Variance",
    "bounds",
    "effective_dimension",
    "estimate_variance",
    "gram_errors",
    "kernel_errors",
    "list_maps",
    "mean_of_seeds",
    "recommend_map",
    "required_features",
]

__getattr__ = defer_imports(
    __name__,
    {
        "bounds": "",
        "GramErrors": "gram",
        "effective_dimension": "gram",
        "gram_errors": "gram",
        "KernelErrors": "kernel_error",
        "RangeErrors": "kernel_error",
        "kernel_errors": "kernel_error",
        "Measured": "seeds",
        "mean_of_seeds": "seeds",
        "list_maps": "recommendation",
        "recommend_map": "recommendation",
        "FeatureRequirement": "records",
        "required_features": "needed_features",
        "Variance": "variance",
        "estimate_variance": "variance",
    },
)
