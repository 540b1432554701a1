"""Training on the encoded rows of a table: in memory if they fit, else read again in each pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy  # scipy.sparse is loaded when it is first used
from numpy.typing import NDArray

from kernelmill.encoding.inputs import read_weights
from kernelmill.encoding.targets import format_label
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.io import Table, TableBlock, TableError
from kernelmill.io.row_sample import stack_rows
from kernelmill.learners import KernelClassifier, KernelRegressor, Run, default_epochs
from kernelmill.learners.run import Watch
from kernelmill.learners.solvers.choice import MOST_EXACT_FEATURES
from kernelmill.learners.solvers.sgd import PLAIN_EPOCHS
from kernelmill.runtime.progress import Progress
from kernelmill.workflows.map_choice import MapChoice
from kernelmill.workflows.records import LearningPoint
from kernelmill.workflows.survey import HeldOut, Survey
from kernelmill.workflows.tuning import TunedSettings

__all__ = [
    "SOLVERS",
    "EncodedBlock",
    "EncodedRows",
    "EncodedTable",
    "Settings",
    "TrainingRows",
    "concatenate_rows",
    "count_encoded_bytes",
    "encode_blocks",
    "encode_held_out",
    "encode_table",
    "learning_curve",
    "number_class_weights",
    "small_block_bytes",
    "train",
]

SOLVERS = {
    "classification": ("auto", "sgd", "lbfgs", "exact", "plain_sgd"),
    "regression": ("auto", "exact", "cg"),
}
_SLICE = 1 << 14  # rows of a block, of rows in memory
_MIXED_ROWS = 1 << 15
_MIXED_BYTES = 32 << 20
_SMALL_BLOCK_ROWS = 1 << 11
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

    def needs_several_passes(self, task: str) -> bool:
        """Whether the solver passes over the rows more than once."""
        if task == "regression":
            is_many = (self.n_components or 0) > MOST_EXACT_FEATURES
            return self.solver == "cg" or (self.solver == "auto" and is_many)
        return self.loss != "squared" or self.solver not in ("auto", "exact")

    def make_learner(
        self, task: str, feature_map: Any, alpha: float, epochs: int | None = None
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


class EncodedRows(NamedTuple):
    """Encoded rows with their targets: numbers of classes, or values."""

    X: Any
    target: NDArray[Any]
    weight: NDArray[np.float64] | None = None

    def slices(self) -> Iterator[EncodedRows]:
        """The rows in blocks."""
        for begin in range(0, len(self.target), _SLICE):
            yield self.select(slice(begin, begin + _SLICE))

    def select(self, rows: Any) -> EncodedRows:
        """Some of the rows, by a slice or a mask."""
        weight = None if self.weight is None else self.weight[rows]
        return EncodedRows(self.X[rows], self.target[rows], weight)

    def block(self) -> tuple[Any, ...]:
        """The rows as learners take them."""
        return (self.X, self.target) if self.weight is None else tuple(self)


class EncodedTable(NamedTuple):
    """All rows of a table, encoded."""

    training: EncodedRows
    held_out: EncodedRows


class EncodedBlock(NamedTuple):
    """The rows of a block, encoded.

    Attributes
    ----------
    rows : EncodedRows
    present : ndarray of bool
        Whether each row has a target.
    first_row : int
        The position of the first row in the table.
    """

    rows: EncodedRows
    present: NDArray[np.bool_]
    first_row: int

    def split(self, held_out: HeldOut) -> tuple[EncodedRows, NDArray[np.bool_]]:
        """The rows with a target, and whether each is held out."""
        out = held_out.rows(self.first_row, self.rows.target)
        if self.present.all():
            return self.rows, out
        return self.rows.select(self.present), out[self.present]


def encode_blocks(blocks: Iterable[TableBlock], survey: Survey) -> Iterator[EncodedBlock]:
    """Encode the rows of blocks."""
    for block in blocks:
        target, present = survey.reader.numbers(block)
        X = survey.encoder.encode(
            survey.inputs.data(block.data), file=block.file, first_row=block.row_in_file
        )
        weight = None
        if survey.weights is not None:
            weight = read_weights(block, survey.weights) / survey.mean_weight
        yield EncodedBlock(EncodedRows(X, target, weight), present, block.first_row)


def split_blocks(
    table: Table, survey: Survey, seed: int | None = None
) -> Iterator[tuple[EncodedRows, NDArray[np.bool_]]]:
    """Encode the rows of a table that have a target, and whether each is held out, in blocks."""
    for block in encode_blocks(table.blocks(seed), survey):
        yield block.split(survey.held_out)


def encode_held_out(table: Table, survey: Survey) -> Iterator[EncodedRows]:
    """Encode the held-out rows, block by block."""
    for rows, out in split_blocks(table, survey):
        yield rows.select(out)


def count_encoded_bytes(survey: Survey) -> int:
    """About how much memory the encoded rows of the table take."""
    row_bytes = 4 * survey.encoder.n_inputs
    if scipy.sparse.issparse(survey.sample):
        row_bytes = _n_bytes(survey.sample) // max(1, survey.sample.shape[0]) + 8
    return survey.n_rows * row_bytes


def encode_table(
    table: Table, survey: Survey, most_bytes: int, progress: Progress
) -> EncodedTable | None:
    """Encode all rows; None if they would take more than `most_bytes` of memory."""
    if count_encoded_bytes(survey) > most_bytes:
        return None
    is_sparse = scipy.sparse.issparse(survey.sample)
    progress.start("Encoding", survey.n_rows)
    held_out: list[EncodedRows] = []
    if is_sparse:
        training: list[EncodedRows] = []
        for rows, out in split_blocks(table, survey):
            training.append(rows.select(~out))
            held_out.append(rows.select(out))
            progress.advance(len(out))
        return EncodedTable(concatenate_rows(training), concatenate_rows(held_out))
    # Filled in place: a list of blocks and their concatenation would take twice the memory.
    is_classification = survey.reader.task == "classification"
    all_X = np.empty((survey.n_rows, survey.encoder.n_inputs), np.float32)
    all_targets = np.empty(survey.n_rows, np.int64 if is_classification else float)
    all_weights = None if survey.weights is None else np.empty(survey.n_rows)
    end = 0
    for rows, out in split_blocks(table, survey):
        part = rows.select(~out)
        place = slice(end, end + len(part.target))
        all_X[place], all_targets[place] = part.X, part.target
        if all_weights is not None:
            all_weights[place] = part.weight
        end = place.stop
        held_out.append(rows.select(out))
        progress.advance(len(out))
    every = EncodedRows(all_X, all_targets, all_weights).select(slice(end))
    return EncodedTable(every, concatenate_rows(held_out))


def small_block_bytes(table: Table) -> int:
    """The bytes of blocks of about 2000 rows, of which sixteen are mixed at a time."""
    width = table.n_features if table.columns is None else len(table.columns)
    return int(np.clip(_SMALL_BLOCK_ROWS * 8 * max(1, width or 1), 1 << 16, 8 << 20))


class TrainingRows:
    """Blocks (X, target) of the rows that are not held out, the same in every pass.

    The blocks of the table come in an order that is shuffled once, and several of them are
    concatenated: a sorted file does little harm.

    Parameters
    ----------
    table : Table
    survey : Survey
    seed : int
        Of the order.
    """

    def __init__(self, table: Table, survey: Survey, seed: int) -> None:
        self._table = table
        self._survey = survey
        self._seed = seed

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for rows in self._mix_blocks():
            if len(rows.target):
                yield rows.block()

    def _mix_blocks(self) -> Iterator[EncodedRows]:
        parts: list[EncodedRows] = []
        n_rows = n_bytes = 0
        for rows, out in split_blocks(self._table, self._survey, self._seed):
            parts.append(rows.select(~out))
            n_rows += len(out)
            n_bytes += _n_bytes(rows.X)
            if n_rows >= _MIXED_ROWS or n_bytes >= _MIXED_BYTES:
                yield concatenate_rows(parts)
                parts, n_rows, n_bytes = [], 0, 0
        if parts:
            yield concatenate_rows(parts)


class _Slices:
    """Rows in memory as blocks, in every pass."""

    def __init__(self, rows: EncodedRows) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for rows in self._rows.slices():
            yield rows.block()


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
        blocks = training_rows if encoded is None else _Slices(encoded.training)
        learner = settings.make_learner("regression", feature_map, tuned.alpha)
        if encoded is not None and settings.choice.name == "nystroem":
            return learner.fit(*encoded.training, run=run)  # landmarks are drawn from all rows
        with run.saving_on_interrupt():
            return learner.fit_blocks(blocks, run=run)
    epochs = default_epochs(survey.n_rows) if settings.solver in ("auto", "sgd") else None
    classifier = settings.make_learner("classification", feature_map, tuned.alpha, epochs)
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
    with run.saving_on_interrupt():
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


def concatenate_rows(parts: list[EncodedRows]) -> EncodedRows:
    """One below the other."""
    X = stack_rows([part.X for part in parts])
    weights = [part.weight for part in parts if part.weight is not None]
    target = np.concatenate([part.target for part in parts])
    return EncodedRows(X, target, np.concatenate(weights) if weights else None)


def _n_bytes(X: Any) -> int:
    if isinstance(X, np.ndarray):
        return X.nbytes
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
