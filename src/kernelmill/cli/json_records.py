"""Records as programs get them by ``--json``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelmill.workflows.records import Comparison, Evaluation, FitSummary

__all__ = ["json_of"]

# Thousands of numbers that are there for plots: kernel values, targets and their predictions. The
# bins of a calibration are "predicted", too, but not beside "actual".
_POINTS = (("exact", "estimated"), ("actual", "predicted"))


def json_of(record: FitSummary | Evaluation | Comparison) -> dict[str, Any]:
    """The record as JSON, with null in place of the points of plots.

    Examples
    --------
    >>> from kernelmill.workflows.records import Evaluation
    >>> points = {"actual": [1.0], "predicted": [2.0]}
    >>> values = json_of(Evaluation("regression", "a.csv", 2, {"rmse": 0.5}, 0.1, **points))
    >>> values["metrics"], values["actual"], values["predicted"]
    ({'rmse': 0.5}, None, None)
    """
    values: dict[str, Any] = _without_points(record.as_json())
    return values


def _without_points(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_points(each) for each in value]
    if not isinstance(value, dict):
        return value
    left_out = {name for names in _POINTS if value.keys() >= set(names) for name in names}
    return {
        name: None if name in left_out else _without_points(each) for name, each in value.items()
    }
