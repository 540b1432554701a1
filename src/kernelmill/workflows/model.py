"""A model of a table: how its columns become numbers, and what was learnt from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernelmill.encoding.encoder import ColumnEncoder, Encoder
from kernelmill.encoding.inputs import Inputs, opened_like_training, plain_column
from kernelmill.encoding.matrix import MatrixEncoder
from kernelmill.encoding.targets import TargetReader, text_of_label
from kernelmill.io import Table, TableBlock, TableError, open_writer
from kernelmill.io.errors import NotANumberError
from kernelmill.learners.model_record import learner_from_record, learner_record
from kernelmill.runtime.progress import Progress, SilentProgress
from kernelmill.storage import ModelFileError, under_prefix, without_prefix, write_model_file
from kernelmill.workflows.evaluation import gives_std, scores_for
from kernelmill.workflows.records import Evaluation, FitSummary

__all__ = ["TABLE_MODEL", "TableModel", "described_source"]

TABLE_MODEL = "table-model"


@dataclass(frozen=True)
class TableModel:
    r"""A kernel machine for tables; `fit_table` makes it and `kernelmill.load` reads it.

    Attributes
    ----------
    learner : KernelClassifier or KernelRegressor
        Of the encoded rows. A classifier's classes are the labels of the table.
    encoder : Encoder
        Makes rows of numbers of the table's columns.
    inputs : Inputs
        The columns it needs.
    reader : TargetReader
        The target.
    summary : FitSummary
        How the model was made.
    checkpoint : path or None
        The state of its training, which `save` removes.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import kernelmill
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "rings.csv"
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> rows = (f"{a},{b},{'in' if a * a + b * b < 1 else 'out'}" for a, b in X)
    >>> _ = path.write_text("a,b,place\n" + "\n".join(rows))
    >>> model = kernelmill.fit_table(path, "place", n_components=256)
    >>> model.summary.task, model.summary.held_out.metrics["error"] < 0.1
    ('classification', True)
    >>> model.predict(path)[:3].tolist()
    ['in', 'in', 'in']
    >>> model.save(path.with_suffix(".kmill"))
    >>> kernelmill.load(path.with_suffix(".kmill")).evaluate_table(path).n_rows
    1000
    >>> folder.cleanup()
    """

    learner: Any
    encoder: Encoder
    inputs: Inputs
    reader: TargetReader
    summary: FitSummary
    checkpoint: Any = None

    def __repr__(self) -> str:
        """What it predicts, and how well."""
        made = self.summary
        text = f"<TableModel of {made.target!r}: {made.task}, {made.n_components} features"
        found = {} if made.held_out is None else made.held_out.metrics
        for name in ("error", "rmse"):
            if found.get(name) is not None:
                text += f", held-out {name} {found[name]:.4g}"
        return f"{text}>"

    def save(self, path: Any, *, weights: str = "float32", uncertainty: Any = "auto") -> None:
        """Write the model to a file, whole or not at all.

        Parameters
        ----------
        path : str or path
        weights : {"float32", "float16", "float64"}, default="float32"
            The precision of the learner's weights. float16 halves the file.
        uncertainty : bool or "auto", default="auto"
            Whether a regressor keeps what standard deviations need, 2 D² bytes; "auto" does up to
            4096 features.
        """
        options = {} if self.reader.task == "classification" else {"uncertainty": uncertainty}
        learner, tensors = learner_record(self.learner, weights=weights, **options)
        encoder, arrays = self.encoder.to_record()
        record = {
            "learner": learner,
            "encoder": encoder,
            "inputs": self.inputs.to_json(),
            "target": self.reader.to_json(),
            "summary": self.summary.as_json(),
        }
        both = under_prefix("learner", tensors) | under_prefix("encoder", arrays)
        write_model_file(path, kind=TABLE_MODEL, record=record, tensors=both)
        if self.checkpoint is not None:
            Path(self.checkpoint).unlink(missing_ok=True)

    @classmethod
    def from_record(cls, record: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> Self:
        """The model of a file's record; a record that makes no sense raises ModelFileError."""
        try:
            learner = learner_from_record(record["learner"], without_prefix("learner", tensors))
            encoder: Encoder
            if record["encoder"]["kind"] == "columns":
                encoder = ColumnEncoder.from_record(record["encoder"])
            else:
                arrays = without_prefix("encoder", tensors)
                encoder = MatrixEncoder.from_record(record["encoder"], arrays)
            inputs = Inputs.from_json(record["inputs"])
            reader = TargetReader.from_json(record["target"])
            summary = FitSummary.from_json(record["summary"])
            _check_parts(learner, encoder, inputs, reader)
        except ModelFileError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise ModelFileError(f"its parts do not fit together: {error}") from error
        return cls(learner, encoder, inputs, reader, summary)

    def predict(self, source: Any, **table_options: Any) -> NDArray[Any]:
        """The predictions for all rows of a table, in memory.

        Parameters
        ----------
        source : path, list of paths, or glob pattern
        **table_options
            As `kernelmill.io.open_table` takes them.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        parts = [self.learner.predict(X) for X, _, _ in self._encoded(source, table_options)]
        if not parts:
            raise TableError(f"{described_source(source)} has no rows.")
        return np.concatenate(parts)

    def predict_table(
        self,
        source: Any,
        *,
        out: Any,
        probabilities: bool = False,
        std: bool = False,
        keep_columns: bool = False,
        progress: Progress | None = None,
        **table_options: Any,
    ) -> int:
        """Write the predictions for a table to a file, whole or not at all.

        Parameters
        ----------
        source : path, list of paths, or glob pattern
        out : str or path
            A .csv, .tsv, .parquet, .feather, .arrow or .npy file.
        probabilities : bool, default=False
            One more column for each class.
        std : bool, default=False
            One more column: the standard deviation of a new target, noise included.
        keep_columns : bool, default=False
            The table's own columns before the prediction: inputs as they were read, others as
            they are in the file but for spaces around. Where the table has a column of the name,
            predictions are called "prediction (model)".
        progress : Progress, optional
        **table_options
            As `kernelmill.io.open_table` takes them.

        Returns
        -------
        int
            The number of rows.
        """
        progress = SilentProgress() if progress is None else progress
        self._check_wishes(probabilities, std)
        n_rows = 0
        table, names, _ = opened_like_training(
            source,
            self.inputs,
            table_options,
            self.encoder.n_inputs,
            others_as_texts=keep_columns,
        )
        kept = self._kept_columns(table) if keep_columns else {}
        found = self._prediction_columns(probabilities, std)
        called = {name: _free_name(name, kept) for name in found}
        columns = {**kept, **{called[name]: kind for name, kind in found.items()}}
        progress.start("Predicting", table.n_rows)
        with open_writer(out, columns, inputs=table.files) as writer:
            for X, block, _ in self._blocks(table, names):
                written = {name: plain_column(block.data, name) for name in kept}
                predictions = self._predictions(X, probabilities, std)
                written.update({called[name]: each for name, each in predictions.items()})
                writer.write(written)
                n_rows += block.n_rows
                progress.advance(block.n_rows)
        return n_rows

    def evaluate_table(
        self, source: Any, *, progress: Progress | None = None, **table_options: Any
    ) -> Evaluation:
        """How good the predictions for a table are whose target is known.

        Parameters
        ----------
        source : path, list of paths, or glob pattern
        progress : Progress, optional
        **table_options
            As `kernelmill.io.open_table` takes them.

        Returns
        -------
        Evaluation
        """
        progress = SilentProgress() if progress is None else progress
        table, names, has_target = self._opened(source, table_options)
        if not has_target:
            raise TableError(
                f"{table.files[0]} has no target {self.inputs.target!r} to compare with; give a "
                "table that has it, or predict."
            )
        scores = scores_for(self.learner, self.reader.classes)
        missing = 0
        progress.start("Evaluating", table.n_rows)
        for X, block, target in self._blocks(table, names, with_target=True):
            numbers, present = self.reader.numbers(target)
            missing += int((~present).sum())
            scores.update(X[present] if not present.all() else X, numbers[present])
            progress.advance(block.n_rows)
        notes = list(table.notes)
        if missing:
            notes.append(f"{missing} rows without a target are left out.")
        if scores.n_rows == 0:
            raise TableError(f"{described_source(source)} has no rows with a target.")
        return scores.finish(described_source(source), notes)

    def transform_table(
        self, source: Any, *, out: Any, progress: Progress | None = None, **table_options: Any
    ) -> int:
        """Write the features of a table's rows to a file, whole or not at all.

        Parameters
        ----------
        source : path, list of paths, or glob pattern
        out : str or path
            An .npy file, float32, of shape (n_rows, n_components), or one of the other formats that
            `predict_table` writes, with a column for each feature.
        progress : Progress, optional
        **table_options
            As `kernelmill.io.open_table` takes them.

        Returns
        -------
        int
            The number of rows.
        """
        progress = SilentProgress() if progress is None else progress
        table, names, _ = self._opened(source, table_options)
        progress.start("Transforming", table.n_rows)
        n_rows = 0
        feature_map = self.learner.feature_map_
        columns = dict.fromkeys(feature_map.get_feature_names_out(), np.float32)
        with open_writer(out, columns, inputs=table.files) as writer:
            for X, block, _ in self._blocks(table, names):
                for begin in range(0, block.n_rows, 1024):
                    writer.write_matrix(feature_map.transform(X[begin : begin + 1024]))
                n_rows += block.n_rows
                progress.advance(block.n_rows)
        return n_rows

    def _opened(
        self, source: Any, options: Mapping[str, Any]
    ) -> tuple[Table, dict[str, str] | None, bool]:
        return opened_like_training(source, self.inputs, options, self.encoder.n_inputs)

    def _encoded(
        self, source: Any, options: Mapping[str, Any]
    ) -> Iterator[tuple[Any, TableBlock, TableBlock]]:
        table, names, _ = self._opened(source, options)
        return self._blocks(table, names)

    def _blocks(
        self, table: Table, names: dict[str, str] | None, *, with_target: bool = False
    ) -> Iterator[tuple[Any, TableBlock, TableBlock]]:
        """Encoded rows, their block, and the block with the target under its own name."""
        for block in _numbers_as_trained(table.blocks()):
            data = self.inputs.data(block.data, names)
            X = self.encoder.encode(data, file=block.file, first_row=block.first_row)
            target = block
            if with_target and names is not None and self.inputs.numbered:
                here = block.data.schema.names
                renamed = block.data.rename_columns([str(i) for i in range(len(here))])
                target = TableBlock(renamed, block.labels, block.file, block.first_row)
            yield X, block, target

    def _check_wishes(self, probabilities: bool, std: bool) -> None:
        if probabilities and self.reader.task != "classification":
            raise ValueError(
                "probabilities need a classifier, got a regressor; ask for std (--std) instead."
            )
        if probabilities and self.learner.loss != "log_loss":
            raise ValueError(
                f"probabilities need a model fitted with loss 'log_loss', got "
                f"{self.learner.loss!r}; fit again with --loss log_loss."
            )
        if std and self.reader.task != "regression":
            raise ValueError(
                "std needs a regressor, got a classifier; ask for probabilities "
                "(--probabilities) instead."
            )
        if std and not gives_std(self.learner, np.zeros((1, self.encoder.n_inputs), np.float32)):
            raise ValueError(
                "std needs a regressor with uncertainties, and this model was saved without them "
                "or fitted by conjugate gradients; fit again with at most 4096 features."
            )

    def _kept_columns(self, table: Table) -> dict[str, Any]:
        if table.columns is None:
            raise TableError(
                f"{table.files[0]} is a matrix without named columns; leave out keep_columns "
                "(--keep-columns)."
            )
        return {c.name: np.float64 if c.kind == "numeric" else "string" for c in table.columns}

    def _prediction_columns(self, probabilities: bool, std: bool) -> dict[str, Any]:
        if self.reader.task == "regression":
            return {"prediction": np.float64, **({"std": np.float64} if std else {})}
        assert self.reader.classes is not None
        kind = self.reader.classes.dtype
        columns: dict[str, Any] = {"prediction": "string" if kind.kind == "U" else kind}
        if probabilities:
            texts = map(text_of_label, self.reader.classes.tolist())
            columns.update({f"probability of {text}": np.float32 for text in texts})
        return columns

    def _predictions(self, X: Any, probabilities: bool, std: bool) -> dict[str, Any]:
        if std:
            mean, deviation = self.learner.predict(X, return_std=True, include_noise=True)
            return {"prediction": mean, "std": deviation}
        if not probabilities:
            return {"prediction": self.learner.predict(X)}
        shares = self.learner.predict_proba(X)
        columns = {"prediction": self.learner.classes_[shares.argmax(axis=1)]}
        for place, label in enumerate(self.learner.classes_.tolist()):
            columns[f"probability of {text_of_label(label)}"] = shares[:, place]
        return columns


def _numbers_as_trained(blocks: Iterator[TableBlock]) -> Iterator[TableBlock]:
    """The blocks; of a value that is no number, what a model's user can do about it."""
    try:
        yield from blocks
    except NotANumberError as error:
        raise TableError(
            f"{error.what}; correct it: the model was trained on numbers there."
        ) from None


def _free_name(name: str, taken: Mapping[str, Any]) -> str:
    while name in taken:
        name += " (model)"
    return name


def described_source(source: Any) -> str:
    """The files as they were given, in words."""
    if isinstance(source, (list, tuple)):
        return ", ".join(str(each) for each in source)
    return str(source)


def _check_parts(learner: Any, encoder: Encoder, inputs: Inputs, reader: TargetReader) -> None:
    """Refuse parts of different models."""
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
        names = [(each.name, each.to_json()["kind"]) for each in encoder.encodings]
        if inputs.columns is None or names != list(inputs.columns):
            raise ValueError("the encoding and the inputs have different columns")
    elif inputs.columns is not None:
        raise ValueError("the encoding is of a matrix and the inputs are columns")
