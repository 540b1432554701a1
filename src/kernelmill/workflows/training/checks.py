"""Checks before a model is trained: arguments, options of the task, limits of model files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelmill.arguments import (
    check_choice,
    check_integer,
    check_not_negative,
    check_positive,
    check_up_to,
)
from kernelmill.encoding import MISSING, TASKS
from kernelmill.encoding.monotone import TRANSFORMS
from kernelmill.encoding.targets import TargetReader
from kernelmill.errors import ArgumentError, Doubt, Remedy
from kernelmill.files import ModelFileError, check_record, check_tensor_bytes
from kernelmill.files.fields import Fields
from kernelmill.learners import Run
from kernelmill.learners.losses import LOSSES
from kernelmill.maps.stored import UnfittedMapKind
from kernelmill.random import Stream
from kernelmill.workflows.model.table_model import STORED_PARTS
from kernelmill.workflows.records import describe_source
from kernelmill.workflows.training.plan import Settings, number_class_weights
from kernelmill.workflows.training.survey import Survey

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


def _check_switch(name: str, value: Any) -> None:
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"must be True or False, got {value!r}", parameter=name)


def _check_length_scale(name: str, value: Any) -> None:
    if np.ndim(value) == 0:
        check_positive(name, value)


_CHECKS: dict[str, Callable[[str, Any], object]] = {
    "transform": lambda name, value: check_choice(name, value, TRANSFORMS),
    **dict.fromkeys(("tune", "column_scales", "refit", "day_first"), _check_switch),
    "task": lambda name, value: check_choice(name, value, TASKS),
    "missing": lambda name, value: check_choice(name, value, MISSING),
    "loss": lambda name, value: check_choice(name, value, tuple(LOSSES)),
    "holdout": lambda name, value: check_up_to(name, value, 0.9),
    "length_scale": _check_length_scale,
    "budget": check_positive,
    "alpha": check_not_negative,
    "epochs": lambda name, value: check_integer(name, value, 1),
    "memory": lambda name, value: check_integer(name, value, 0),
    "folds": lambda name, value: check_integer(name, value, 2, 1000),
    "n_threads": lambda name, value: check_integer(name, value, 1, 1024),
}
_NEVER_NONE = ("transform", "task", "missing", "budget", "memory")


def check_arguments(source: Any, validation: Any, **given: Any) -> None:
    """Raise an error for arguments of `fit_table` that no table could make valid."""
    _check_validation(source, validation)
    for name, check in _CHECKS.items():
        if given[name] is not None or name in _NEVER_NONE:
            check(name, given[name])


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
