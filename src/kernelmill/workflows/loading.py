"""Model files of every kind, read back."""

from __future__ import annotations

from typing import Any

from kernelmill.learners.model_record import learner_from_record
from kernelmill.storage import ModelFileError, errors_of_file, read_model_file
from kernelmill.workflows.model import TABLE_MODEL, TableModel

__all__ = ["load"]


def load(path: Any) -> Any:
    """The model that ``save`` wrote to a file.

    Nothing in the file is executed; a file that is truncated, changed or of another kind raises
    `kernelmill.storage.ModelFileError` and says what is wrong.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    KernelClassifier, KernelRegressor or TableModel
        Whatever was saved.

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
    found = read_model_file(path)
    with errors_of_file(path, "save the model again, or upgrade kernelmill"):
        if found.kind == "learner":
            return learner_from_record(found.record, found.tensors)
        if found.kind == TABLE_MODEL:
            return TableModel.from_record(found.record, found.tensors)
        raise ModelFileError(f"it holds a {found.kind!r}, which this kernelmill does not know")
