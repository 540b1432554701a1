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
Run
    Checkpoint and progress of one training run, for callers that control these themselves.
CheckpointError
    Raised if a training run cannot resume from its checkpoint.
DEFAULT_C, default_alpha, default_epochs
    The penalty and the number of passes of a classifier that is given none.
"""

from kernelmill.learners.classifier import KernelClassifier
from kernelmill.learners.classifier_training import DEFAULT_C, default_alpha, default_epochs
from kernelmill.learners.loading import load_learner
from kernelmill.learners.mapped_statistics import MappedStatistics
from kernelmill.learners.regressor import KernelRegressor
from kernelmill.learners.run import CheckpointError, Run
from kernelmill.learners.statistics import RidgeStatistics

__all__ = [
    "DEFAULT_C",
    "CheckpointError",
    "KernelClassifier",
    "KernelRegressor",
    "MappedStatistics",
    "RidgeStatistics",
    "Run",
    "default_alpha",
    "default_epochs",
    "load_learner",
]
