"""Estimators on top of a feature map, fed in blocks: the features of all rows never exist at once.

Contents
--------
KernelClassifier
    Support vector machines and logistic regression.
KernelRegressor
    Ridge regression and Gaussian processes.
"""

from kernelmill.learners.classifier import KernelClassifier

__all__ = ["KernelClassifier"]
