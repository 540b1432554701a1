"""Estimators on a feature map, which work in blocks: the features of all rows are never stored.

Contents
--------
KernelClassifier
    Support vector machines and logistic regression.
KernelRegressor
    Ridge regression and Gaussian processes.
RidgeStatistics
    Statistics of rows that determine a regression; those of several machines merge.
MappedStatistics
    The same with the map, from `KernelRegressor.statistics`.
load_learner
    Load a classifier or regressor from the file that its `save` wrote.
Run
    Checkpoint and progress of one training run, for callers that control these themselves.
CheckpointError
    Raised if a training run cannot resume from its checkpoint.
DEFAULT_C, default_alpha, default_epochs
    The penalty and the number of passes of a classifier that is given none.
"""

from typing import TYPE_CHECKING

from kernelmill.deferred import defer_imports

if TYPE_CHECKING:
    from kernelmill.learners.classifier import KernelClassifier
    from kernelmill.learners.loading import load_learner
    from kernelmill.learners.losses import DEFAULT_C, default_alpha
    from kernelmill.learners.mapped_statistics import MappedStatistics
    from kernelmill.learners.regressor import KernelRegressor
    from kernelmill.learners.run import CheckpointError, Run
    from kernelmill.learners.solvers.sgd import default_epochs
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

__getattr__ = defer_imports(
    __name__,
    {
        "KernelClassifier": "classifier",
        "load_learner": "loading",
        "DEFAULT_C": "losses",
        "default_alpha": "losses",
        "KernelRegressor": "regressor",
        "CheckpointError": "run",
        "Run": "run",
        "default_epochs": "solvers.sgd",
        "MappedStatistics": "mapped_statistics",
        "RidgeStatistics": "statistics",
    },
)
