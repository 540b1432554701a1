"""Models of tables: prediction, evaluation, features, and their files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernelmill.arguments import check_integer
from kernelmill.encoding.columns import NumericEncoding
from kernelmill.encoding.dates import DateEncoding
from kernelmill.encoding.encoder import ColumnEncoder, Encoder
from kernelmill.encoding.inputs import Inputs, find_weights, open_like_training
from kernelmill.encoding.matrix import ENCODERS
from kernelmill.encoding.single_row import RowEncoder
from kernelmill.encoding.targets import TargetReader
from kernelmill.errors import ArgumentError, ArgumentTypeError, Remedy
from kernelmill.formatting import plain
from kernelmill.io import Table, TableBlock, TableError, open_writer
from kernelmill.io.errors import NotANumberError
from kernelmill.io.memory import make_like
from kernelmill.io.sources import describe_data, is_data
from kernelmill.learners.prediction import predictor_from_record
from kernelmill.learners.run import Run
from kernelmill.maps.costs import MOST_MEMORY, check_cost
from kernelmill.runtime.progress import Progress, SilentProgress, WarningProgress
from kernelmill.storage import (
    ModelFileError,
    errors_of_file,
    read_model_file,
    under_prefix,
    without_prefix,
    write_model_file,
)
from kernelmill.storage.fields import Fields, Nested
from kernelmill.workflows.clusters import connects_cluster, spread
from kernelmill.workflows.evaluation import class_names, has_std
from kernelmill.workflows.prediction import Prediction, TableScores, UnseenCategories
from kernelmill.workflows.records import (
    TABLE_MODEL,
    ColumnRelevance,
    Evaluation,
    FitSummary,
    describe_source,
)

__all__ = ["TableModel", "load", "load_predictor"]

# The parts of a model file besides the learner.
_PARTS = Fields(
    encoder=ENCODERS,
    inputs=Nested(Inputs),
    target=Nested(TargetReader),
    summary=Nested(FitSummary),
)


def load(path: Any, *, max_memory: int = MOST_MEMORY) -> Any:
    """Load a model that ``save`` wrote to a file.

    Nothing in the file is executed. A file that is truncated, changed or of another kind raises
    `kernelmill.storage.ModelFileError`, which reports what is wrong.

    Parameters
    ----------
    path : str or path
    max_memory : int, default=8 GiB
        The bytes that the map of the model may take. A file of a few hundred bytes can ask for any
        amount, and for any time a row: models that need more than 10**10 operations for each row
        are rejected, too, unless more than the default is allowed.

    Returns
    -------
    KernelClassifier, KernelRegressor or TableModel
        What was saved.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import kernelmill
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> model = kernelmill.KernelRegressor(random_state=0).fit(X, X[:, 0] ** 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "squares.kmill"
    ...     model.save(path)
    ...     loaded = kernelmill.load(path)
    >>> bool(np.allclose(loaded.predict(X), model.predict(X), atol=1e-5))
    True
    """
    from kernelmill.learners.loading import learner_from_record  # noqa: PLC0415 # scikit-learn

    return _load(path, learner_from_record, max_memory)


def load_predictor(path: Any, *, max_memory: int = MOST_MEMORY) -> Any:
    """Load a model for prediction alone, without importing scikit-learn, which takes long.

    Parameters
    ----------
    path : str or path
    max_memory : int, default=8 GiB
        The bytes that the map of the model may take. A file of a few hundred bytes can ask for any
        amount, and for any time a row: models that need more than 10**10 operations for each row
        are rejected, too, unless more than the default is allowed.

    Returns
    -------
    ClassPredictor, ValuePredictor or TableModel
        What `load` returns, with the same predictions, bit for bit, except that learners have
        `predict`, `predict_proba` and `decision_function` alone.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import kernelmill
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> model = kernelmill.KernelRegressor(random_state=0).fit(X, X[:, 0] ** 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "squares.kmill"
    ...     model.save(path)
    ...     predictor = kernelmill.load_predictor(path)
    ...     loaded = kernelmill.load(path)
    >>> bool((predictor.predict(X) == loaded.predict(X)).all())
    True
    """
    return _load(path, predictor_from_record, max_memory)


def _load(path: Any, make_learner: Callable[[Any, Any], Any], max_memory: int) -> Any:
    max_memory = check_integer("max_memory", max_memory, 1)
    file = read_model_file(path)
    with errors_of_file(path, "save the model again, or upgrade kernelmill"):
        learner = file.record.get("learner") if file.kind == TABLE_MODEL else file.record
        check_cost(learner.get("map") if isinstance(learner, dict) else None, max_memory)
        if file.kind == "learner":
            return make_learner(file.record, file.tensors)
        if file.kind == TABLE_MODEL:
            return TableModel.from_record(file.record, file.tensors, make_learner)
        raise ModelFileError(f"it holds a {file.kind!r}, which this kernelmill does not know")


@dataclass(frozen=True)
class TableModel:
    r"""Kernel machine for tables, returned by `fit_table` and `kernelmill.load`.

    Attributes
    ----------
    learner : KernelClassifier or KernelRegressor
        Fitted to the encoded rows. The classes of a classifier are the labels of the table.
    encoder : Encoder
        Encodes the columns of a table as rows of numbers.
    inputs : Inputs
        The columns that the model needs.
    reader : TargetReader
        Reads the target.
    summary : FitSummary
        How the model was fitted.
    checkpoint : path or None
        The checkpoint of the training run, which `save` deletes.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import kernelmill
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "rings.csv"
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> rows = (f"{a},{b},{'in' if a * a + b * b < 1 else 'out'}" for a, b in X)
    >>> _ = path.write_text("a,b,place\n" + "\n".join(rows))
    >>> model = kernelmill.fit_table(path, "place", n_components=256)
    >>> model.summary.task, model.summary.held_out.metrics["error"] < 0.1
    ('classification', True)
    >>> model.predict(path)[:3].tolist()
    ['in', 'in', 'in']
    >>> model.save(path.with_suffix(".kmill"))
    >>> kernelmill.load(path.with_suffix(".kmill")).evaluate_table(path).n_rows
    400
    >>> folder.cleanup()
    """

    learner: Any
    encoder: Encoder
    inputs: Inputs
    reader: TargetReader
    summary: FitSummary
    checkpoint: Any = None

    def __repr__(self) -> str:
        """What the model predicts, its error, and how many notes there are."""
        fit = self.summary
        text = f"<TableModel of {fit.target!r}: {fit.task}, {fit.n_components} features"
        metrics = {} if fit.held_out is None else fit.held_out.metrics
        for name in ("error", "rmse"):
            if metrics.get(name) is not None:
                text += f", held-out {name} {plain.number(metrics[name])}"
        notes = f", {plain.count(len(fit.notes), 'note')} in .notes" if fit.notes else ""
        return f"{text}{notes}>"

    @property
    def notes(self) -> list[str]:
        """What was detected in the table, decided, or looks doubtful."""
        return self.summary.notes

    @property
    def column_relevance_(self) -> list[ColumnRelevance]:
        """How much each column of the table counts, the most relevant first.

        The relevance is between 0 and 1. The list is empty if one length scale serves all columns.
        """
        return self.summary.column_relevance

    def save(self, path: Any, *, weights: str = "float32", uncertainty: Any = "auto") -> None:
        """Write the model to a file, atomically, and delete the checkpoint of its training run.

        Parameters
        ----------
        path : str or path
        weights : {"float32", "float16", "float64"}, default="float32"
            The precision of the learner's weights. float16 halves the file.
        uncertainty : bool or "auto", default="auto"
            Whether to store what the standard deviations of a regressor need, 2 D² bytes. "auto"
            stores it for up to 4096 features.
        """
        from kernelmill.learners.saving import learner_record  # noqa: PLC0415 # scikit-learn

        options = {} if self.reader.task == "classification" else {"uncertainty": uncertainty}
        learner, tensors = learner_record(self.learner, weights=weights, **options)
        tensors = under_prefix("learner", tensors)
        parts = {
            "encoder": self.encoder,
            "inputs": self.inputs,
            "target": self.reader,
            "summary": self.summary,
        }
        record = {"learner": learner, **_PARTS.write(parts, tensors)}
        write_model_file(path, kind=TABLE_MODEL, record=record, tensors=tensors)
        Run(self.checkpoint).finish()

    @classmethod
    def from_record(
        cls,
        record: Mapping[str, Any],
        tensors: Mapping[str, NDArray[Any]],
        make_learner: Callable[[Any, Any], Any],
    ) -> Self:
        """The model of a file's record; an inconsistent record raises ModelFileError."""
        try:
            learner = make_learner(record["learner"], without_prefix("learner", tensors))
            parts = _PARTS.read({name: record[name] for name in _PARTS}, tensors)
            model = cls(
                learner, parts["encoder"], parts["inputs"], parts["target"], parts["summary"]
            )
            _check_parts(model)
        except ModelFileError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise ModelFileError(f"its parts do not fit together: {error}") from error
        return model

    def predict(self, source: Any, **table_options: Any) -> NDArray[Any]:
        """Return the predictions for all rows of a table.

        Parameters
        ----------
        source : path, list of paths, glob pattern, or data in memory
        **table_options
            As for `kernelmill.io.open_table`.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        parts = [
            self.reader.restore(self.learner.predict(X))
            for X, _, _ in self._encode(source, table_options)
        ]
        if not parts:
            raise TableError(f"{describe_source(source)} has no rows")
        return np.concatenate(parts)

    def predict_row(self, row: Any) -> Any:
        """Return the prediction for one row, without the cost of a table.

        Parameters
        ----------
        row : mapping
            From the names of the columns to their values; other names are ignored.

        Returns
        -------
        label or float
            The prediction of `predict` for a table with this row, of the same type.

        Examples
        --------
        >>> import kernelmill
        >>> numbers = [i / 10 for i in range(200)]
        >>> table = {"a": numbers, "sign": ["low" if n < 10 else "high" for n in numbers]}
        >>> model = kernelmill.fit_table(table, "sign", tune=False)
        >>> model.predict_row({"a": 2.5})
        'low'
        """
        if not isinstance(row, Mapping):
            raise ArgumentTypeError(
                f"must be a mapping from names of columns to values, got {type(row).__name__}",
                "predict arrays by model.predict",
                parameter="row",
            )
        X = None if self._row_encoder is None else self._row_encoder.encode(row)
        if X is None:
            found = self.predict({name: [value] for name, value in row.items()})[0]
        else:
            found = self.learner.predict_row(X[0])
        return found.item() if isinstance(found, np.generic) else found

    @cached_property
    def _row_encoder(self) -> RowEncoder | None:
        if not isinstance(self.encoder, ColumnEncoder) or self.inputs.missing_codes:
            return None
        return RowEncoder(self.encoder)

    @connects_cluster
    def predict_table(
        self,
        source: Any,
        *,
        out: Any = None,
        probabilities: bool = False,
        std: bool = False,
        keep_columns: bool = False,
        escape_formulas: bool = False,
        cluster: Any = None,
        progress: Progress | None = None,
        **table_options: Any,
    ) -> Any:
        """Predict the rows of a table, as a frame or to a file.

        Parameters
        ----------
        source : path, list of paths, glob pattern, or data in memory
        out : str or path, optional
            A .csv, .tsv, .jsonl, .parquet, .feather, .arrow or .npy file, written atomically, or
            "-" for CSV on the standard output.
        probabilities : bool, default=False
            Add a column for each class.
        std : bool, default=False
            Add a column with the standard deviation of a new target, noise included.
        keep_columns : bool, default=False
            Write the columns of the table before the prediction: inputs as they were read, others
            as in the file, without surrounding spaces. If the table has a column of the same name,
            the predictions are called "prediction (model)".
        cluster : str, distributed.Client or Dask cluster, optional
            As in `fit_table`: workers read and predict, this process writes.
        escape_formulas : bool, default=False
            In CSV and TSV, put an apostrophe before strings that spreadsheets would run as
            formulas: those that begin with =, +, -, @, a tab or a carriage return.
        progress : Progress, optional
        **table_options
            As for `kernelmill.io.open_table`.

        Returns
        -------
        DataFrame, pyarrow.Table, dict, ndarray or int
            With `out`, the number of rows. Otherwise the predictions as a frame of the kind of
            `source`: pandas (with its index) for pandas, polars for polars, a dictionary of arrays
            for a dictionary, a structured array for NumPy arrays, and a `pyarrow.Table` for
            everything else, files too.
        """
        progress = WarningProgress() if progress is None else progress
        self._check_request(probabilities, std)
        table, names, _ = open_like_training(
            source,
            self.inputs,
            table_options,
            self.encoder.n_inputs,
            others_as_strings=keep_columns,
        )
        kept = self._kept_columns(table) if keep_columns else {}
        predicted = self._prediction_columns(probabilities, std)
        names_in_file = {name: _free_name(name, kept) for name in predicted}
        columns = {**kept, **{names_in_file[name]: kind for name, kind in predicted.items()}}
        keeps_data = out is None and is_data(source)  # as they are, not as they were read
        request = Prediction(
            self, names, () if keeps_data else tuple(kept), names_in_file, probabilities, std
        )
        unseen = UnseenCategories()
        pieces = spread(table, cluster, progress)
        if pieces is None:
            progress.start("Predicting", table.n_rows)
            found = request.blocks(table, unseen)
        else:
            found = pieces.predict(request, unseen)
        with _collect_or_write(out, columns, table, escape_formulas) as results:
            for values in found:
                before = results.n_rows
                results.write(values)
                progress.advance(results.n_rows - before)
        for note in unseen.notes(results.n_rows):
            progress.note(note)
        if out is not None:
            return results.n_rows
        if results.n_rows == 0:
            raise TableError(f"{describe_source(source)} has no rows")
        return make_like(source, results.columns(), keep=keep_columns and keeps_data)

    @connects_cluster
    def evaluate_table(
        self,
        source: Any,
        *,
        weights: str | int | bool = True,
        cluster: Any = None,
        progress: Progress | None = None,
        **table_options: Any,
    ) -> Evaluation:
        """Evaluate the predictions for a table that has the target.

        Parameters
        ----------
        source : path, list of paths, glob pattern, or data in memory
        weights : str, int or bool, default=True
            The column with the weights of rows. True stands for the one that the model was fitted
            with, if the table has it, and False for none.
        cluster : str, distributed.Client or Dask cluster, optional
            As in `fit_table`.
        progress : Progress, optional
        **table_options
            As for `kernelmill.io.open_table`.

        Returns
        -------
        Evaluation
        """
        progress = SilentProgress() if progress is None else progress
        table, names, has_target = self._open(source, table_options)
        if not has_target:
            raise TableError(
                f"{table.files[0]} has no target {self.inputs.target!r} to compare with",
                "give a table that has it",
                "predict instead",
            )
        column, weight_notes = self._find_weights(table, weights)
        every = TableScores(self, names, column)
        pieces = spread(table, cluster, progress)
        if pieces is None:
            progress.start("Evaluating", table.n_rows)
            every.read(table, progress)
        else:
            every.merge(pieces.score(self, names, column))
        scores, missing = every.scores, every.missing
        found = [*self.inputs.select_notes(table.notes), *weight_notes]
        found += every.unseen.notes(scores.n_rows + missing)
        if missing:
            found.append(f"Left out {plain.count(missing, 'row')} without a target.")
        for note in found:
            progress.note(note)
        if scores.n_rows == 0:
            raise TableError(f"{describe_source(source)} has no rows with a target")
        return scores.finish(describe_source(source), [str(note) for note in found])

    def transform_table(
        self,
        source: Any,
        *,
        out: Any = None,
        progress: Progress | None = None,
        **table_options: Any,
    ) -> Any:
        """Compute the features of the rows of a table, as an array or to a file.

        Parameters
        ----------
        source : path, list of paths, glob pattern, or data in memory
        out : str or path, optional
            An .npy file, float32, of shape (n_rows, n_components), or another format that
            `predict_table` writes, with a column for each feature. It is written atomically.
        progress : Progress, optional
        **table_options
            As for `kernelmill.io.open_table`.

        Returns
        -------
        ndarray of float32 of shape (n_rows, n_components), DataFrame or int
            With `out`, the number of rows. Otherwise the features: a data frame with their names
            for pandas and polars, else an array.
        """
        progress = WarningProgress() if progress is None else progress
        table, names, _ = self._open(source, table_options)
        progress.start("Transforming", table.n_rows)
        feature_map = self.learner.feature_map_
        columns = dict.fromkeys(feature_map.get_feature_names_out(), np.float32)
        unseen = UnseenCategories()
        with _collect_or_write(out, columns, table) as results:
            for X, block, _ in self._blocks(table, names, unseen=unseen):
                for begin in range(0, block.n_rows, 1024):
                    results.write_matrix(feature_map.transform(X[begin : begin + 1024]))
                progress.advance(block.n_rows)
        for note in unseen.notes(results.n_rows):
            progress.note(note)
        if out is not None:
            return results.n_rows
        rows = results.matrix(len(columns))
        is_frame = is_data(source) and describe_data(source).endswith("Frame")
        return make_like(source, dict(zip(columns, rows.T, strict=True))) if is_frame else rows

    def _find_weights(
        self, table: Table, given: str | int | bool
    ) -> tuple[str | int | None, list[str]]:
        """The column with the weights, and a note on those of the model."""
        if not isinstance(given, bool):
            return find_weights(table, given, self.inputs.target), []
        name = self.summary.weights if given else ""
        if not name:
            return None, []
        try:
            found = find_weights(table, name, self.inputs.target)
        except TableError:
            return None, [
                f"All rows count alike: the table has no column {name!r}, which had the weights in "
                "training."
            ]
        return found, [f"Rows are weighted by column {name!r}, as in training."]

    def _open(
        self, source: Any, options: Mapping[str, Any]
    ) -> tuple[Table, dict[str, str] | None, bool]:
        return open_like_training(source, self.inputs, options, self.encoder.n_inputs)

    def _encode(
        self, source: Any, options: Mapping[str, Any]
    ) -> Iterator[tuple[Any, TableBlock, TableBlock]]:
        table, names, _ = self._open(source, options)
        return self._blocks(table, names)

    def _blocks(
        self,
        table: Table,
        names: dict[str, str] | None,
        *,
        with_target: bool = False,
        unseen: UnseenCategories | None = None,
    ) -> Iterator[tuple[Any, TableBlock, TableBlock]]:
        """Encoded rows, their block, and the block in which the target has its name."""
        for block in _explain_numbers(table.blocks()):
            data = self.inputs.data(block.data, names)
            X = self.encoder.encode(data, file=block.file, first_row=block.row_in_file)
            if unseen is not None:
                unseen.update(self.encoder.count_unseen(data))
            target = block
            if with_target and names is not None and self.inputs.numbered:
                here = block.data.schema.names
                renamed = block.data.rename_columns([str(i) for i in range(len(here))])
                target = replace(block, data=renamed)
            yield X, block, target

    def _check_request(self, probabilities: bool, std: bool) -> None:
        if probabilities and self.reader.task != "classification":
            raise ArgumentError(
                "needs a classifier, got a regressor",
                Remedy("request standard deviations", std=True),
                parameter="probabilities",
            )
        if probabilities and self.learner.loss != "log_loss":
            raise ArgumentError(
                f"needs a model fitted with the loss 'log_loss', got {self.learner.loss!r}",
                Remedy("fit the model again", loss="log_loss"),
                parameter="probabilities",
            )
        if std and self.reader.task != "regression":
            raise ArgumentError(
                "needs a regressor, got a classifier",
                Remedy("request probabilities", probabilities=True),
                parameter="std",
            )
        if std and not has_std(self.learner, np.zeros((1, self.encoder.n_inputs), np.float32)):
            raise ArgumentError(
                "needs a regressor with uncertainties; this model was saved without them or fitted "
                "by conjugate gradients",
                Remedy("fit the model again with at most 4096 features", n_components=4096),
                Remedy("fit it again and save them", uncertainty=True),
                parameter="std",
            )

    def _kept_columns(self, table: Table) -> dict[str, Any]:
        if table.columns is None:
            raise TableError(
                f"{table.files[0]} is a matrix without named columns",
                Remedy("do not keep them", keep_columns=False),
            )
        return {c.name: np.float64 if c.kind == "numeric" else "string" for c in table.columns}

    def _prediction_columns(self, probabilities: bool, std: bool) -> dict[str, Any]:
        if self.reader.task == "regression":
            return {"prediction": np.float64, **({"std": np.float64} if std else {})}
        assert self.reader.classes is not None
        kind = np.dtype(bool) if self.reader.boolean else self.reader.classes.dtype
        columns: dict[str, Any] = {"prediction": "string" if kind.kind == "U" else kind}
        if probabilities:
            names = class_names(self.reader.classes) or []
            columns.update({f"probability of {name}": np.float32 for name in names})
        return columns

    def _predictions(self, X: Any, probabilities: bool, std: bool) -> dict[str, Any]:
        if std:
            mean, deviation = self.learner.predict(X, return_std=True, include_noise=True)
            return {"prediction": mean, "std": deviation}
        if not probabilities:
            return {"prediction": self.reader.restore(self.learner.predict(X))}
        shares = self.learner.predict_proba(X)
        labels = self.learner.classes_[shares.argmax(axis=1)]
        columns = {"prediction": self.reader.restore(labels)}
        for place, name in enumerate(class_names(self.learner.classes_) or []):
            columns[f"probability of {name}"] = shares[:, place]
        return columns


class _Collected:
    """Results in memory, with the methods of a `TableWriter`."""

    def __init__(self) -> None:
        self.n_rows = 0
        self._blocks: list[dict[str, Any]] = []
        self._matrices: list[NDArray[Any]] = []

    def write(self, values: dict[str, Any]) -> None:
        self._blocks.append({name: np.asarray(each) for name, each in values.items()})
        self.n_rows += len(next(iter(values.values())))

    def write_matrix(self, rows: NDArray[Any]) -> None:
        self._matrices.append(rows)
        self.n_rows += len(rows)

    def columns(self) -> dict[str, NDArray[Any]]:
        """All rows of each column."""
        names = self._blocks[0] if self._blocks else ()
        return {name: np.concatenate([each[name] for each in self._blocks]) for name in names}

    def matrix(self, width: int) -> NDArray[Any]:
        """All rows of the matrix."""
        return np.concatenate([np.empty((0, width), np.float32), *self._matrices])


@contextmanager
def _collect_or_write(
    out: Any, columns: Mapping[str, Any], table: Table, escape_formulas: bool = False
) -> Iterator[Any]:
    """A place for results: in memory if `out` is None, else a file."""
    if out is None:
        yield _Collected()
        return
    with open_writer(
        out, columns, inputs=table.files, parameter="out", escape_formulas=escape_formulas
    ) as writer:
        yield writer


def _explain_numbers(blocks: Iterator[TableBlock]) -> Iterator[TableBlock]:
    """The blocks, with a remedy for a model's users if a value is not a number."""
    try:
        yield from blocks
    except NotANumberError as error:
        raise TableError(
            error.message.problem, "correct it: the model was fitted to numbers in this column"
        ) from None


def _free_name(name: str, taken: Mapping[str, Any]) -> str:
    while name in taken:
        name += " (model)"
    return name


def _check_parts(model: TableModel) -> None:
    """Raise ValueError if the parts belong to different models."""
    learner, encoder, inputs, reader = model.learner, model.encoder, model.inputs, model.reader
    if reader.target != inputs.target:
        raise ValueError("the target and the inputs have different targets")
    if learner.n_features_in_ != encoder.n_inputs:
        raise ValueError("the learner and the encoding have different numbers of columns")
    labels = getattr(learner, "classes_", None)
    if (labels is None) != (reader.classes is None):
        raise ValueError("the learner and the target have different tasks")
    if labels is not None and labels.tolist() != np.asarray(reader.classes).tolist():
        raise ValueError("the learner and the target have different classes")
    if isinstance(encoder, ColumnEncoder):
        kinds: dict[type, str] = {NumericEncoding: "numeric", DateEncoding: "date"}
        columns = [(each.name, kinds.get(type(each), "category")) for each in encoder.columns]
        if inputs.columns is None or columns != list(inputs.columns):
            raise ValueError("the encoding and the inputs have different columns")
    elif inputs.columns is not None:
        raise ValueError("the encoding is of a matrix and the inputs are columns")
    elif inputs.n_columns:
        left = inputs.n_columns - len(inputs.dropped) - isinstance(inputs.target, int)
        if left != encoder.n_inputs:
            raise ValueError("the encoding and the inputs have different numbers of columns")
    summary = model.summary
    if (summary.task, summary.target) != (reader.task, str(reader.target)):
        raise ValueError("the summary and the target have different targets or tasks")
    if (summary.n_inputs, summary.n_components) != (encoder.n_inputs, learner.coef_.shape[-1]):
        raise ValueError("the summary and the learner have different numbers of columns")
    if summary.classes != class_names(reader.classes):
        raise ValueError("the summary and the target have different classes")
