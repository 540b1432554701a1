"""Files of the commands: outputs, checked before the work begins, models, and checkpoints."""

# ruff: noqa: PLC0415 # workflows are imported when a command runs
from __future__ import annotations

import glob
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kernelmill.cli.program.errors import CommandError
from kernelmill.cli.program.signals import exit_on_interrupt, runs_as_program
from kernelmill.errors import Remedy
from kernelmill.storage.file_lock import FileLock
from kernelmill.storage.remote_path import STDOUT, RemotePath, parse_path

if TYPE_CHECKING:
    from kernelmill.workflows import TableModel

__all__ = [
    "STDOUT",
    "FitCheckpoint",
    "check_output",
    "default_model_name",
    "explain_wrong_file",
    "load_table_model",
    "make_folder",
]


def make_folder(name: str) -> Path:
    """Create the folder of an option `--out` if it does not exist, and return it."""
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise CommandError(
            f"must be a folder, got the file {name!r}",
            Remedy("choose another name", out=...),
            parameter="out",
        ) from None
    return folder


def check_output(parameter: str, path: str, *inputs: str | list[str], remote: bool = False) -> Path:
    """Return the path if it can be written, so that no work is lost at the end.

    An existing file is overwritten, as compilers do; an input is not.

    Parameters
    ----------
    parameter : str
        The name of the parameter, such as ``"out"``, for messages.
    path : str
    *inputs : str or list of str
        Files or patterns that the command reads.
    remote : bool, default=False
        Whether the path may be a URL of an object store.

    Returns
    -------
    Path
        The path; "-" stands for stdout.

    Examples
    --------
    >>> check_output("out", "model.kmill", "data.csv").name
    'model.kmill'
    """
    out = parse_path(path)
    if path == STDOUT:
        return out
    if isinstance(out, RemotePath):
        if remote and not out.is_dir():  # raises if no package knows the protocol
            return out
        raise CommandError(
            f"must be a file{'' if remote else ' on this machine'}, got {path!r}",
            "add a file name" if remote else "copy it afterwards",
            parameter=parameter,
        )
    if out.is_dir():
        raise CommandError(
            f"must be a file, got the folder {path!r}",
            Remedy("add a file name", **{parameter: str(out / "NAME")}),
            parameter=parameter,
        )
    if not out.parent.is_dir():
        problem = f"must be in an existing folder, got {path!r}"
        if path.startswith("~"):
            raise CommandError(
                f"{problem}: the shell did not expand ~",
                f"write a space before it and no quotes: --{parameter} {path}",
                parameter=parameter,
            )
        remedy = f"create the folder: mkdir -p {shlex.quote(str(out.parent))}"
        raise CommandError(problem, remedy, parameter=parameter)
    if not os.access(out.parent, os.W_OK):
        raise CommandError(
            f"must be in a writable folder, got {path!r}",
            Remedy("choose another folder", **{parameter: ...}),
            parameter=parameter,
        )
    for given in inputs:
        for pattern in [given] if isinstance(given, str) else given:
            # Patterns may have wildcards in folder names, which Path.glob does not accept.
            for name in glob.glob(pattern) or [pattern]:  # noqa: PTH207
                if out.exists() and Path(name).exists() and out.samefile(name):
                    raise CommandError(
                        f"must not be an input of this command, got {path!r}: it would be "
                        "overwritten",
                        Remedy("choose another name", **{parameter: ...}),
                        parameter=parameter,
                    )
    return out


