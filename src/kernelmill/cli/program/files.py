"""Files that a command is to write, looked at before the work begins."""

# ruff: noqa: PLC0415 # workflows are imported when a command runs
from __future__ import annotations

import contextlib
import glob
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from kernelmill.workflows import TableModel

__all__ = [
    "FitCheckpoint",
    "check_output",
    "default_model_name",
    "explain_wrong_file",
    "load_table_model",
]


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


def load_table_model(path: str) -> TableModel:
    """The model of a file that `kernelmill fit` wrote; others cannot read tables."""
    from kernelmill.workflows import TableModel, load

    with explain_wrong_file(path):
        model = load(path)
    if not isinstance(model, TableModel):
        raise click.ClickException(
            f"{path} holds a {type(model).__name__} that was saved in Python and knows no columns; "
            f'use kernelmill.load("{path}").predict(X) in Python, or make one by kernelmill fit'
        )
    return model


@contextmanager
def explain_wrong_file(path: str) -> Iterator[None]:
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


class FitCheckpoint:
    """MODEL.checkpoint, and MODEL.checkpoint.old for one that a new training did not want.

    Hours of work hang on a forgotten ``--resume``: an earlier checkpoint is moved aside instead of
    removed, until the new training has come to its end.

    Parameters
    ----------
    model : path
    """

    def __init__(self, model: Path) -> None:
        self.path = model.with_name(f"{model.name}.checkpoint")
        self.old = model.with_name(f"{model.name}.checkpoint.old")
        self._before = self._state()

    def prepare(self, resume: bool) -> str | None:
        """Move an earlier checkpoint aside unless it is wanted; what the user should know."""
        for path in (self.path, self.old):
            if path.is_dir():
                raise click.ClickException(
                    f"training writes the file {path}, got a folder of that name; rename it, or "
                    "choose another model file (--out)"
                )
        if resume:
            if self.path.exists():
                return f"going on from {self.path}"
            return f"there is no checkpoint {self.path}: starting from the beginning"
        if not self.path.exists():
            return None
        self.path.replace(self.old)
        self._before = None
        return (
            f"starting anew: the checkpoint of an earlier fit is now {self.old}, until this one is "
            f"done (to go on from it: Ctrl-C, mv {self.old} {self.path}, and --resume)"
        )

    def after_interrupt(self) -> str:
        """What was kept."""
        if self.path.exists():
            return f"interrupted: no model was written, {self._kept()}"
        self.after_failure()
        return "interrupted before the first checkpoint: nothing was written"

    def after_failure(self) -> str | None:
        """Give an earlier checkpoint its name back if this training wrote none; what was kept."""
        if self.old.exists() and not self.path.exists():
            self.old.replace(self.path)
            return None
        # One that was not written by this training may be what it failed at.
        return self._kept() if self._state() not in (None, self._before) else None

    def _kept(self) -> str:
        return f"checkpoint kept in {self.path}; run again with --resume"

    def _state(self) -> tuple[int, int] | None:
        """Differs if the file was written."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino

    def remove(self) -> None:
        """The model is written: nothing to go on from."""
        for path in (self.path, self.old):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
