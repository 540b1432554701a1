"""Training on the encoded rows of a table, and errors on held-out rows: settings and plan."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit
from sklearn.exceptions import ConvergenceWarning

from kernelmill.encoding.targets import format_label
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.formatting import plain
from kernelmill.io import Table
from kernelmill.learners import KernelClassifier, KernelRegressor, Run, default_epochs
from kernelmill.learners.run import Watch
from kernelmill.learners.solvers import SOLVERS
from kernelmill.learners.solvers.choice import choose_solver, takes_one_pass
from kernelmill.learners.solvers.sgd import PLAIN_EPOCHS
from kernelmill.random import Stream
from kernelmill.random.row_hashes import rank_keys
from kernelmill.runtime.progress import Progress
from kernelmill.workflows.evaluation import make_scores, wilson_interval
from kernelmill.workflows.model.table_model import TableModel
from kernelmill.workflows.records import CrossValidation, Evaluation, LearningPoint
from kernelmill.workflows.splits import HeldOut, assign_parts, cut_folds, cut_windows
from kernelmill.workflows.training.encoded_rows import (
    EncodedRows,
    EncodedTable,
    InMemoryBlocks,
    TrainingRows,
    concatenate_rows,
    encode_held_out,
)
from kernelmill.workflows.training.survey import Survey
from kernelmill.workflows.tuning.map_choice import MapChoice
from kernelmill.workflows.tuning.settings import TunedSettings

if TYPE_CHECKING:  # it imports Dask
    from kernelmill.workflows.spread_table import SpreadTable

__all__ = ["Settings", "TrainingPlan", "learning_curve", "number_class_weights"]

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

    def check(self, task: str, n_rows: int) -> None:
        """Raise if an option of the solver is not for the task, or not for the chosen solver."""
        known = SOLVERS[task]
        if self.solver not in known:
            raise ArgumentError(
                f"must be one of {', '.join(known)} for {task}, got {self.solver!r}",
                parameter="solver",
            )
        solver = self.choose_solver(task, self.count_features(n_rows))
        descends = solver in ("sgd", "plain_sgd")
        steps = {"batch_size": self.batch_size, "learning_rate": self.learning_rate}
        for name, value in {**steps, "epochs": self.epochs}.items():
            if value is None:
                continue
            if task == "regression":
                problem = f"is for classification, got {value!r} for regression"
                raise ArgumentError(problem, Remedy("leave it out", **{name: None}), parameter=name)
            if not descends and not (name == "epochs" and solver == "lbfgs"):
                raise ArgumentError(
                    f"is for gradient descent solvers, got {value!r} for the solver {solver!r}",
                    Remedy("leave it out", **{name: None}),
                    Remedy("use gradient descent", solver="sgd"),
                    parameter=name,
                )
        # Before rows are tuned and trained on: the learner knows its other rules.
        self.make_learner(task, "fastfood", 1.0)._check_parameters()

    def choose_solver(self, task: str, n_features: int | None) -> str:
        """Return the solver of a learner with these settings; None if the number is not known."""
        return choose_solver(task, self.solver, loss=self.loss, n_features=n_features)

    def count_features(self, n_rows: int) -> int | None:
        """Return the number of features on so many rows; None until it is chosen."""
        if self.n_components is None or self.choice.name != "nystroem":
            return self.n_components
        return min(self.n_components, n_rows)

    def with_tuned(self, tuned: TunedSettings) -> Settings:
        """Return these settings with the choices of tuning."""
        return replace(
            self,
            choice=tuned.choice,
            n_components=tuned.n_components,
            solver=tuned.solver or self.solver,
        )

    def make_learner(
        self, task: str, feature_map: Any, alpha: Any, epochs: int | None = None
    ) -> Any:
        """Return an unfitted learner; `epochs` is used if the settings have no number of passes."""
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
        """Return an unfitted map; `n_components` replaces the number in the settings."""
        size = n_components or self.n_components
        assert size is not None
        return self.choice.make(length_scale, size, self.seed, self.n_threads)


@dataclass(frozen=True)
class TrainingPlan:
    """Settings and rows: all that is needed to fit a learner, once or several times.

    Attributes
    ----------
    encoded : EncodedTable or None
        The rows in memory; None if the table is read in each pass.
    pieces : SpreadTable or None
        The table on a cluster.
    """

    settings: Settings
    tuned: TunedSettings
    survey: Survey
    table: Table
    encoded: EncodedTable | None
    progress: Progress
    pieces: SpreadTable | None = None

    @property
    def n_training(self) -> int:
        """About the number of rows that are not held out."""
        return int(self.survey.n_rows * (1 - self.survey.held_out.share))

    @property
    def solver(self) -> str:
        """The solver that the learner will use."""
        n_features = self.settings.count_features(self.n_training)
        return self.settings.choose_solver(self.survey.reader.task, n_features)

    def fit(self, run: Run, *, watched: bool = False) -> Any:
        """Fit a learner to the rows that are not held out.

        The caller finishes the run: its checkpoint is needed until the model is saved. If
        `watched`, a classifier that descends is measured on some held-out rows now and then.
        """
        feature_map = self.settings.make_map(self.tuned.length_scale)
        if self.survey.reader.classes is None:
            return self._fit_regressor(feature_map, run)
        return self._fit_classifier(feature_map, run, watched=watched)

    def _fit_regressor(self, feature_map: Any, run: Run) -> Any:
        settings, tuned = self.settings, self.tuned
        run.begin(self.n_training)
        alpha: Any = tuned.alpha
        if len(tuned.alphas) > 1 and self.solver == "exact":
            alpha = np.array(tuned.alphas)
        regressor = settings.make_learner("regression", feature_map, alpha)
        if self.encoded is not None and settings.choice.name == "nystroem":
            # Landmarks come from all rows.
            return regressor.fit(*self.encoded.training.block(), run=run)
        rows = self._read_rows() if self.encoded is None else InMemoryBlocks(self.encoded.training)
        with run.save_on_interrupt():
            return regressor.fit_blocks(rows, run=run)

    def _fit_classifier(self, feature_map: Any, run: Run, *, watched: bool) -> Any:
        settings, tuned, encoded = self.settings, self.tuned, self.encoded
        classes = self.survey.reader.classes
        assert classes is not None
        solver, n_training = self.solver, self.n_training
        epochs = default_epochs(self.survey.n_rows) if solver == "sgd" else None
        classifier = settings.make_learner("classification", feature_map, tuned.alpha, epochs)
        classifier.set_params(**tuned.solver_parameters())
        classifier.class_weight = number_class_weights(settings.class_weight, classes)
        if solver == "exact" and self.pieces is None:
            run = Run(progress=run.progress)  # it saves no state on one machine
        passes = 1 if takes_one_pass(solver) else settings.epochs or epochs or PLAIN_EPOCHS
        if solver != "lbfgs":  # which does not know its number of passes
            run.begin(passes * n_training)
        if watched and encoded is not None and len(encoded.held_out.target):
            n_watched = int(np.clip(_WATCHED_FEATURES // (settings.n_components or 1), 100, 1000))
            rows = encoded.held_out.select(slice(n_watched))
            run.watch = Watch(rows.X, rows.target, passes * n_training // _WATCHED_TIMES)
        with run.save_on_interrupt(), warnings.catch_warnings():
            if tuned.solver == "lbfgs":  # its number of passes was chosen, and the penalty for it
                warnings.simplefilter("ignore", ConvergenceWarning)
            if encoded is None:
                numbers = np.arange(len(classes))
                classifier.fit_blocks(self._read_rows(), classes=numbers, run=run)
            else:
                _check_classes(encoded.training.target, len(classes), self.survey)
                classifier.fit(*encoded.training.block(), run=run)
        if isinstance(settings.class_weight, Mapping):
            classifier.class_weight = dict(settings.class_weight)  # by labels, as they were given
        # Trained on numbers of classes, which are looked up faster than strings.
        if len(classifier.classes_) == len(classes):
            classifier.classes_ = classes
        return classifier

    def _read_rows(self) -> Any:
        """Return blocks (X, target) of the table, in as many passes as needed."""
        if self.pieces is None:
            return TrainingRows(self.table, self.survey, self.settings.seed)
        several = not takes_one_pass(self.solver)
        return self.pieces.training_rows(self.survey, several_passes=several)

    def evaluate(self, learner: Any, source: str) -> Evaluation | None:
        """Evaluate a learner on the held-out rows; None if there are none."""
        if self.survey.held_out.share <= 0:
            return None
        weights = self.survey.weights
        notes = [] if weights is None else [f"Rows are weighted by column {weights!r}."]
        scores = self._score(learner)
        return scores.finish(f"{source}: held-out rows", notes) if scores.n_rows else None

    def _score(self, learner: Any) -> Any:
        """Return the scores of a learner on the held-out rows."""
        if self.pieces is not None:
            return self.pieces.evaluate(learner, self.survey)
        scores = make_scores(learner, self.survey.reader.classes)
        self.progress.start("Evaluating", None)
        in_memory = None if self.encoded is None else [self.encoded.held_out]
        for block in in_memory or encode_held_out(self.table, self.survey):
            for rows in block.slices():
                scores.update(*rows.block())
            self.progress.advance(len(block.target))
        return scores

    def evaluate_table(
        self, learner: Any, source: Any, table_options: Mapping[str, Any]
    ) -> Evaluation:
        """Evaluate a learner on another table, opened with the options of this one."""
        kinds = ("categorical", "numeric", "dates")  # which the model determines
        options = {name: value for name, value in table_options.items() if name not in kinds}
        survey = self.survey
        # An evaluation needs no summary of the fit, which is not known yet.
        model = TableModel(learner, survey.encoder, survey.inputs, survey.reader, None)  # type: ignore[arg-type]
        weights = False if survey.weights is None else survey.weights
        cluster = None if self.pieces is None else self.pieces.cluster
        options = {**options, "weights": weights, "cluster": cluster}
        return model.evaluate_table(source, progress=self.progress, **options)

    def cross_validate(self, n_folds: int) -> CrossValidation:
        """Fit to all folds but one, and test on that one, for each fold.

        Settings and encoding are not chosen again in each fold. If rows are in order of time, each
        fold is fitted to all earlier rows. The interval of the mean has the
        variance of Nadeau and Bengio (2003), which allows for training rows that the folds share.
        For errors of classifiers it is that of Wilson (1927), which has a width even if no row is
        misclassified; for root mean squared errors, that of Student's t.
        """
        survey = self.survey
        metric = "rmse" if survey.reader.classes is None else "error"
        errors, n_tested = [], 0.0
        for held_out, part in self._fold_rows(n_folds):
            plan = replace(self, survey=replace(survey, held_out=held_out), encoded=part)
            scores = plan._score(plan.fit(Run(progress=self.progress)))
            error = scores.finish("", []).metrics[metric] if scores.n_rows else None
            errors.append(math.nan if error is None else error)
            n_tested += scores.n_effective if metric == "error" else scores.n_rows
        mean, deviation = float(np.mean(errors)), float(np.std(errors, ddof=1))
        # Of the variance of a mean of independent folds.
        factor = 1 + n_folds / (n_folds - 1)
        if metric == "error":
            low, high = wilson_interval(mean * n_tested / factor, n_tested / factor)
        else:
            half = float(stdtrit(n_folds - 1, 0.975)) * deviation * math.sqrt(factor / n_folds)
            low, high = max(0.0, mean - half), mean + half
        return CrossValidation(n_folds, metric, errors, mean, low, high)

    def check_folds(self, n_folds: int | None) -> Self:
        """Return the plan; raise if there are too few rows for the folds, if any are wanted."""
        if n_folds is not None:
            next(iter(self._fold_rows(n_folds)))
        return self

    def _fold_rows(self, n_folds: int) -> Iterator[tuple[HeldOut, EncodedTable | None]]:
        """Yield which rows each fold holds out, and all rows so divided if they are in memory."""
        survey = self.survey
        stream = Stream.from_seed(self.settings.seed).substream("folds")
        most = survey.counts.n_keys - survey.in_order  # the first time is only for training
        if n_folds > most:
            parts = {"groups": "groups", "time": "times but one"}
            what = parts.get(survey.division.by, "rows with different inputs")
            allowed = f"must be at most {plain.count(most)}, the number of {what}"
            if most < 2:
                allowed = f"needs at least 2 {what}, of which there are {plain.count(most)}"
            raise ArgumentError(
                f"{allowed}, got {n_folds}",
                parameter="folds",
            )
        if survey.in_order:
            folds = cut_windows(survey.counts, n_folds)
        else:
            folds = cut_folds(survey.held_out, survey.counts, n_folds, stream)
        if self.encoded is None:
            yield from ((held_out, None) for held_out in folds)
            return
        rows = concatenate_rows([self.encoded.training, self.encoded.held_out])
        assert rows.keys is not None
        numbers = None if survey.in_order else _assign_folds(rows, n_folds, stream)
        for number, held_out in enumerate(folds):
            out = held_out.rows(rows.keys) if numbers is None else numbers == number
            training = ~(out | held_out.unused(rows.keys))
            yield held_out, EncodedTable(rows.select(training), rows.select(out))

    def fit_all_rows(self) -> Any:
        """Fit a learner with the same settings to all rows, including held-out ones."""
        survey = replace(self.survey, held_out=replace(self.survey.held_out, share=0.0))
        encoded = None
        if self.encoded is not None:
            rows = concatenate_rows([self.encoded.training, self.encoded.held_out])
            encoded = EncodedTable(rows, rows.select(slice(0)))
        return replace(self, survey=survey, encoded=encoded).fit(Run(progress=self.progress))


def _assign_folds(rows: EncodedRows, n_folds: int, stream: Stream) -> NDArray[np.int64]:
    """Return the fold of each row, about the same number of each class in each; -1 is in no fold.

    Rows with equal keys are in one fold. If all rows of a class have one key, they are in no fold:
    a model could not know the class otherwise.
    """
    keys, codes = rows.keys, rows.target
    assert keys is not None
    classes = codes if codes.dtype.kind == "i" else None
    order = np.argsort(rank_keys(keys, stream), kind="stable")
    folds = np.empty(len(keys), np.int64)
    folds[order] = assign_parts(keys[order], n_folds, None if classes is None else classes[order])
    if classes is not None:
        place = np.unique(keys, return_inverse=True)[1]
        pairs = np.unique(np.stack([classes, place]), axis=1)
        single = np.bincount(pairs[0]) == 1
        alone = pairs[1][single[pairs[0]]]
        folds[np.isin(place, alone)] = -1
    n_filled = len(np.unique(folds[folds >= 0]))
    if n_filled < n_folds:
        raise ArgumentError(
            f"is {n_folds}, but there are rows for {plain.count(n_filled, 'fold')} only: those "
            "with the same inputs stay together, and one of each class is for training",
            "leave it out",
            parameter="folds",
        )
    return folds


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
    """Return the learning curve: training loss, and loss and error of held-out rows."""
    if run.watch is not None and run.watch.points:
        return [
            LearningPoint(point.rows, point.loss, point.watched_error, point.watched_loss)
            for point in run.watch.points
        ]
    losses = getattr(learner, "loss_curve_", [])
    return [LearningPoint((place + 1) * n_rows, float(loss)) for place, loss in enumerate(losses)]


def _check_classes(target: NDArray[Any], n_classes: int, survey: Survey) -> None:
    n_missing = n_classes - len(np.unique(target))
    if n_missing and survey.in_order:
        raise ArgumentError(
            f"leaves {n_missing} of {n_classes} classes without a training row: all of their rows "
            "are among the latest",
            "remove the rows of these classes",
            Remedy("hold out random rows", holdout_last=None),
            parameter="holdout_last",
        )
    if n_missing:
        raise ArgumentError(
            f"all rows of {n_missing} of {n_classes} classes are held out",
            Remedy("hold out no rows", holdout=0),
            "remove the rows of these classes",
        )