def default_model_name(data: str) -> str:
    """Return the file name of the model of a data file, in the current folder.

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


def load_table_model(path: str, max_memory: int, *, with_estimator: bool = False) -> TableModel:
    """Return the model in a file that `kernelmill fit` wrote; other models cannot read tables.

    Predictions need no estimator, and scikit-learn takes longer to import than they take.
    """
    with exit_on_interrupt():
        from kernelmill.io.sources import ignore_pandas

        if runs_as_program():
            ignore_pandas()  # tables come from files
        from kernelmill.workflows.model.loading import load, load_predictor
        from kernelmill.workflows.model.table_model import TableModel

    with explain_wrong_file(path):
        model = (load if with_estimator else load_predictor)(path, max_memory=max_memory)
    if not isinstance(model, TableModel):
        raise CommandError(
            f"{path} contains an estimator that was saved in Python, which does not know the "
            "columns of a table",
            f'use kernelmill.load("{path}").predict(X) in Python',
            "train a model with kernelmill fit",
        )
    return model


@contextmanager
def explain_wrong_file(path: str) -> Iterator[None]:
    """Suggest `kernelmill fit` if the file that is read inside the block is not a model file."""
    from kernelmill.storage import ModelFileError

    try:
        yield
    except ModelFileError:
        if not Path(path).is_file():
            raise
        with Path(path).open("rb") as file:
            start = file.read(9)
        if start[8:] == b"{":  # the header of a model begins here: a damaged or third-party file
            raise
        raise CommandError(
            f"{path} is not a model file",
            f"train one on a data file: kernelmill fit {shlex.quote(path)} --target COLUMN",
        ) from None


class FitCheckpoint:
    """MODEL.checkpoint, and MODEL.checkpoint.old for one that a new training run does not use.

    A forgotten ``--resume`` must not lose hours of work: an earlier checkpoint is moved aside
    until the new training run has finished.

    Parameters
    ----------
    model : path
        If it is a URL, the checkpoint is in the current folder.
    """

    def __init__(self, model: Path) -> None:
        if isinstance(model, RemotePath):
            model = Path(model.name)
        self.path = model.with_name(f"{model.name}.checkpoint")
        self.old = model.with_name(f"{model.name}.checkpoint.old")
        self._before = self._stamp()
        self._model = model
        self._lock = FileLock(model)

    def lock(self) -> None:
        """Make sure that no other training run writes the same files until `unlock`."""
        if not self._lock.acquire():
            raise CommandError(
                f"another training run is writing {self._model} and its checkpoint",
                Remedy("choose another model file", out=...),
                "wait until it has finished",
            )

    def unlock(self) -> None:
        """Allow other training runs to write the files."""
        self._lock.release()

    def prepare(self, resume: bool) -> str | None:
        """Move an earlier checkpoint aside unless the run resumes; return what to print."""
        for path in (self.path, self.old):
            if path.is_dir():
                raise CommandError(
                    f"training must write the file {path}, but a folder has that name",
                    "rename the folder",
                    Remedy("choose another model file", out=...),
                )
        if resume:
            if self.path.exists():
                return f"resuming from {self.path}"
            return f"there is no checkpoint {self.path}: starting from the beginning"
        if not self.path.exists():
            return None
        self.path.replace(self.old)
        self._before = None
        return (
            "starting from the beginning: the checkpoint of an earlier run is kept as "
            f"{self.old} until this run has finished (to resume it: Ctrl-C, mv "
            f"{shlex.quote(str(self.old))} {shlex.quote(str(self.path))}, --resume)"
        )

    def describe_interrupt(self) -> tuple[str, ...]:
        """Return the problem and the remedies to print after Ctrl-C."""
        if self.path.exists():
            problem = f"interrupted: no model was written, checkpoint kept in {self.path}"
            return problem, "run again with --resume"
        self.restore()
        return ("interrupted before the first checkpoint: nothing was written",)

    def restore(self) -> str | None:
        """Rename an earlier checkpoint back if this run wrote none; return what to print."""
        if self.old.exists() and not self.path.exists():
            self.old.replace(self.path)
            return None
        # A checkpoint that this run did not write may have caused the failure.
        if self._stamp() in (None, self._before):
            return None
        return f"checkpoint kept in {self.path}; run again with --resume"

    def _stamp(self) -> tuple[int, int] | None:
        """Return a value that differs if the file was written."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino

    def discard_old(self) -> None:
        """Remove an earlier checkpoint; the model's `save` has removed that of this run."""
        self.old.unlink(missing_ok=True)
