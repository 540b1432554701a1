"""Predictions for the blocks of a table, and their scores; in this process or on workers."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.encoding.inputs import read_weights
from kernelmill.errors import ArgumentError, Remedy
from kernelmill.formatting import plain
from kernelmill.io import Table, TableBlock, TableError, open_writer
from kernelmill.io.memory import join_arrays
from kernelmill.io.sources import with_labels
from kernelmill.learners.stored import MAX_UNCERTAIN_FEATURES
from kernelmill.maps.finite import NotFiniteError
from kernelmill.runtime.progress import Progress, SilentProgress
from kernelmill.workflows.evaluation import Scores, class_names, has_std, make_scores

__all__ = [
    "Prediction",
    "ScoreFold",
    "TableScores",
    "UnseenCategories",
    "check_request",
    "collect_or_write",
    "locate_rows",
    "prediction_columns",
    "slim",
]


@contextmanager
def locate_rows(
    block: TableBlock | None, begin: int = 0, *, exactly: bool = True
) -> Iterator[None]:
    """Name the file and the row in errors about features and scores of a block from `begin` on.

    Without a block, there is one row. Without `exactly`, all rows of the block are named, since
    the error is about a selection of them.
    """
    try:
        yield
    except NotFiniteError as error:
        found = error.found
        if block is None:
            problem = f"the {found.what} of the row are not finite"
        else:
            first = block.row_in_file + begin + 1
            rows = f"row {first + found.row}"
            if not exactly:
                rows = f"a row from {first} to {first + block.n_rows - 1}"
            problem = f"{block.file}: the {found.what} of {rows} are not finite"
        if not np.isnan(found.largest):
            problem += f"; its largest encoded value is {found.largest:.3g}"
        raise TableError(problem, "correct the row if a value in it is too large") from None


class UnseenCategories:
    """Counts of categories that did not occur in training, by column."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}

    def update(self, counts: Mapping[str, Counter[str]]) -> None:
        """Add the counts of more rows."""
        for name, more in counts.items():
            self._counts.setdefault(name, Counter()).update(more)

    def merge(self, later: UnseenCategories) -> None:
        """Add the counts of other rows."""
        self.update(later._counts)

    def notes(self, n_rows: int) -> list[str]:
        """Return a note for each column, with the most frequent of its new categories."""
        notes = []
        for name, counts in self._counts.items():
            shown = ", ".join(f"{each!r} ({n})" for each, n in counts.most_common(3))
            more = ", ..." if len(counts) > 3 else ""
            share = f"{plain.count(counts.total())} of {plain.count(n_rows, 'row')}"
            notes.append(
                f"Column {name!r} has categories in {share} that did not occur in training: "
                f"{shown}{more}."
            )
        return notes


def check_request(model: Any, probabilities: bool, std: bool) -> None:
    """Raise ArgumentError if a model has no probabilities or standard deviations."""
    if probabilities and model.reader.task != "classification":
        raise ArgumentError(
            "needs a classifier, got a regressor",
            Remedy("request standard deviations", std=True),
            parameter="probabilities",
        )
    if probabilities and model.learner.loss != "log_loss":
        raise ArgumentError(
            f"needs a model fitted with the loss 'log_loss', got {model.learner.loss!r}",
            Remedy("fit the model again", loss="log_loss"),
            parameter="probabilities",
        )
    if std and model.reader.task != "regression":
        raise ArgumentError(
            "needs a regressor, got a classifier",
            Remedy("request probabilities", probabilities=True),
            parameter="std",
        )
    if std and not has_std(model.learner, np.zeros((1, model.encoder.n_inputs), np.float32)):
        raise ArgumentError(
            "needs a regressor with stored uncertainty; this model was saved without it or "
            "fitted by conjugate gradients",
            Remedy(
                f"fit the model again with at most {MAX_UNCERTAIN_FEATURES} features",
                n_components=MAX_UNCERTAIN_FEATURES,
            ),
            Remedy("fit the model again and store it", uncertainty=True),
            parameter="std",
        )


def prediction_columns(model: Any, probabilities: bool, std: bool) -> dict[str, Any]:
    """Return the names and the types of the columns that a model predicts."""
    if model.reader.task == "regression":
        return {"prediction": np.float64, **({"std": np.float64} if std else {})}
    assert model.reader.classes is not None
    kind = np.dtype(bool) if model.reader.boolean else model.reader.classes.dtype
    columns: dict[str, Any] = {"prediction": "string" if kind.kind == "U" else kind}
    if probabilities:
        names = class_names(model.reader.classes) or []
        columns.update({f"probability of {name}": np.float32 for name in names})
    return columns


