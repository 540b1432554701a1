"""Model files with changed records and tensors under a valid checksum.

A file is rejected with a `ModelFileError`, or it gives a model whose predictions are finite.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import kernelmill
from fuzzing.campaign import Subject
from fuzzing.mutation import change_record, mutate_bytes
from kernelmill.errors import KernelmillError
from kernelmill.files import ModelFileError, read_model_file, write_model_file

__all__ = ["make_subjects"]

_BUDGET = 1 << 26  # bytes: no mutation takes long
_WIDEST = 100_000


def make_subjects() -> list[Subject]:
    """Models of all kinds, with changed content and with changed bytes."""
    folder = Path(__file__).parent.parent / "tests" / "files" / "golden"
    tables = sorted(folder.glob("table-*.kmill"))
    newer = folder / "long_record-2.kmill"  # of format 2
    learners = sorted({*folder.glob("*-1.kmill")} - {*tables})
    subjects = [
        Subject(
            "learner.kmill",
            tuple(path.read_bytes() for path in learners),
            _mutate,
            partial(_judge, {}),
        )
    ]
    for path in tables:
        data = path.with_suffix(".csv").read_bytes()
        seeds = (path.read_bytes(),)
        subjects.append(Subject(path.name, seeds, _mutate, partial(_judge, {".csv": data})))
    damaged = tuple(path.read_bytes() for path in (learners[0], tables[0], newer))
    judge = partial(_judge_damage, damaged)
    return [*subjects, Subject("damaged.kmill", damaged, mutate_bytes, judge)]


def _mutate(content: bytes, rng: np.random.Generator) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.kmill"
        path.write_bytes(content)
        file = read_model_file(path)
        record, tensors = file.record, dict(file.tensors)
        for _ in range(int(rng.choice([1, 1, 2, 4]))):
            if tensors and rng.random() < 0.3:
                name = list(tensors)[int(rng.integers(len(tensors)))]
                tensors[name] = _change_tensor(tensors[name], rng)
            else:
                record = change_record(record, rng)
        try:
            write_model_file(path, kind=file.kind, record=record, tensors=tensors)
        except ModelFileError:  # values that no file holds
            return content
        return path.read_bytes()


def _change_tensor(array: Any, rng: np.random.Generator) -> Any:
    changed = array.copy()
    kind = int(rng.integers(6))
    if kind == 0:
        return changed.ravel()[: max(0, array.size - 1)]
    if kind == 1:
        return changed[..., np.newaxis]
    if kind == 2:
        return np.zeros(array.shape, "float64" if array.dtype != np.float64 else "int64")
    if kind == 3:
        return np.zeros((0, *array.shape[1:]), array.dtype)
    if array.size:
        values = [0, -1, 1, 2**15, *((np.nan, np.inf, 1e30, 1e-30) * (array.dtype.kind == "f"))]
        with np.errstate(all="ignore"):
            value = np.array(values[int(rng.integers(len(values)))]).astype(array.dtype)
        changed.flat[int(rng.integers(array.size))] = value
    return changed


def _judge(files: dict[str, bytes], path: Path) -> str:
    """Load a file and predict with it."""
    try:
        model = kernelmill.load(path, max_memory=_BUDGET)
    except ModelFileError:
        return "rejected"
    with np.errstate(all="ignore"):
        try:
            predicted = _predict(model, files, path)
        except KernelmillError:
            return "loaded, prediction rejected"
    if predicted is not None and predicted.dtype.kind == "f":
        assert not np.isnan(predicted).any(), "predictions are NaN"
    return "accepted"


def _predict(model: Any, files: dict[str, bytes], path: Path) -> Any:
    if files:
        data = path.with_suffix(".csv")
        data.write_bytes(files[".csv"])
        return model.predict(data)
    if model.n_features_in_ > _WIDEST:
        return None
    names = getattr(model, "feature_names_in_", None)
    X: Any = np.random.default_rng(0).uniform(0.1, 1, size=(3, model.n_features_in_))
    if names is not None:
        import pandas as pd  # noqa: PLC0415

        X = pd.DataFrame(X, columns=names)
    return model.predict(X)


def _judge_damage(originals: tuple[bytes, ...], path: Path) -> str:
    """Bytes that are changed without a new checksum are always noticed."""
    try:
        read_model_file(path)
    except ModelFileError:
        return "rejected"
    assert path.read_bytes() in originals, "damage is not noticed"
    return "accepted"
