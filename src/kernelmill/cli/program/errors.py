"""Conversion of exceptions to exit codes and printed messages: the problem and a remedy.

Errors of kernelmill carry both as data and are rendered with the options of the running command.
Errors of other libraries are printed as they are.
"""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from kernelmill.cli.render.messages import find_parameter, name_parameter, render_message
from kernelmill.errors import KernelmillError, Message, Remedy

__all__ = [
    "BROKEN_PIPE",
    "FAILED",
    "CommandError",
    "ErrorReport",
    "Interrupted",
    "UsageError",
    "report_error",
]

FAILED = 1
WRONG_USAGE = 2
INTERRUPTED = 130
BROKEN_PIPE = 141  # what shells report for programs that end by SIGPIPE


class CommandError(KernelmillError):
    """A command cannot do its work."""

    exit_code = FAILED


class UsageError(CommandError):
    """The command line is wrong."""

    exit_code = WRONG_USAGE


class Interrupted(CommandError):
    """The command was interrupted by Ctrl-C; the message names the files that were kept."""

    exit_code = INTERRUPTED


@dataclass(frozen=True)
class ErrorReport:
    """An error as it is printed."""

    kind: str
    message: str
    remedy: str | None
    exit_code: int

    def as_json(self) -> dict[str, Any]:
        """Return the record that ``--json`` prints."""
        return {
            "error": {
                "kind": self.kind,
                "message": self.message,
                "try": self.remedy,
                "exit_code": self.exit_code,
            }
        }


def report_error(
    error: BaseException,
    command: click.Command | None = None,
    arguments: Sequence[str] = (),
) -> ErrorReport:
    """Return what to print about an exception.

    Parameters
    ----------
    error : BaseException
    command : click.Command, optional
        The command that raised it, whose options messages are rendered with.
    arguments : sequence of str
        The arguments of the program, to suggest how to run it again.

    Examples
    --------
    >>> from kernelmill.errors import ArgumentError
    >>> command = click.Command("fit", params=[click.Option(["--alpha"])])
    >>> error = ArgumentError("must be positive, got -1", parameter="alpha")
    >>> report_error(error, command).message
    '--alpha must be positive, got -1'
    """
    if isinstance(error, KernelmillError):
        exit_code = error.exit_code if isinstance(error, CommandError) else FAILED
        is_option = find_parameter(error.message.parameter or "", command) is not None
        if is_option and not isinstance(error, CommandError):
            exit_code = WRONG_USAGE  # the value of an option, which the library checks
        rendered = render_message(error.message, command)
        return ErrorReport(type(error).__name__, *rendered, exit_code)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return ErrorReport("Interrupted", "interrupted: nothing was written", None, INTERRUPTED)
    if isinstance(error, click.UsageError):
        return ErrorReport("UsageError", *_describe_usage(error), WRONG_USAGE)
    if isinstance(error, OSError):
        described = _describe_file_error(error)
    elif isinstance(error, MemoryError):
        described = _describe_memory_error(error, command)
    elif isinstance(error, ValueError | click.ClickException) and str(error):
        described = str(error).removesuffix("."), None
    else:
        problem = f"unexpected error: {type(error).__name__}: {error}".removesuffix(": ")
        again = shlex.join(["kernelmill", *arguments, "--debug"])
        described = problem, f"{again}  (shows the traceback)"
    return ErrorReport(type(error).__name__, *described, FAILED)


def _describe_usage(error: click.UsageError) -> tuple[str, str]:
    command = error.ctx.command_path if error.ctx is not None else "kernelmill"
    remedy = f"{command} --help"
    if isinstance(error, click.NoSuchOption):
        similar = get_close_matches(error.option_name, error.possibilities or [], n=2, cutoff=0.7)
        if similar:
            remedy = " or ".join(similar)
        return f"there is no option {error.option_name}", remedy
    if isinstance(error, click.MissingParameter) and error.param is not None and error.ctx:
        name = name_parameter(error.param.name or "", error.ctx.command)
        if name == "--out":
            remedy = "--out FILE, or --out - for standard output"
        return f"{name} is missing", remedy
    problem = error.format_message().removesuffix(".")
    problem = problem.removesuffix(" range")  # "is not a valid integer range"
    return problem[:1].lower() + problem[1:], remedy


def _describe_memory_error(
    error: MemoryError, command: click.Command | None
) -> tuple[str, str | None]:
    remedies: list[Remedy | str] = ["close other programs"]
    if find_parameter("n_components", command) is not None:
        remedies.insert(0, Remedy("use fewer features", n_components=...))
    problem = str(error).removesuffix(".") or "there is not enough memory"
    return render_message(Message(problem, *remedies), command)


def _describe_file_error(error: OSError) -> tuple[str, str | None]:
    if error.errno is None or error.filename is None:  # a message of another library, or no file
        return str(error).removesuffix(".") or type(error).__name__, None
    name = os.fsdecode(error.filename) if not isinstance(error.filename, int) else "a file"
    reason = (error.strerror or type(error).__name__).lower()
    remedies = {
        errno.EACCES: "change its permissions (chmod), or choose another file",
        errno.ENOSPC: "free some disk space, or write to another disk",
        errno.EISDIR: "name a file, or use a pattern in quotes for several files: 'FOLDER/*.csv'",
        errno.EROFS: "write to another folder",
    }
    if error.errno == errno.ENOENT:
        return f"{name}: {reason}", _suggest_files(name)
    return f"{name}: {reason}", remedies.get(error.errno)


def _suggest_files(path: str) -> str:
    """Return what to try instead of a file that does not exist."""
    folder = Path(path).parent
    try:
        names = [each.name for each in folder.iterdir()]
    except OSError:
        names = []
    similar = get_close_matches(Path(path).name, names, n=3)
    if similar:
        return " or ".join(str(folder / name) for name in similar)
    if not folder.is_dir():
        return f"check the path: the folder {str(folder)!r} does not exist either"
    return f"list the folder: ls {shlex.quote(str(folder))}"
