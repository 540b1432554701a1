"""Checks before a model is trained: arguments, options of the task, limits of model files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelmill.arguments import (
    check_choice,
    check_integer,
    check_not_negative,
    check_positive,
    check_up_to,
)
from kernelmill.encoding import MISSING
from kernelmill.encoding.targets import TargetReader
from kernelmill.errors import ArgumentError, Doubt, Remedy
from kernelmill.learners import Run
from kernelmill.learners.losses import LOSSES
from kernelmill.maps.stored import UnfittedMapKind
from kernelmill.random import Stream
from kernelmill.storage import ModelFileError, check_record, check_tensor_bytes
from kernelmill.storage.fields import Fields
from kernelmill.workflows.model import STORED_PARTS
from kernelmill.workflows.records import describe_source
from kernelmill.workflows.survey import TASKS, Survey
from kernelmill.workflows.training import Settings, number_class_weights

__all__ = ["check_arguments", "check_classification", "check_storable"]

_KNOWN_PARTS = Fields(  # before the training
    encoder=STORED_PARTS["encoder"],
    inputs=STORED_PARTS["inputs"],
    target=STORED_PARTS["target"],
)
_MAP = Fields(map=UnfittedMapKind())
_SUMMARY_BYTES = 1 << 20  # of its plots and tables


def check_classification(reader: TargetReader, *, loss: str | None, class_weight: Any) -> None:
    """Raise for options of classifiers that a regression, or its classes, do not have."""
    if reader.classes is not None:
        if isinstance(class_weight, str):
            check_choice("class_weight", class_weight, ("balanced",))
        number_class_weights(class_weight, reader.classes)  # raises for unknown labels
        return
    for name, value in {"loss": loss, "class_weight": class_weight}.items():
        if value is not None:
            problem = f"is for classification, got {value!r} for regression"
            raise ArgumentError(problem, Remedy("leave it out", **{name: None}), parameter=name)


def _check_validation(source: Any, validation: Any) -> None:
    """Raise an error if the validation table is the training table."""
    names = (str, os.PathLike)
    are_names = isinstance(source, names) and isinstance(validation, names)
    is_same = validation is source and source is not None
    if is_same or (are_names and validation == source):
        raise ArgumentError(
            f"must not be the training table, got {describe_source(source)} for both",
            Remedy("hold out a fraction of its rows instead", holdout=...),
            parameter="validation",
        )


def check_arguments(
    task: str,
    loss: str | None,
    missing: str,
    holdout: float | None,
    length_scale: Any,
    alpha: float | None,
    epochs: int | None,
    memory: int,
    *,
    folds: int | None,
    n_threads: int | None,
    budget: float,
    tables: tuple[Any, Any],
    switches: Mapping[str, Any],
) -> None:
    """Raise an error for arguments that no table could make valid."""
    _check_validation(*tables)
    for name, value in switches.items():
        if value is not None and not isinstance(value, (bool, np.bool_)):
            raise ArgumentError(f"must be True or False, got {value!r}", parameter=name)
    check_choice("task", task, TASKS)
    check_choice("missing", missing, MISSING)
    if loss is not None:
        check_choice("loss", loss, tuple(LOSSES))
    if holdout is not None:
        check_up_to("holdout", holdout, 0.9)
    if length_scale is not None and np.ndim(length_scale) == 0:
        check_positive("length_scale", length_scale)
    check_positive("budget", budget)
    if alpha is not None:
        check_not_negative("alpha", alpha)
    if epochs is not None:
        check_integer("epochs", epochs, 1)
    check_integer("memory", memory, 0)
    if folds is not None:
        check_integer("folds", folds, 2, 1000)
    if n_threads is not None:
        check_integer("n_threads", n_threads, 1, 1024)


def check_storable(settings: Settings, survey: Survey, run: Run) -> None:
    """Raise an error if no model file could hold the model: its training would be lost.

    Without a checkpoint the model may be meant for this process alone, so that there is a warning.
    """
    try:
        _check_parts(survey)
        outputs = 1 if survey.n_classes is None else survey.n_classes
        check_tensor_bytes(4 * outputs * (settings.n_components or 1))
        made = settings.choice.make(None, settings.n_components or 1, settings.seed, None)
        _MAP.write({"map": (made, Stream.from_seed(settings.seed))}, {})
    except ModelFileError as error:
        problem, remedies = error.message.problem, error.message.remedies
        if run.path is not None:
            raise ModelFileError(f"the model could not be saved: {problem}", *remedies) from None
        run.progress.note(Doubt(f"The model cannot be saved: {problem}", *remedies))


def _check_parts(survey: Survey) -> None:
    """Raise an error if the record of the columns is too long; the summary lists them again."""
    values = {"encoder": survey.encoder, "inputs": survey.inputs, "target": survey.reader}
    in_summary = sum(200 + 6 * (len(each.name) + len(each.detail)) for each in survey.columns)
    check_record(_KNOWN_PARTS.write(values, {}), in_summary + _SUMMARY_BYTES)
