"""The model file that a command was given."""

# ruff: noqa: PLC0415 # workflows wait until a command runs
from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from kernelmill.workflows import TableModel

__all__ = ["opened_model", "telling_data_from_models"]


def opened_model(path: str) -> TableModel:
    """The model of a file that `kernelmill fit` wrote; others cannot read tables."""
    from kernelmill.workflows import TableModel, load

    with telling_data_from_models(path):
        model = load(path)
    if not isinstance(model, TableModel):
        raise click.ClickException(
            f"{path} holds a {type(model).__name__} that was saved in Python and knows no columns; "
            f'use kernelmill.load("{path}").predict(X) in Python, or make one by kernelmill fit'
        )
    return model


@contextmanager
def telling_data_from_models(path: str) -> Iterator[None]:
    """Name `kernelmill fit` where the file that is read inside is no model at all."""
    from kernelmill.storage import ModelFileError

    try:
        yield
    except ModelFileError:
        if not Path(path).is_file():
            raise
        with Path(path).open("rb") as file:
            start = file.read(9)
        if start[8:] == b"{":  # where the header of a model begins: one that is damaged or foreign
            raise
        raise click.ClickException(
            f"{path} is not a model; to make one of a data file: kernelmill fit "
            f"{shlex.quote(path)} --target COLUMN"
        ) from None
