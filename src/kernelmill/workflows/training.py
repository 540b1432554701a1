"""The training of a model on the encoded rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.io import TableError
from kernelmill.learners import KernelClassifier, KernelRegressor
from kernelmill.runtime.progress import Progress
from kernelmill.workflows.map_choice import MapChoice
from kernelmill.workflows.records import LearningPoint
from kernelmill.workflows.survey import Survey
from kernelmill.workflows.training_rows import TrainingRows
from kernelmill.workflows.tuning import Tuned

__all__ = ["SLICE", "Settings", "learning_curve", "trained"]

_ROWS_TO_SEE, _FEWEST_EPOCHS, _MOST_EPOCHS = 100_000, 4, 500
SLICE = 1 << 14  # rows at a time, where all are there


@dataclass(frozen=True)
class Settings:
    """What the user wants, but for what is tuned."""

    choice: MapChoice
    n_components: int
    loss: str
    epochs: int | None
    seed: int
    n_threads: int | None
    checkpoint: Any
    checkpoint_seconds: float

    def make_map(self, length_scale: float | None, n_components: int | None = None) -> Any:
        """An unfitted map, with other features than wanted if `n_components` is given."""
        return self.choice.make(
            length_scale, n_components or self.n_components, self.seed, self.n_threads
        )


def trained(
    settings: Settings,
    tuned: Tuned,
    found: Survey,
    rows: TrainingRows,
    kept: Any,
    progress: Progress,
) -> Any:
    """The fitted learner, of the kept rows or, without these, of `rows` in several passes."""
    if kept is not None and len(kept[0][1]) == 0:
        raise TableError(
            "all rows are held out, and none is left to train on; lower holdout (--holdout)."
        )
    feature_map = settings.make_map(tuned.length_scale)
    common = {
        "alpha": tuned.alpha,
        "checkpoint": settings.checkpoint,
        "checkpoint_seconds": settings.checkpoint_seconds,
        "random_state": settings.seed,
        "n_threads": settings.n_threads,
    }
    classes = found.reader.classes
    if classes is None:
        regressor = KernelRegressor(feature_map, **common)
        regressor._keeps_checkpoint = True
        progress.start("Training", found.n_rows)
        rows.progress = progress
        regressor.fit_blocks(rows if kept is None else _Slices(kept[0][0], kept[0][1], progress))
        return regressor
    n_rows = found.n_rows
    epochs = settings.epochs or int(
        np.clip(-(-_ROWS_TO_SEE // n_rows), _FEWEST_EPOCHS, _MOST_EPOCHS)
    )
    classifier = KernelClassifier(feature_map, loss=settings.loss, epochs=epochs, **common)
    classifier._keeps_checkpoint = True
    share = 1 - found.held_out.share
    passes = 1 if settings.loss == "squared" else epochs
    progress.start("Training", int(passes * n_rows * share))
    classifier._listener = progress.advance
    try:
        if kept is None:
            classifier.fit_blocks(rows, classes=np.arange(len(classes)))
        else:
            classifier.fit(*_all_classes(kept[0], len(classes)))
    finally:
        del classifier._listener
    # Trained on numbers of classes, which are quicker to look up than texts.
    if len(classifier.classes_) == len(classes):
        classifier.classes_ = classes
    return classifier


def _all_classes(rows: tuple[Any, NDArray[Any]], n_classes: int) -> tuple[Any, NDArray[Any]]:
    """The rows; classes of which all rows are held out are told in words."""
    X, target = rows
    missing = np.setdiff1d(np.arange(n_classes), target)
    if len(missing):
        raise ValueError(
            f"{len(missing)} of the classes have so few rows that all of them are held out; set "
            "holdout=0 (--holdout 0), or leave these rows out."
        )
    return X, target


class _Slices:
    """Kept rows as blocks, for a learner that takes each once."""

    def __init__(self, X: Any, target: NDArray[Any], progress: Progress) -> None:
        self._X, self._target, self._progress = X, target, progress

    def __iter__(self) -> Iterator[tuple[Any, NDArray[Any]]]:
        for begin in range(0, len(self._target), SLICE):
            part = slice(begin, begin + SLICE)
            yield self._X[part], self._target[part]
            self._progress.advance(len(self._target[part]))


def learning_curve(learner: Any, n_rows: int) -> list[LearningPoint]:
    """The mean loss of each epoch."""
    losses = getattr(learner, "loss_curve_", [])
    return [LearningPoint((place + 1) * n_rows, float(loss)) for place, loss in enumerate(losses)]
