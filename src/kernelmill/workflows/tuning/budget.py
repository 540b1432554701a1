"""What fits in the budget of a fit: estimates of time, from the numbers of rows and features.

A model must not depend on how busy a machine is, so no clock is read.
"""

from __future__ import annotations

import numpy as np

from kernelmill.learners import default_epochs
from kernelmill.learners.classifier import KEPT_BYTES

__all__ = [
    "MOST_COMPONENTS",
    "USUAL_BUDGET",
    "budget_factor",
    "count_seconds_of_landmarks",
    "default_components",
    "estimate_seconds",
]

USUAL_BUDGET = 60.0
"""The seconds that training may take by default."""
MOST_COMPONENTS = {  # by whether they are landmarks, and by the task
    (False, "classification"): 16384,
    (False, "regression"): 8192,
    (True, "classification"): 6144,
    (True, "regression"): 6144,
}


def budget_factor(budget: float) -> float:
    """Return how much larger models may be than with the default budget: up to four times."""
    return float(np.clip(budget / USUAL_BUDGET, 1.0, 4.0))


def default_components(task: str) -> int:
    """Return the least number of random features that a model has if none is given."""
    return {"classification": 4096, "regression": 2048}[task]


def estimate_seconds(name: str, n_components: int, n_rows: int, n_classes: int | None) -> float:
    """Return the time of training on two cores of a usual machine."""
    D, n = n_components, n_rows
    whitening = count_seconds_of_landmarks(D, n) if name == "nystroem" else 0.0
    if n_classes is None:
        return whitening + 2.5e-11 * n * D**2 + 6e-11 * D**3
    outputs = 1 if n_classes == 2 else n_classes
    epochs = default_epochs(n)
    if name != "nystroem":
        return (2e-9 + 2e-10 * outputs) * epochs * n * D
    passes = 1 if 4 * n * D <= KEPT_BYTES else epochs
    return passes * whitening + 2e-10 * outputs * epochs * n * D


def count_seconds_of_landmarks(n_components: int, n_rows: int) -> float:
    """Return the time of the features of landmarks."""
    return 1.2e-11 * n_rows * n_components**2 + 3e-11 * n_components**3
