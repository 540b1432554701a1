"""Whether a model of a table can be saved, before it is trained."""

from __future__ import annotations

from kernelmill.errors import Doubt
from kernelmill.learners import Run
from kernelmill.maps.stored import UnfittedMapKind
from kernelmill.random import Stream
from kernelmill.storage import ModelFileError, check_record, check_tensor_bytes
from kernelmill.storage.fields import Fields
from kernelmill.workflows.model import STORED_PARTS
from kernelmill.workflows.survey import Survey
from kernelmill.workflows.training import Settings

__all__ = ["check_storable"]

_KNOWN_PARTS = Fields(  # before the training
    encoder=STORED_PARTS["encoder"],
    inputs=STORED_PARTS["inputs"],
    target=STORED_PARTS["target"],
)
_MAP = Fields(map=UnfittedMapKind())
_SUMMARY_BYTES = 1 << 20  # of its plots and tables


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
