"""Training on the encoded rows of a table: settings of a fit, and the fit of a learner."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from kernelmill.encoding.targets import format_label
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.io import TableError
from kernelmill.learners import KernelClassifier, KernelRegressor, Run, default_epochs
from kernelmill.learners.run import Watch
from kernelmill.learners.solvers.choice import MOST_EXACT_FEATURES
from kernelmill.learners.solvers.sgd import PLAIN_EPOCHS
from kernelmill.workflows.encoded_rows import EncodedTable, InMemoryBlocks
from kernelmill.workflows.map_choice import MapChoice
from kernelmill.workflows.records import LearningPoint
from kernelmill.workflows.survey import Survey
from kernelmill.workflows.tuning import TunedSettings

__all__ = ["SOLVERS", "Settings", "learning_curve", "number_class_weights", "train"]

SOLVERS = {
    "classification": ("auto", "sgd", "lbfgs", "exact", "plain_sgd"),
    "regression": ("auto", "exact", "cg"),
}
_WATCHED_FEATURES = 1 << 22  # of held-out rows, computed each of so many times:
_WATCHED_TIMES = 12


@dataclass(frozen=True)
class Settings:
    """The settings of a fit, except those that are tuned."""

    choice: MapChoice
    n_components: int | None  # None until it is chosen
    loss: str
    epochs: int | None
    seed: int
    n_threads: int | None
    solver: str = "auto"
    batch_size: int | None = None
    learning_rate: float | None = None
    class_weight: Any = None  # by labels, or "balanced"

    def check(self, task: str) -> None:
        """Raise if an option of the solver is not for the task or for this solver."""
        known = SOLVERS[task]
        if self.solver not in known:
            raise ArgumentError(
                f"must be one of {', '.join(known)} for {task}, got {self.solver!r}",
                parameter="solver",
            )
        descends = self.solver in ("sgd", "plain_sgd") or (
            self.solver == "auto" and self.loss != "squared"
        )
        steps = {"batch_size": self.batch_size, "learning_rate": self.learning_rate}
        for name, value in {**steps, "epochs": self.epochs}.items():
            if value is None:
                continue
            if task == "regression":
                problem = f"is for classification, got {value!r} for regression"
                raise ArgumentError(problem, Remedy("leave it out", **{name: None}), parameter=name)
            if not descends and not (name == "epochs" and self.solver == "lbfgs"):
                solver = "exact" if self.solver == "auto" else self.solver
                raise ArgumentError(
                    f"is for gradient descent, got {value!r} for the solver {solver!r}",
                    Remedy("leave it out", **{name: None}),
                    Remedy("use descent", solver="sgd"),
                    parameter=name,
                )
        # Before rows are tuned and trained on: the learner knows its other rules.
        self.make_learner(task, "fastfood", 1.0)._check_parameters()

    @property
    def tunable_solver(self) -> str:
        """The solver, or "sgd" where a number of epochs or the size of batches is given."""
        descends = self.epochs is not None or self.batch_size is not None
        return "sgd" if self.solver == "auto" and descends else self.solver

    def with_tuned(self, tuned: TunedSettings) -> Settings:
        """These settings with what tuning has chosen."""
        return replace(
            self,
            choice=tuned.choice,
            n_components=tuned.n_components,
            solver=tuned.solver or self.solver,
        )

    def needs_several_passes(self, task: str) -> bool:
        """Whether the solver passes over the rows more than once."""
        if task == "regression":
            is_many = (self.n_components or 0) > MOST_EXACT_FEATURES
            return self.solver == "cg" or (self.solver == "auto" and is_many)
        return self.loss != "squared" or self.solver not in ("auto", "exact")

    def make_learner(
        self, task: str, feature_map: Any, alpha: Any, epochs: int | None = None
    ) -> Any:
        """An unfitted learner; `epochs` replaces a number of passes that is not given."""
        common: dict[str, Any] = {
            "alpha": alpha,
            "random_state": self.seed,
            "n_threads": self.n_threads,
            "solver": self.solver,
        }
        if task == "regression":
            return KernelRegressor(feature_map, **common)
        return KernelClassifier(
            feature_map,
            loss=self.loss,
            epochs=self.epochs or epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            **common,
        )

    def make_map(self, length_scale: Any, n_components: int | None = None) -> Any:
        """An unfitted map; `n_components` replaces the number of features of the settings."""
        size = n_components or self.n_components
        assert size is not None
        return self.choice.make(length_scale, size, self.seed, self.n_threads)


def train(
    settings: Settings,
    tuned: TunedSettings,
    survey: Survey,
    training_rows: Any,
    encoded: EncodedTable | None,
    run: Run,
    *,
    watched: bool = False,
) -> Any:
    """Fit a learner to the encoded rows or, if these are None, to `training_rows`.

    These are blocks (X, target), in as many passes as needed: `TrainingRows`, or pieces of the
    table on a cluster.

    The caller finishes the run: its checkpoint is needed until the model is saved. If `watched`,
    a classifier that descends is measured on some held-out rows now and then.
    """
    if encoded is not None and len(encoded.training.target) == 0:
        raise TableError(
            "all rows are held out, and none is left to train on",
            Remedy("hold out fewer rows", holdout=...),
        )
    feature_map = settings.make_map(tuned.length_scale)
    n_training = int(survey.n_rows * (1 - survey.held_out.share))
    classes = survey.reader.classes
    if classes is None:
        run.begin(n_training)
        blocks = training_rows if encoded is None else InMemoryBlocks(encoded.training)
        alpha: Any = tuned.alpha
        if len(tuned.alphas) > 1 and not settings.needs_several_passes("regression"):
            alpha = np.array(tuned.alphas)
        learner = settings.make_learner("regression", feature_map, alpha)
        if encoded is not None and settings.choice.name == "nystroem":
            return learner.fit(*encoded.training, run=run)  # landmarks are drawn from all rows
        with run.saving_on_interrupt():
            return learner.fit_blocks(blocks, run=run)
    epochs = default_epochs(survey.n_rows) if settings.solver in ("auto", "sgd") else None
    classifier = settings.make_learner("classification", feature_map, tuned.alpha, epochs)
    classifier.set_params(**tuned.solver_parameters())
    classifier.class_weight = number_class_weights(settings.class_weight, classes)
    is_spread = encoded is None and hasattr(training_rows, "fold")
    if settings.solver == "exact" and not is_spread:
        run = Run(progress=run.progress)  # it saves no state on one machine
    if settings.solver != "lbfgs":  # which does not know its number of passes
        passes = settings.epochs or epochs or PLAIN_EPOCHS
        run.begin(n_training if settings.loss == "squared" else passes * n_training)
    if watched and encoded is not None and len(encoded.held_out.target):
        n_watched = int(np.clip(_WATCHED_FEATURES // (settings.n_components or 1), 100, 1000))
        rows = encoded.held_out.select(slice(n_watched))
        total = n_training * (settings.epochs or epochs or PLAIN_EPOCHS)
        run.watch = Watch(rows.X, rows.target, total // _WATCHED_TIMES)
    with run.saving_on_interrupt(), _expecting_passes(tuned.solver):
        if encoded is None:
            classifier.fit_blocks(training_rows, classes=np.arange(len(classes)), run=run)
        else:
            _check_classes(encoded.training.target, len(classes))
            classifier.fit(*encoded.training.block(), run=run)
    if isinstance(settings.class_weight, Mapping):
        classifier.class_weight = dict(settings.class_weight)  # by labels, as they were given
    # Trained on numbers of classes, which are looked up faster than strings.
    if len(classifier.classes_) == len(classes):
        classifier.classes_ = classes
    return classifier


@contextmanager
def _expecting_passes(solver: str) -> Iterator[None]:
    """Without a warning where the number of passes was chosen: the penalty suits it, too."""
    with warnings.catch_warnings():
        if solver == "lbfgs":
            warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def number_class_weights(given: Any, classes: NDArray[Any]) -> Any:
    """Weights by the numbers of classes, which learners are trained on."""
    if not isinstance(given, Mapping):
        return given
    numbers = {label: number for number, label in enumerate(classes.tolist())}
    numbers |= {format_label(label): number for label, number in numbers.items()}
    unknown = [label for label in given if label not in numbers]
    if unknown:
        raise ArgumentError(
            f"has a weight for {unknown[0]!r}, which is not one of the classes "
            f"({', '.join(map(format_label, classes.tolist()[:8]))})",
            "correct the label",
            parameter="class_weight",
        )
    return {numbers[label]: weight for label, weight in given.items()}


def learning_curve(learner: Any, n_rows: int, run: Run) -> list[LearningPoint]:
    """The mean loss since the last point, and loss and error of held-out rows; or each epoch's."""
    if run.watch is not None and run.watch.points:
        return [
            LearningPoint(point.rows, point.loss, point.watched_error, point.watched_loss)
            for point in run.watch.points
        ]
    losses = getattr(learner, "loss_curve_", [])
    return [LearningPoint((place + 1) * n_rows, float(loss)) for place, loss in enumerate(losses)]


def _check_classes(target: NDArray[Any], n_classes: int) -> None:
    n_missing = n_classes - len(np.unique(target))
    if n_missing:
        raise ArgumentError(
            f"all rows of {n_missing} of {n_classes} classes are held out",
            Remedy("hold out no rows", holdout=0),
            "remove the rows of these classes",
        )
