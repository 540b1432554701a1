"""Models of tables: prediction, evaluation, features."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.encoding.columns import CategoryEncoding
from kernelmill.encoding.encoder import ColumnEncoder, Encoder
from kernelmill.encoding.inputs import (
    Inputs,
    find_weights,
    note_missing_targets,
    open_like_training,
)
from kernelmill.encoding.matrix import ENCODERS
from kernelmill.encoding.single_row import RowEncoder
from kernelmill.encoding.targets import TargetReader
from kernelmill.errors import ArgumentError, ArgumentTypeError, Message, Remedy
from kernelmill.files import under_prefix, write_model_file
from kernelmill.files.fields import Fields, Nested
from kernelmill.files.outputs import Output, check_outputs
from kernelmill.formatting import plain
from kernelmill.io import Table, TableBlock, TableError
from kernelmill.io.errors import NotANumberError
from kernelmill.io.memory import make_like
from kernelmill.io.sources import describe_data, is_data
from kernelmill.io.text.records import MISSING_MARKERS
from kernelmill.io.writing.table_writer import is_text_file
from kernelmill.learners.run import Run
from kernelmill.runtime.progress import Progress, SilentProgress, WarningProgress
from kernelmill.runtime.threads import limit_blas_threads
from kernelmill.workflows.clusters import spread
from kernelmill.workflows.model.prediction import (
    Prediction,
    TableScores,
    UnseenCategories,
    check_request,
    collect_or_write,
    locate_rows,
    prediction_columns,
)
from kernelmill.workflows.records import (
    TABLE_MODEL,
    ColumnRelevance,
    Evaluation,
    FitSummary,
    describe_source,
)

__all__ = ["STORED_PARTS", "TableModel"]

# The parts of a model file besides the learner.
STORED_PARTS = Fields(
    encoder=ENCODERS,
    inputs=Nested(Inputs),
    target=Nested(TargetReader),
    summary=Nested(FitSummary),
)


_TABLE_OF_ROW = re.compile("^dictionary of columns(, row 1,|:) ?")  # how messages name it


@dataclass(frozen=True)
class TableModel:
    r"""Kernel machine for tables, returned by `fit_table` and `kernelmill.load`.

    Attributes
    ----------
    learner : KernelClassifier or KernelRegressor
        The estimator, fitted to the encoded rows. The classes of a classifier are the labels of the
        table.
    encoder : Encoder
        Encodes the columns of a table as numeric rows.
    inputs : Inputs
        The columns that the model needs.
    reader : TargetReader
        Reads the target.
    summary : FitSummary
        How the model was fitted.
    checkpoint : path or None
        The checkpoint of the training run, which `save` deletes.
    files : tuple of path
        The files that the model was fitted to in this process, which `save` does not overwrite.

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
    >>> model = kernelmill.fit_table(path, "place", n_components=64, kernel="gaussian")
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
    files: tuple[Any, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        # The encoder of single rows has functions, which cannot be pickled, and is made again.
        return {name: value for name, value in vars(self).items() if name != "_row_encoder"}

    def __repr__(self) -> str:
        """Return the target, the error and the number of notes in one line."""
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
        """What was detected in the table, what was decided, and what is doubtful."""
        return self.summary.notes

    @property
    def column_relevance_(self) -> list[ColumnRelevance]:
        """The relevance of each column of the table, most relevant first.

        The relevance is a number from 0 to 1: the spread of the column in units of its length scale
        or, for models with steps or principal components of columns, how much predictions change if
        the values of the column are permuted. The attribute does not exist if all columns have the
        same length scale, as they do without tuning.
        """
        if not self.summary.column_relevance:
            raise AttributeError(
                "column_relevance_ is not available: the model has no length scales of single "
                "columns (tuning keeps them only if they lower the error); pass a length_scale "
                "for each column, or fit with tune=True"
            )
        return self.summary.column_relevance

    def save(self, path: Any, *, weights: str = "float32", uncertainty: Any = "auto") -> None:
        """Write the model to a file, atomically, and delete the checkpoint of its training run.

        Parameters
        ----------
        path : str or path
            None of the files that the model was fitted to in this process.
        weights : {"float32", "float16", "float64"}, default="float32"
            The precision of the stored weights. float16 halves the size of the file.
        uncertainty : bool or "auto", default="auto"
            Whether to store the matrix that a regressor needs for standard deviations, which takes
            2 D² bytes. "auto" stores it for up to 4096 features.
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
        record = {"learner": learner, **STORED_PARTS.write(parts, tensors)}
        outputs = [Output(path, "path", "the model")]
        if self.checkpoint is not None:  # which is deleted
            outputs.insert(0, Output(self.checkpoint, "checkpoint", "the checkpoint of the model"))
        check_outputs(outputs, self.files)
        write_model_file(path, kind=TABLE_MODEL, record=record, tensors=tensors)
        Run(self.checkpoint).finish()

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
        parts = []
        for X, block, _ in self._encode(source, table_options):
            with locate_rows(block):
                parts.append(self.reader.restore(self.learner.predict(X)))
        if not parts:
            raise TableError(f"{describe_source(source)} has no rows", "use a table with rows")
        return np.concatenate(parts)

    def predict_row(self, row: Any, *, probabilities: bool = False, std: bool = False) -> Any:
        """Return the prediction for one row, without the overhead of a table.

        Parameters
        ----------
        row : mapping or pandas Series
            A mapping from column names to values. Names of other columns are ignored.
        probabilities : bool, default=False
            Whether to return the probability of each class as well.
        std : bool, default=False
            Whether to return the standard deviation of a new target, including noise, as well.

        Returns
        -------
        prediction : label or float
            The prediction that `predict` returns for a table with this row, with the same type.
        probabilities : dict of label to float
            Only with `probabilities`.
        std : float
            Only with `std`.

        Examples
        --------
        >>> import kernelmill
        >>> numbers = [i / 10 for i in range(200)]
        >>> table = {"a": numbers, "sign": ["low" if n < 10 else "high" for n in numbers]}
        >>> model = kernelmill.fit_table(table, "sign", tune=False, epochs=20)
        >>> model.predict_row({"a": 2.5})
        'low'
        >>> label, probabilities = model.predict_row({"a": 2.5}, probabilities=True)
        >>> probabilities["low"] > 0.5
        True
        """
        if probabilities or std:
            check_request(self, probabilities, std)
        if type(row).__name__ == "Series" and hasattr(row, "to_dict"):
            row = row.to_dict()
        encoder = self._row_encoder if isinstance(row, Mapping) else None
        X = None if encoder is None else encoder.encode(row)
        if X is None:
            self._check_row(row)
            names = list(row) if self.inputs.numbered else self._used
            table = {name: [row[name]] for name in names}
            try:
                X = next(encoded for encoded, _, _ in self._encode(table, {}))
            except TableError as error:  # of a table of one row
                problem = error.message.problem
                remedies = [r for r in error.message.remedies if "missing_codes" not in r.settings]
                problem = _TABLE_OF_ROW.sub("", problem).replace(" in row 1", "")
                raise TableError(problem, *remedies) from None
        with locate_rows(None):
            return self._predict_encoded(X, probabilities, std)

    def _predict_encoded(self, X: Any, probabilities: bool, std: bool) -> Any:
        if probabilities:
            shares = self.learner.predict_proba(X)[0]
            labels = self.reader.restore(self.learner.classes_)
            found = dict(zip(labels.tolist(), shares.tolist(), strict=True))
            return labels[shares.argmax()].item(), found
        label = self.reader.restore(np.array([self.learner.predict_row(X[0])]))[0].item()
        if not std:
            return label
        return label, self.learner.predict(X, return_std=True, include_noise=True)[1].item()

    def _check_row(self, row: Any) -> None:
        """Raise an error if a row is not a mapping or lacks columns."""
        columns = self.inputs.columns
        if columns is None:
            raise ArgumentTypeError(
                "cannot be a mapping: the model was fitted to a matrix without column names",
                "use model.predict with an array of one row",
                parameter="row",
            )
        if not isinstance(row, Mapping):
            raise ArgumentTypeError(
                f"must be a mapping from column names to values, got {type(row).__name__}",
                f"pass a dictionary such as {{{columns[0][0]!r}: ...}}",
                parameter="row",
            )
        lacking = [name for name in self._used if name not in row]
        if lacking and not self.inputs.numbered:
            raise ArgumentError(
                f"lacks columns that the model needs: {', '.join(map(repr, lacking[:5]))}"
                + (f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""),
                "pass a value for each column, None if it is missing",
                parameter="row",
            )

    @property
    def _used(self) -> list[str]:
        """The inputs, except those that were constant in training."""
        return [n for n, _ in self.inputs.columns or () if n not in self.encoder.unused]

    @cached_property
    def _row_encoder(self) -> RowEncoder | None:
        if not isinstance(self.encoder, ColumnEncoder) or self.inputs.missing_codes:
            return None
        return RowEncoder(self.encoder)

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
        """Predict the rows of a table, and return a frame or write a file.

        Parameters
        ----------
        source : path, list of paths, glob pattern, or data in memory
        out : str or path, optional
            A .csv, .tsv, .jsonl, .parquet, .feather, .arrow or .npy file, written atomically, or
            "-" for CSV on the standard output.
        probabilities : bool, default=False
            Add a column for each class.
        std : bool, default=False
            Add a column with the standard deviation of a new target, including noise.
        keep_columns : bool, default=False
            Write the columns of the table before the predictions, with their types and values. From
            one text file to another, values are copied literally, without surrounding spaces; only
            decimal commas are replaced by points. From a text file to other formats, integers
            remain integers if the file is smaller than 4 MiB. In larger files, integers become
            floats, and columns that the model does not use become strings. Columns with values such
            as 0042, +49170 or 1E5 always become strings. If the table already has a column
            "prediction", the predictions are called "prediction (model)".
        cluster : str, distributed.Client or Dask cluster, optional
            As in `fit_table`. Workers read and predict; this process writes.
        escape_formulas : bool, default=False
            In CSV and TSV, put an apostrophe before strings that spreadsheets would run as
            formulas: those that begin with =, +, -, @, a tab or a carriage return.
        progress : Progress, optional
        **table_options
            As for `kernelmill.io.open_table`.

        Returns
        -------
        DataFrame, pyarrow.Table, dict, ndarray or int
            The number of rows if `out` is given. Otherwise the predictions, in a frame of the same
            kind as `source`: pandas (with its index) for pandas, polars for polars, a dictionary of
            arrays for a dictionary, a structured array for NumPy arrays, and a `pyarrow.Table` for
            everything else, files too.
        """
        progress = WarningProgress() if progress is None else progress
        check_request(self, probabilities, std)
        table, names = self._open(source, table_options, keeps_target=keep_columns)
        keeps_data = out is None and is_data(source)  # as they are, not as they were read
        kept = _find_names(table) if keep_columns else {}
        if keep_columns and not keeps_data:
            table = table.with_originals("text" if is_text_file(out) else "values")
            kept = {name: original.type for name, original in table.originals.items()}
        predicted = prediction_columns(self, probabilities, std)
        names_in_file = {name: _free_name(name, kept) for name in predicted}
        columns = {**kept, **{names_in_file[name]: kind for name, kind in predicted.items()}}
        shown = {name: original.name for name, original in table.originals.items()}
        request = Prediction(self, names, shown, names_in_file, probabilities, std)
        unseen = UnseenCategories()
        with (
            spread(table, cluster, progress) as pieces,
            collect_or_write(out, columns, table, escape_formulas) as results,
            limit_blas_threads(None if std else 1),  # products for standard deviations are large
        ):
            if pieces is None:
                progress.start("Predicting", table.n_rows)
            read = (
                request.blocks(table, unseen) if pieces is None else pieces.predict(request, unseen)
            )
            for values in read:
                before = results.n_rows
                results.write(values)
                progress.advance(results.n_rows - before)
        notes: list[Message | str] = [*self.inputs.compare_signs(table, names)]
        notes += [*self.inputs.compare_decimals(table), *self.inputs.note_absent(table)]
        for note in (*notes, *unseen.notes(results.n_rows)):
            progress.note(note)
        if out is not None:
            return results.n_rows
        if results.n_rows == 0:
            raise TableError(f"{describe_source(source)} has no rows", "use a table with rows")
        return make_like(source, results.columns(), keep=keep_columns and keeps_data)

    def evaluate_table(
        self,
        source: Any,
        *,
        weights: str | int | bool = True,
        cluster: Any = None,
        progress: Progress | None = None,
        **table_options: Any,
    ) -> Evaluation:
        """Evaluate the predictions for a table that contains the target.

        Parameters
        ----------
        source : path, list of paths, glob pattern, or data in memory
        weights : str, int or bool, default=True
            The column of row weights. True means the column that the model was fitted with, if the
            table has it, and False means no weights.
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
        table, names, has_target = self._open_like_training(source, table_options)
        if not has_target:
            raise TableError(
                f"{table.files[0]} has no target {self.inputs.target!r} to compare with",
                "use a table with a target column",
                "predict instead",
            )
        column, weight_notes = self._find_weights(table, weights)
        used = (self.inputs.find_target(table), column)
        table = self.inputs.ignore_others(table, *used, names=names)
        every = TableScores(self, names, column)
        with spread(table, cluster, progress) as pieces:
            if pieces is None:
                progress.start("Evaluating", table.n_rows)
                every.read(table, progress)
            else:
                every.merge(pieces.score(self, names, column))
        scores, missing = every.scores, every.missing
        found = [*self.inputs.select_notes(table.notes), *self.inputs.compare_signs(table, names)]
        found += [*self.inputs.compare_decimals(table), *weight_notes]
        found += self.inputs.note_absent(table)
        found += every.unseen.notes(scores.n_rows + missing)
        if missing:
            found.append(note_missing_targets(missing, table, used[0]))
        if self._has_seen(source, scores.n_rows):
            found.append(
                "The model was trained on rows of this table; expect larger errors on new rows."
            )
        for note in found:
            progress.note(note)
        if scores.n_rows == 0:
            raise TableError(
                f"{describe_source(source)} has no rows with a target", "fill in some targets"
            )
        return scores.finish(describe_source(source), [str(note) for note in found])

    def _has_seen(self, source: Any, n_rows: int) -> bool:
        """Return whether files of the same names with as many rows were fitted."""
        fit = getattr(self, "summary", None)  # none while it is being fitted
        if fit is None or is_data(source) or describe_source(source) != fit.source:
            return False
        return n_rows in (fit.n_rows, fit.n_rows + fit.n_held_out)

    def transform_table(
        self,
        source: Any,
        *,
        out: Any = None,
        progress: Progress | None = None,
        **table_options: Any,
    ) -> Any:
        """Compute the features of the rows of a table, and return an array or write a file.

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
            The number of rows if `out` is given. Otherwise the features: a data frame with feature
            names for pandas and polars, else an array.
        """
        progress = WarningProgress() if progress is None else progress
        table, names = self._open(source, table_options)
        progress.start("Transforming", table.n_rows)
        feature_map = self.learner.feature_map_
        columns = dict.fromkeys(feature_map.get_feature_names_out(), np.float32)
        unseen = UnseenCategories()
        with collect_or_write(out, columns, table) as results:
            for X, block, _ in self._blocks(table, names, unseen=unseen):
                for begin in range(0, block.n_rows, 1024):
                    with locate_rows(block, begin):
                        features = feature_map.transform(X[begin : begin + 1024])
                    results.write_matrix(features)
                progress.advance(block.n_rows)
        for note in (*self.inputs.note_absent(table), *unseen.notes(results.n_rows)):
            progress.note(note)
        if out is not None:
            return results.n_rows
        rows = results.matrix(len(columns))
        is_frame = is_data(source) and describe_data(source).endswith("Frame")
        return make_like(source, dict(zip(columns, rows.T, strict=True))) if is_frame else rows

    def _find_weights(
        self, table: Table, given: str | int | bool
    ) -> tuple[str | int | None, list[str]]:
        """Return the column with the weights, and a note on those of the model."""
        if not isinstance(given, bool):
            return find_weights(table, given, self.inputs.target), []
        name = self.summary.weights if given else ""
        if not name:
            return None, []
        try:
            found = find_weights(table, name, self.inputs.target)
        except TableError:
            return None, [
                f"All rows have the same weight, since the table has no column {name!r}, which "
                "contained the weights in training."
            ]
        return found, [f"Rows are weighted by column {name!r}, as in training."]

    @cached_property
    def _words(self) -> frozenset[str]:
        """Markers of missing values that were categories when the model was fitted."""
        columns = self.encoder.columns if isinstance(self.encoder, ColumnEncoder) else ()
        known = [c for c in columns if isinstance(c, CategoryEncoding)]
        words = {word for each in known for word in (*each.categories, *each.rare)}
        classes = () if self.reader.classes is None else self.reader.classes.tolist()
        return frozenset(words.union(map(str, classes))).intersection(MISSING_MARKERS)

    def _open_like_training(
        self, source: Any, options: Mapping[str, Any]
    ) -> tuple[Table, dict[str, str] | None, bool]:
        encoder = self.encoder
        return open_like_training(
            source, self.inputs, options, encoder.n_inputs, self._words, encoder.unused
        )

    def _open(
        self, source: Any, options: Mapping[str, Any], *, keeps_target: bool = False
    ) -> tuple[Table, dict[str, str] | None]:
        """Return a table to predict, limited to the inputs, and the names of the inputs."""
        table, names, has_target = self._open_like_training(source, options)
        used = [self.inputs.find_target(table)] if has_target and keeps_target else []
        return self.inputs.ignore_others(table, *used, names=names), names

    def _encode(
        self, source: Any, options: Mapping[str, Any]
    ) -> Iterator[tuple[Any, TableBlock, TableBlock]]:
        table, names = self._open(source, options)
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


def _explain_numbers(blocks: Iterator[TableBlock]) -> Iterator[TableBlock]:
    """Yield the blocks; errors about values that are not numbers get a remedy for predictions."""
    try:
        yield from blocks
    except NotANumberError as error:
        codes = [each for each in error.message.remedies if "missing_codes" in each.settings]
        fitted = "correct it: the model was fitted to numbers in this column"
        raise TableError(error.message.problem, fitted, *codes) from None


def _free_name(name: str, taken: Mapping[str, Any]) -> str:
    while name in taken:
        name += " (model)"
    return name


def _find_names(table: Table) -> dict[str, Any]:
    if table.columns is None:
        raise TableError(
            f"{table.files[0]} is a matrix without named columns",
            Remedy("do not keep them", keep_columns=False),
        )
    return dict.fromkeys(column.name for column in table.columns)
