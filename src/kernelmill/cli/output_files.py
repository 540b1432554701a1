"""Files that a command is to write, looked at before the work begins."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

import click

__all__ = ["check_output", "default_model_name"]


def check_output(option: str, path: str, inputs: Sequence[str]) -> Path:
    """The path, if it can be written: hours of training should not end at a folder that is not.

    A file that exists is overwritten, as compilers do; an input is not.

    Parameters
    ----------
    option : str
        Such as ``"--out"``, for messages.
    path : str
    inputs : sequence of str
        Files or patterns that the command reads.

    Examples
    --------
    >>> check_output("--out", "model.kmill", ["data.csv"]).name
    'model.kmill'
    """
    out = Path(path)
    if out.is_dir():
        raise click.ClickException(
            f"{option} must be a file, got the folder {path!r}; add a name: {option} {out / 'NAME'}"
        )
    if not out.parent.is_dir() and path.startswith("~"):
        raise click.ClickException(
            f"{option} must lie in an existing folder, got {path!r}: ~ was not expanded; set a "
            f"blank before it, without quotes: {option} {path}"
        )
    if not out.parent.is_dir():
        raise click.ClickException(
            f"{option} must lie in an existing folder, got {path!r}; mkdir -p {out.parent}"
        )
    if not os.access(out.parent, os.W_OK):
        raise click.ClickException(
            f"{option} must lie in a folder that you may write to, got {path!r}; choose another one"
        )
    for given in inputs:
        # Patterns may have wildcards in folders, which Path.glob does not take as a whole.
        for name in glob.glob(given) or [given]:  # noqa: PTH207
            if out.exists() and Path(name).exists() and out.samefile(name):
                raise click.ClickException(
                    f"{option} {path!r} is an input of this command and would be overwritten; "
                    "choose another name"
                )
    return out


def default_model_name(data: str) -> str:
    """What the model of a data file is called, in the current folder.

    Examples
    --------
    >>> default_model_name("folder/covtype.data.gz"), default_model_name("parts-*.csv")
    ('covtype.kmill', 'parts.kmill')
    """
    name = Path(data).name
    while Path(name).suffix in (".gz", ".bz2", ".zst"):
        name = Path(name).stem
    stem = "".join(c for c in Path(name).stem if c not in "*?[]").strip("-_. ")
    return f"{stem or 'model'}.kmill"
