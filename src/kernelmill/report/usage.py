"""Code examples: commands and Python programs that use or fit a model."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from kernelmill.formatting import clean_text, is_number, plain
from kernelmill.workflows.records import Comparison, FitSummary, Setting

if TYPE_CHECKING:
    from kernelmill.workflows.diagnosis import Diagnosis

__all__ = [
    "explain_fit",
    "fit_lines",
    "usage_lines",
]


def usage_lines(fit: FitSummary | None, task: str, model: str) -> tuple[str, str]:
    """Return the shell commands and the Python program that use the model file `model`."""
    model = clean_text(model)
    shell_option = python_option = ""
    if task == "regression":
        shell_option, python_option = " --std", ", std=True"
    elif fit and fit.loss == "log_loss":
        shell_option, python_option = " --probabilities", ", probabilities=True"
    file = shlex.quote(model)
    shell = "\n".join(
        [
            f"kernelmill predict {file} new.csv --out predictions.csv{shell_option}",
            f"kernelmill evaluate {file} test.csv --report evaluation.html",
            f"kernelmill inspect {file}",
        ]
    )
    python = "\n".join(
        [
            "import kernelmill",
            "",
            f"model = kernelmill.load({model!r})",
            f'model.predict_table("new.csv", out="predictions.csv"{python_option})',
            'print(model.evaluate_table("test.csv").metrics)',
        ]
    )
    return shell, python


def fit_lines(comparison: Comparison | Diagnosis, model: str) -> tuple[str, str]:
    """Return the shell command and the Python program that fit a model to the table of a record.

    There is no command for a table in memory.
    """
    source, target = clean_text(comparison.source), clean_text(comparison.target)
    model = clean_text(model)
    has_target = bool(target)
    # A column's zero-based index is a number, its name a string.
    python_target = f", target={int(target) if target.isdecimal() else target!r}"
    shell = f"kernelmill fit {shlex.quote(source)}"
    shell += f" --target {shlex.quote(target)}" if has_target else ""
    settings = comparison.settings.items()
    shell += "".join(f" {_shell_option(name, value)}" for name, value in settings)
    shell += f" --out {shlex.quote(model)}"
    given = "".join(f", {clean_text(f'{name}={value!r}')}" for name, value in settings)
    table = "table" if comparison.in_memory else repr(source)
    python = "\n".join(
        [
            "import kernelmill",
            "",
            f"model = kernelmill.fit_table({table}{python_target if has_target else ''}{given})",
            f"model.save({model!r})",
        ]
    )
    return "" if comparison.in_memory else shell, python


def explain_fit(comparison: Comparison) -> str:
    """Why the fit is not that of the model with the smallest error; "" if it is."""
    known = [model for model in comparison.models if is_number(model.error)]
    best = min(known, key=lambda model: model.error, default=None)
    ours = [model.error for model in known if model.family in ("features", "nystroem")]
    if best is None or not ours or best.error == min(ours):
        return ""
    form = plain.percent if comparison.error_name == "error" else plain.number
    name = f"the {clean_text(best.name)}" if best.family == "exact" else clean_text(best.name)
    text = (
        f"The smallest error, {form(best.error)}, is that of {name} from scikit-learn. The best "
        f"model of kernelmill has {form(min(ours))}."
    )
    if best.family == "exact":
        text += (
            " With as many features as rows, the map nystroem computes the exact kernel on "
            "these rows."
        )
    return text


_DELIMITERS = {"\t": "tab", " ": "space"}  # those that are hard to type in a shell


def _shell_option(name: str, value: Setting) -> str:
    option = "--" + {"feature_map": "map", "groups": "group"}.get(
        name, clean_text(name).replace("_", "-")
    )
    if name == "day_first":
        return option if value else "--month-first"
    if isinstance(value, bool):
        return option if value else "--no-" + option[2:]
    if isinstance(value, dict):  # of the map
        pairs = [
            f"{key}={each if isinstance(each, str) else json.dumps(each)}"
            for key, each in value.items()
        ]
        return " ".join(f"--map-option {shlex.quote(clean_text(pair))}" for pair in pairs)
    if isinstance(value, list):
        return " ".join(_shell_option(name, each) for each in value)
    text = _DELIMITERS.get(str(value), str(value)) if name == "delimiter" else str(value)
    return f"{option} {shlex.quote(clean_text(text))}"
