"""Models from files: `load` with scikit-learn, `load_predictor` without it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelmill.arguments import check_integer
from kernelmill.encoding.columns import NumericEncoding
from kernelmill.encoding.dates import DateEncoding
from kernelmill.encoding.encoder import ColumnEncoder
from kernelmill.files import ModelFileError, errors_of_file, read_model_file, without_prefix
from kernelmill.learners.prediction import predictor_from_record
from kernelmill.maps.base import MAX_MEMORY
from kernelmill.maps.stored import check_cost
from kernelmill.workflows.evaluation import class_names
from kernelmill.workflows.model.table_model import STORED_PARTS, TableModel
from kernelmill.workflows.records import TABLE_MODEL

__all__ = ["load", "load_predictor"]


def load(path: Any, *, max_memory: int = MAX_MEMORY) -> Any:
    """Load a model that ``save`` wrote to a file.

    Nothing in the file is executed. A file that is truncated, changed or of another kind raises
    `kernelmill.files.ModelFileError`, which reports what is wrong.

    Parameters
    ----------
    path : str or path
    max_memory : int, default=8 GiB
        The memory limit of the model's map in bytes: a file of a few hundred bytes can request any
        amount. Models that need more than 10**10 operations per row are also rejected, unless the
        limit is above the default.

    Returns
    -------
    KernelClassifier, KernelRegressor or TableModel
        The saved model.

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
    ...     predictor = kernelmill.load_predictor(path)
    >>> bool(np.allclose(loaded.predict(X), model.predict(X), atol=1e-5))
    True
    >>> bool((predictor.predict(X) == loaded.predict(X)).all())
    True
    """
    from kernelmill.learners.loading import learner_from_record  # noqa: PLC0415 # scikit-learn

    return _load(path, learner_from_record, max_memory)


def load_predictor(path: Any, *, max_memory: int = MAX_MEMORY) -> Any:
    """Load a model for prediction only, without importing scikit-learn.

    Parameters
    ----------
    path, max_memory
        As for `load`.

    Returns
    -------
    ClassPredictor, ValuePredictor or TableModel
        A model whose predictions are bit-identical to those of `load`. Predictors that are not a
        `TableModel` have only the methods `predict`, `predict_proba` and `decision_function`.

    See Also
    --------
    load : Load the complete model; its example also loads a predictor.
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
            return _table_model(file.record, file.tensors, make_learner)
        raise ModelFileError(f"it holds a {file.kind!r}, which this kernelmill does not know")


def _table_model(
    record: Mapping[str, Any],
    tensors: Mapping[str, NDArray[Any]],
    make_learner: Callable[[Any, Any], Any],
) -> TableModel:
    """Return the model of a file's record; an inconsistent record raises ModelFileError."""
    try:
        learner = make_learner(record["learner"], without_prefix("learner", tensors))
        others = {name: each for name, each in tensors.items() if not name.startswith("learner/")}
        fields = {name: value for name, value in record.items() if name != "learner"}
        parts = STORED_PARTS.read(fields, others)
        model = TableModel(
            learner, parts["encoder"], parts["inputs"], parts["target"], parts["summary"]
        )
        _check_parts(model)
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise ModelFileError(f"its parts are inconsistent: {error}") from error
    return model


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
