"""Estimators on top of a feature map, fed in blocks: the features of all rows never exist at once.

Contents
--------
KernelClassifier
    Support vector machines and logistic regression.
KernelRegressor
    Ridge regression and Gaussian processes.
RidgeStatistics
    What blocks of rows contribute to a regression; statistics of several machines merge.
MappedStatistics
    The same with the map, from `KernelRegressor.statistics`.
load_learner
    A classifier or regressor from the file that its `save` wrote.
"""

from kernelmill.learners.classifier import KernelClassifier
from kernelmill.learners.mapped_statistics import MappedStatistics
from kernelmill.learners.model_record import load_learner
from kernelmill.learners.regressor import KernelRegressor
from kernelmill.learners.statistics import RidgeStatistics

__all__ = [
    "KernelClassifier",
    "KernelRegressor",
    "MappedStatistics",
    "RidgeStatistics",
    "load_learner",
]
