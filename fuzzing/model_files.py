"""Model files with changed records and tensors under a valid checksum.

A file is rejected with a `ModelFileError`, or it gives a model whose predictions are finite, or
errors.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import kernelmill
from fuzzing.campaign import Subject
from fuzzing.mutation import change_numbers, change_record, mutate_bytes
from kernelmill import KernelRegressor
from kernelmill.errors import KernelmillError
from kernelmill.files import ModelFileError, read_model_file, write_model_file

__all__ = ["make_subjects"]

_BUDGET = 1 << 26  # bytes: no mutation takes long
_WIDEST = 100_000
_EXTREMES = (1e300, -1e300, 1e154, 1e38, 1e-38, 1e-154, 1e-308, 5e-324, 1e18, 0.0)


def make_subjects() -> list[Subject]:
    """Models of all kinds, with changed content, with extreme numbers and with changed bytes."""
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
        ),
        Subject(
            "extreme.kmill",
            tuple(path.read_bytes() for path in learners),
            _make_extreme,
            partial(_judge, {}),
        ),
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


def _make_extreme(content: bytes, rng: np.random.Generator) -> bytes:
    """Change some numbers to such that are valid where they stand, but hardly ever occur."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.kmill"
        path.write_bytes(content)
        file = read_model_file(path)
        record, tensors = file.record, dict(file.tensors)
        names = [name for name, array in tensors.items() if array.dtype.kind == "f" and array.size]
        for _ in range(int(rng.choice([1, 1, 2, 3]))):
            if rng.random() < 0.4:
                record = change_numbers(record, _EXTREMES, rng)
                continue
            name = names[int(rng.integers(len(names)))]
            array = tensors[name].copy()
            largest = float(np.finfo(array.dtype).max)
            value = (*_EXTREMES, largest, -largest)[int(rng.integers(len(_EXTREMES) + 2))]
            value = array.dtype.type(np.clip(value, -largest, largest))
            if rng.random() < 0.5:
                array.flat[int(rng.integers(array.size))] = value
            else:
                array[...] = value
            tensors[name] = array
        try:
            write_model_file(path, kind=file.kind, record=record, tensors=tensors)
        except ModelFileError:
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
        with np.errstate(all="ignore"):
            model = kernelmill.load(path, max_memory=_BUDGET)
    except ModelFileError:
        return "rejected"
    verdict = "accepted"
    for predict in _predictions(model, files, path):
        with np.errstate(all="ignore"):
            try:
                predicted = predict()
            except KernelmillError:
                verdict = "loaded, prediction rejected"
                continue
        for part in predicted if isinstance(predicted, tuple) else (predicted,):
            assert part.dtype.kind != "f" or np.isfinite(part).all(), "predictions are not finite"
    return verdict


def _predictions(model: Any, files: dict[str, bytes], path: Path) -> Iterator[Callable[[], Any]]:
    """Yield functions that predict in all ways that a model has."""
    if files:
        data = path.with_suffix(".csv")
        data.write_bytes(files[".csv"])
        yield partial(model.predict, data)
        return
    if model.n_features_in_ > _WIDEST:
        return
    names = getattr(model, "feature_names_in_", None)
    for dtype, factor in ((np.float64, 1.0), (np.float32, 1.0), (np.float32, 1e20)):
        numbers = np.random.default_rng(0).uniform(0.1, 1, size=(3, model.n_features_in_))
        X: Any = (numbers * factor).astype(dtype)
        yield partial(model.feature_map_.transform, X)
        if names is not None:
            import pandas as pd  # noqa: PLC0415

            X = pd.DataFrame(X, columns=names)
        yield partial(model.predict, X)
        if isinstance(model, KernelRegressor):
            yield partial(model.predict, X, return_std=True, include_noise=True)
        else:
            yield partial(model.decision_function, X)
            if model.loss == "log_loss":
                yield partial(model.predict_proba, X)


def _judge_damage(originals: tuple[bytes, ...], path: Path) -> str:
    """Bytes that are changed without a new checksum are always noticed."""
    try:
        read_model_file(path)
    except ModelFileError:
        return "rejected"
    assert path.read_bytes() in originals, "damage is not noticed"
    return "accepted"
