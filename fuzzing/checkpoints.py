"""Checkpoints of training runs: a damaged one is rejected, or the same model comes out."""

from __future__ import annotations

import hashlib
import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from fuzzing.campaign import Subject
from fuzzing.mutation import mutate_bytes
from kernelmill import Fastfood, KernelClassifier
from kernelmill.errors import KernelmillError
from kernelmill.learners.run import Run

__all__ = ["make_subjects"]


def _fit(checkpoint: Path) -> str:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3)).astype(np.float32)
    model = KernelClassifier(
        Fastfood(n_components=16, length_scale=1.0, random_state=0),
        epochs=4,
        checkpoint=checkpoint,
        checkpoint_seconds=0,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, X[:, 0] * X[:, 1] > 0)
    arrays: tuple[Any, ...] = (model.coef_, model.intercept_)
    return hashlib.sha256(b"".join(each.tobytes() for each in arrays)).hexdigest()


def make_subjects() -> list[Subject]:
    """The checkpoint that a training run leaves before its end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.checkpoint"
        with mock.patch.object(Run, "finish"):  # which would delete it
            expected = _fit(path)
        content = path.read_bytes()
    return [Subject("run.checkpoint", (content,), mutate_bytes, partial(_judge, expected))]


def _judge(expected: str, path: Path) -> str:
    try:
        found = _fit(path)
    except KernelmillError:
        return "rejected"
    assert found == expected, "resumed to another model"
    return "accepted"
