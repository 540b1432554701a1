"""Checkpoints of training runs: damaged ones are rejected, crafted ones do no harm.

A file with changed bytes is rejected, or the same model comes out. One with changed arrays under
valid checksums is rejected with a `CheckpointError`, or gives a model with finite weights: nobody
can tell a state that could have been.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzzing.campaign import Subject
from fuzzing.mutation import change_record, mutate_bytes
from kernelmill import Fastfood, KernelClassifier, KernelRegressor, fit_table
from kernelmill.learners import CheckpointError, Run
from kernelmill.runtime.progress import SilentProgress

__all__ = ["make_subjects"]

_Fit = Callable[[Run], Any]


class _Stopped(Exception):
    pass


class _Stopping(SilentProgress):
    """Stops a training run after some rows or passes."""

    def __init__(self, after: int) -> None:
        self._left = after

    def advance(self, amount: int, status: str = "") -> None:
        self._count()

    def end_pass(self, summary: str) -> None:
        self._count()

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _Stopped


def _rows() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3)).astype(np.float32)
    return X, X[:, 0] * X[:, 1] > 0, np.c_[X[:, 0] * X[:, 1], X[:, 2]]


def _map() -> Fastfood:
    return Fastfood(n_components=16, length_scale=1.0, random_state=0)


def _blocks(X: Any, y: Any) -> list[tuple[Any, Any]]:
    return [(X[begin : begin + 30], y[begin : begin + 30]) for begin in range(0, 80, 30)]


def _fit_classifier(settings: dict[str, Any], run: Run) -> Any:
    X, labels, _ = _rows()
    model = KernelClassifier(_map(), random_state=0, **settings)
    if settings.get("validation_fraction"):
        return model.fit_blocks(_blocks(X, labels), run=run)
    return model.fit(X, labels, run=run)


def _fit_regressor(settings: dict[str, Any], run: Run) -> Any:
    X, _, Y = _rows()
    return KernelRegressor(_map(), random_state=0, **settings).fit_blocks(_blocks(X, Y), run=run)


def _tune_and_fit(run: Run) -> Any:
    X, _, Y = _rows()
    table = {name: X[:40, place] for place, name in enumerate("abc")}
    model = fit_table(
        {**table, "y": Y[:40, 0]},
        "y",
        kernel="gaussian",
        feature_map="fastfood",
        n_components=16,
        checkpoint=run.path,
        checkpoint_seconds=0,
        progress=run.progress,
    )
    return model.learner


_FITS: dict[str, tuple[_Fit, tuple[int, ...]]] = {  # with the numbers of steps to stop after
    "sgd": (partial(_fit_classifier, {"epochs": 4, "batch_size": 30}), (2, 7, 1000)),
    "held-out": (
        partial(_fit_classifier, {"epochs": 4, "validation_fraction": 0.2, "patience": 2}),
        (2, 9, 1000),
    ),
    "lbfgs": (partial(_fit_classifier, {"solver": "lbfgs", "epochs": 5}), (1, 3, 1000)),
    "exact": (partial(_fit_regressor, {"alpha": 0.1}), (2, 1000)),
    "cg": (partial(_fit_regressor, {"alpha": 0.1, "solver": "cg"}), (9, 30, 1000)),
    "tuning": (_tune_and_fit, (5, 1000)),
}


def _write_states(fit: _Fit, stops: tuple[int, ...]) -> tuple[tuple[bytes, ...], str]:
    """Return the checkpoints of a training run that is stopped, and a digest of its result."""
    contents = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.checkpoint"
        for stop in stops:
            path.unlink(missing_ok=True)
            with contextlib.suppress(_Stopped):
                model = _run(fit, Run(path, checkpoint_seconds=0, progress=_Stopping(stop)))
            contents.append(path.read_bytes())
    return tuple(contents), _digest(model)


def _run(fit: _Fit, run: Run) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return fit(run)


def _digest(model: Any) -> str:
    arrays: tuple[NDArray[Any], ...] = (model.coef_, model.intercept_)
    return hashlib.sha256(b"".join(each.tobytes() for each in arrays)).hexdigest()


def make_subjects() -> list[Subject]:
    """Checkpoints of all solvers and of tuning, with changed arrays; one with changed bytes."""
    subjects = []
    for name, (fit, stops) in _FITS.items():
        contents, expected = _write_states(fit, stops)
        judge = partial(_judge_crafted, fit)
        subjects.append(Subject(f"{name}.checkpoint", contents, _mutate, judge))
        if name == "sgd":
            judge = partial(_judge_damaged, fit, expected)
            subjects.append(Subject("run.checkpoint", contents, mutate_bytes, judge))
    return subjects


def _mutate(content: bytes, rng: np.random.Generator) -> bytes:
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    for _ in range(int(rng.choice([1, 1, 2, 4]))):
        name = sorted(arrays)[int(rng.integers(len(arrays)))]
        if name in ("header", "tuning") and rng.random() < 0.9:
            try:
                record = change_record(json.loads(arrays[name].tobytes()), rng)
                text = json.dumps(record).encode()
            except ValueError:  # of an earlier change
                continue
            arrays[name] = np.frombuffer(text, np.uint8)
            continue
        kind = int(rng.integers(12))
        if kind == 0 and len(arrays) > 1:
            del arrays[name]
        elif kind == 1:
            arrays[sorted(arrays)[int(rng.integers(len(arrays)))]] = arrays[name]
        else:
            arrays[name] = _change_array(arrays[name], rng)
    written = io.BytesIO()
    np.savez(written, allow_pickle=False, **arrays)
    return written.getvalue()


def _change_array(array: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    other = rng.choice(["float32", "float64", "int64", "uint8", "int32", "bool", "U3", "M8[s]"])
    forms = (
        array.ravel()[: max(0, array.size - 1)],
        array[..., np.newaxis],
        np.zeros(array.shape, other),
        np.zeros((0, *array.shape[1:]), array.dtype),
        np.concatenate([np.atleast_1d(array)] * 2),
        np.ones((0, 1 << 40), array.dtype),  # without bytes
    )
    kind = int(rng.integers(10))
    if kind < len(forms):
        return forms[kind]
    changed = array.copy()
    if array.size:
        values: list[float] = [0, -1, 1, 2, 7, 255, 2**15, 2**31, 2**62]
        if array.dtype.kind == "f":
            values += [np.nan, np.inf, -1e300, 1e300, 1e38, 1e-300, 1e-38, 0.5]
        with np.errstate(all="ignore"):
            value = np.array(values[int(rng.integers(len(values)))]).astype(array.dtype)
        if kind < 8:
            changed.flat[int(rng.integers(array.size))] = value
        else:
            changed[...] = value
    return changed


def _judge_crafted(fit: _Fit, path: Path) -> str:
    try:
        model = _run(fit, Run(path, checkpoint_seconds=1000, progress=SilentProgress()))
    except CheckpointError:
        return "rejected"
    for name in ("coef_", "intercept_", *(["noise_"] if hasattr(model, "noise_") else [])):
        assert np.isfinite(getattr(model, name)).all(), f"{name} is not finite"
    return "accepted"


def _judge_damaged(fit: _Fit, expected: str, path: Path) -> str:
    try:
        model = _run(fit, Run(path, checkpoint_seconds=1000, progress=SilentProgress()))
    except CheckpointError:
        return "rejected"
    assert _digest(model) == expected, "resumed to another model"
    return "accepted"
