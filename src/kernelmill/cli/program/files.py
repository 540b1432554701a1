"""Files of the commands: outputs, checked before the work begins, models, and checkpoints."""

# ruff: noqa: PLC0415 # workflows are imported when a command runs
from __future__ import annotations

import os
import shlex
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelmill.cli.program.errors import CommandError
from kernelmill.cli.program.signals import exit_on_interrupt, runs_as_program
from kernelmill.errors import KernelmillError, Remedy
from kernelmill.files.atomic_file import (
    FileLock,
    MissingFolderError,
    PathIsFolderError,
    check_folder,
    check_target,
)
from kernelmill.files.outputs import Output, check_outputs
from kernelmill.files.remote_path import STDOUT, RemotePath, parse_path
from kernelmill.io.sources import match_files, with_labels

if TYPE_CHECKING:
    from kernelmill.workflows import TableModel

__all__ = [
    "STDOUT",
    "FitCheckpoint",
    "InputPath",
    "OutputFolder",
    "OutputPath",
    "check_files",
    "default_model_name",
    "explain_wrong_file",
    "load_table_model",
    "make_folder",
]


class InputPath(click.ParamType):  # type: ignore[type-arg] # generic in new versions only
    """The type of options and arguments that name files to read: a path, a pattern or a URL."""

    name = "path"


class OutputFolder(click.ParamType):  # type: ignore[type-arg] # generic in new versions only
    """The type of options that name a folder to write to; see `make_folder`."""

    name = "folder"


class OutputPath(click.ParamType):  # type: ignore[type-arg] # generic in new versions only
    """The type of options that name a file to write; the command gets a checked path.

    Parameters
    ----------
    role : str
        What the file is: "the model".
    remote : bool, default=False
        Whether the path may be a URL of an object store.
    default : function, optional
        Takes the parameters of the command, and returns the name of a file that is written if the
        option is not given.
    others : function, optional
        Takes the path, and returns other files that are written with it.
    """

    name = "path"

    def __init__(
        self,
        role: str,
        *,
        remote: bool = False,
        default: Callable[[Mapping[str, Any]], str] | None = None,
        others: Callable[[Path], list[Output]] = lambda _: [],
    ) -> None:
        self.role = role
        self.remote = remote
        self.default = default
        self.others = others


def check_files(parameters: Iterable[click.Parameter], values: dict[str, Any]) -> None:
    """Check all files that a command reads and writes, so that nothing is lost by it.

    An existing file is overwritten, as compilers do, but no output may be an input or another
    output. Every command asks this before it runs; the types of its parameters say which are files.

    Parameters
    ----------
    parameters : iterable of click.Parameter
        Those of the command.
    values : dict
        Their values; names of outputs are replaced by paths.
    """
    outputs, inputs = _list_stdout(), []
    for parameter in parameters:
        kind, name = parameter.type, parameter.name or ""
        given = values.get(name)
        if isinstance(kind, InputPath):
            names = [given] if isinstance(given, str) else given or ()
            inputs += [each for each in names if each != STDOUT]
        elif isinstance(kind, OutputPath):
            if given is None and kind.default is not None:
                given = kind.default(values)
            if given is None:
                continue
            values[name] = path = _check_output(name, given, remote=kind.remote)
            if given != STDOUT:
                outputs += [Output(path, name, kind.role), *kind.others(path)]
    if not any(isinstance(output.path, RemotePath) for output in outputs):
        # Patterns in URLs are expanded by their store, which is not asked without need.
        inputs = [each for each in inputs if not isinstance(parse_path(each), RemotePath)]
    try:
        if outputs:
            files = [file for each in inputs for file in match_files(each)]
            check_outputs(outputs, with_labels(files))
    except KernelmillError as error:
        raise CommandError(*error.args, parameter=error.message.parameter) from None


def _list_stdout() -> list[Output]:
    """Return the file that stdout is redirected to, if it is one."""
    try:
        descriptor = sys.stdout.fileno()
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return []
        path = os.path.realpath(f"/dev/fd/{descriptor}")
    except (OSError, ValueError):  # of tests, or closed
        return []
    return [Output(path, "stdout", "stdout")]


def _check_output(parameter: str, given: str, *, remote: bool) -> Path:
    """Return the path if it can be written, so that no work is lost at the end."""
    path = parse_path(given)
    if given == STDOUT:
        return path
    if isinstance(path, RemotePath):
        if remote and not path.is_dir():  # raises if no package knows the protocol
            return path
        raise CommandError(
            f"must be a file{'' if remote else ' on this machine'}, got {given!r}",
            "add a file name" if remote else "copy it afterwards",
            parameter=parameter,
        )
    try:
        target = check_target(given, parameter=parameter)
    except PathIsFolderError:
        raise CommandError(
            f"must be a file, got the folder {given!r}",
            Remedy("add a file name", **{parameter: str(path / "NAME")}),
            parameter=parameter,
        ) from None
    except MissingFolderError:
        problem = f"must be in an existing folder, got {given!r}"
        remedy = f"write a space before it and no quotes: --{parameter} {given}"
        if given.startswith("~"):
            problem += ": the shell did not expand ~"
        else:
            folder = (Path(os.path.realpath(path)) if path.is_symlink() else path).parent
            remedy = f"create the folder: mkdir -p {shlex.quote(str(folder))}"
        raise CommandError(problem, remedy, parameter=parameter) from None
    except KernelmillError as error:
        remedies = error.message.remedies
        raise CommandError(error.message.problem, *remedies, parameter=parameter) from None
    try:
        check_folder(target)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CommandError(
            f"must be in a writable folder, got {given!r}: {reason}",
            Remedy("choose another folder", **{parameter: ...}),
            parameter=parameter,
        ) from None
    return path


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
    from kernelmill.files import ModelFileError

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
        path = model.with_name(f"{model.name}.checkpoint")
        # A link stays a link, to a file on another disk for example.
        self.path = Path(os.path.realpath(path)) if path.is_symlink() else path
        self.old = self.path.with_name(f"{self.path.name}.old")
        self._before = self._stamp()
        self._model = model
        self._lock = FileLock(model)

    @classmethod
    def list_outputs(cls, model: Path) -> list[Output]:
        """Return the files that a training run writes or removes, except the model itself."""
        checkpoint = cls(model)
        files = {
            checkpoint.path: "the checkpoint of the model",
            checkpoint.old: "an earlier checkpoint of the model",
            checkpoint._lock.path: "the lock of the model",
            FileLock(checkpoint.path).path: "the lock of its checkpoint",
        }
        return [Output(path, "out", role, model) for path, role in files.items()]

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

    @property
    def is_last(self) -> bool:
        """Whether the checkpoint has the result of a training that has finished."""
        from kernelmill.learners.run import has_last_state

        return has_last_state(self.path)

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