@dataclass(frozen=True)
class Prediction:
    """The columns that a model predicts for each block of a table.

    Attributes
    ----------
    model : TableModel
    names : dict or None
        The names of the inputs in the file.
    kept : dict
        Names of columns that are put before the predictions, and the columns of blocks with them.
    renamed : dict
        The names of predicted columns in the result.
    probabilities, std : bool
        As in `TableModel.predict_table`.
    """

    model: Any
    names: dict[str, str] | None
    kept: Mapping[str, str]
    renamed: Mapping[str, str]
    probabilities: bool
    std: bool

    def blocks(self, source: Any, unseen: UnseenCategories) -> Iterator[dict[str, Any]]:
        """Yield the columns of each block of a table, or of a piece of one."""
        for X, block, _ in self.model._blocks(source, self.names, unseen=unseen):
            values = {name: block.data.column(here) for name, here in self.kept.items()}
            with locate_rows(block):
                predicted = self._predict(X)
            for name, column in predicted.items():
                values[self.renamed[name]] = column
            yield values

    def _predict(self, X: Any) -> dict[str, Any]:
        learner, reader = self.model.learner, self.model.reader
        if self.std:
            mean, deviation = learner.predict(X, return_std=True, include_noise=True)
            return {"prediction": mean, "std": deviation}
        if not self.probabilities:
            return {"prediction": reader.restore(learner.predict(X))}
        shares = learner.predict_proba(X)
        labels = learner.classes_[shares.argmax(axis=1)]
        columns = {"prediction": reader.restore(labels)}
        for place, name in enumerate(class_names(learner.classes_) or []):
            columns[f"probability of {name}"] = shares[:, place]
        return columns

    def slim(self) -> Prediction:
        """Return a copy that is as small as possible, to be sent to workers."""
        learner = slim(self.model.learner, std=self.std)
        return replace(self, model=replace(self.model, learner=learner, summary=None))

    def __call__(self, piece: Any) -> tuple[list[dict[str, Any]], UnseenCategories]:
        """Return the columns of all blocks of a piece, and categories that are new in it."""
        unseen = UnseenCategories()
        return list(self.blocks(piece, unseen)), unseen


def slim(learner: Any, *, std: bool) -> Any:
    """Return a fitted estimator reduced to prediction; without `std`, no standard deviations."""
    small = copy.copy(learner)
    for name in ("statistics_",) if std else ("statistics_", "_fit"):
        small.__dict__.pop(name, None)
    return small


class _Collected:
    """Results in memory, with the methods of a `TableWriter`."""

    def __init__(self) -> None:
        self.n_rows = 0
        self._blocks: list[dict[str, Any]] = []
        self._matrices: list[NDArray[Any]] = []

    def write(self, values: dict[str, Any]) -> None:
        self._blocks.append(values)
        self.n_rows += len(next(iter(values.values())))

    def write_matrix(self, rows: NDArray[Any]) -> None:
        self._matrices.append(rows)
        self.n_rows += len(rows)

    def columns(self) -> dict[str, Any]:
        """Return all rows of each column, as an array of NumPy or pyarrow."""
        names = self._blocks[0] if self._blocks else ()
        return {name: join_arrays([each[name] for each in self._blocks]) for name in names}

    def matrix(self, width: int) -> NDArray[Any]:
        """Return all rows of the matrix."""
        return np.concatenate([np.empty((0, width), np.float32), *self._matrices])


@contextmanager
def collect_or_write(
    out: Any, columns: Mapping[str, Any], table: Table, escape_formulas: bool = False
) -> Iterator[Any]:
    """A place for results: in memory if `out` is None, else a file."""
    if out is None:
        yield _Collected()
        return
    with open_writer(
        out,
        columns,
        inputs=with_labels(table.files),
        parameter="out",
        escape_formulas=escape_formulas,
    ) as writer:
        yield writer


class TableScores:
    """Scores of a model on rows of a table that has the target; those of consecutive rows merge.

    Parameters
    ----------
    model : TableModel
    names : dict or None
        The names of the inputs in the file.
    weights : str, int or None
        The column of row weights.
    first_row : int, default=0
        The number of rows before.
    """

    def __init__(
        self,
        model: Any,
        names: dict[str, str] | None,
        weights: str | int | None,
        first_row: int = 0,
    ) -> None:
        self._model = model
        self._names = names
        self._weights = weights
        self.scores: Scores = make_scores(model.learner, model.reader.classes, first_row)
        self.missing = 0
        self.unseen = UnseenCategories()

    def __getstate__(self) -> dict[str, Any]:
        """Return the scores without the model; they can only be merged."""
        return {**self.__dict__, "_model": None}

    def read(self, source: Any, progress: Progress | None = None) -> None:
        """Add the rows of a table, or of another object with the method `blocks`."""
        progress = SilentProgress() if progress is None else progress
        model = self._model
        blocks = model._blocks(source, self._names, with_target=True, unseen=self.unseen)
        for X, block, target in blocks:
            numbers, present = model.reader.numbers(target)
            self.missing += int((~present).sum())
            weight = None
            if self._weights is not None:
                weight = read_weights(block, self._weights)[present]
            with locate_rows(block, exactly=False):
                self.scores.update(X[present] if not present.all() else X, numbers[present], weight)
            progress.advance(block.n_rows)

    def merge(self, later: TableScores) -> None:
        """Add the scores of rows that follow."""
        self.scores.merge(later.scores)
        self.missing += later.missing
        self.unseen.merge(later.unseen)


@dataclass(frozen=True)
class ScoreFold:
    """Scores the pieces of a table on workers; see `kernelmill.scale.Pieces.fold`."""

    model: Any
    names: dict[str, str] | None
    weights: str | int | None
    first_rows: list[int]  # of each piece

    def __call__(self, total: TableScores | None, blocks: Iterable[Any], number: int) -> Any:
        """Return the scores of the pieces before and of this one."""
        found = TableScores(self.model, self.names, self.weights, self.first_rows[number])
        found.read(_Blocks(block for _, block in blocks))
        if total is None:
            return found
        merged = copy.deepcopy(total)
        merged.merge(found)
        return merged


class _Blocks:
    def __init__(self, blocks: Iterator[Any]) -> None:
        self._blocks = blocks

    def blocks(self) -> Iterator[Any]:
        return self._blocks
