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
min_features, resolve_kernel
    The smallest number of features of a map; the kernel that `list_maps` finds by a name.
"""

from kernelmill.diagnostics import bounds
from kernelmill.diagnostics.approximation import (
    GramErrors,
    KernelErrors,
    Measured,
    RangeErrors,
    effective_dimension,
    gram_errors,
    kernel_errors,
    mean_of_seeds,
)
from kernelmill.diagnostics.needed_features import (
    FeatureRequirement,
    list_maps,
    min_features,
    recommend_map,
    required_features,
    resolve_kernel,
)
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
    "min_features",
    "recommend_map",
    "required_features",
    "resolve_kernel",
]
