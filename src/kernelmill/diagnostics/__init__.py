"""Errors of feature maps on data, bounds of them, and the number of features that they need.

Contents
--------
kernel_errors, KernelErrors
    Absolute and relative errors of kernel values, over their range, with intervals.
gram_errors, effective_dimension
    Errors of the Gram matrix, and what they do to ridge regression.
estimate_variance
    The variance of kernel estimates, where theory gives it.
bounds
    The bounds of the papers as functions.
Measured, mean_of_seeds
    Means over seeds with their intervals.
"""

from kernelmill.diagnostics import bounds
from kernelmill.diagnostics.gram import GramErrors, effective_dimension, gram_errors
from kernelmill.diagnostics.kernel_error import KernelErrors, RangeErrors, kernel_errors
from kernelmill.diagnostics.measured import Measured, mean_of_seeds
from kernelmill.diagnostics.variance import Variance, estimate_variance

__all__ = [
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
    "mean_of_seeds",
]
