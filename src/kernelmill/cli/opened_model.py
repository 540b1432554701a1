"""The model file that a command was given."""

# ruff: noqa: PLC0415 # workflows wait until a command runs
from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from kernelmill.workflows import TableModel

__all__ = ["opened_model"]


def opened_model(path: str) -> TableModel:
    """The model of a file that `kernelmill fit` wrote; others cannot read tables."""
    from kernelmill.workflows import TableModel, load

    model = load(path)
    if not isinstance(model, TableModel):
        raise click.ClickException(
            f"{path} holds a {type(model).__name__} that was saved in Python and knows no columns; "
            f'use kernelmill.load("{path}").predict(X) in Python, or make one by kernelmill fit'
        )
    return model
