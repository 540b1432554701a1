"""From exceptions to what a person reads: one line that says what is wrong, one with the move."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from kernelmill.cli.render.option_words import in_words_of_options

__all__ = ["BROKEN_PIPE", "FAILED", "INTERRUPTED", "ErrorReport", "Interrupted", "report_error"]

FAILED = 1
WRONG_USAGE = 2
INTERRUPTED = 130
BROKEN_PIPE = 141  # what shells report for programs that end by SIGPIPE


class Interrupted(click.ClickException):
    """Ctrl-C, with what became of the work."""

    exit_code = INTERRUPTED


@dataclass(frozen=True)
class ErrorReport:
    """What went wrong, as the user is told."""

    kind: str
    message: str
    remedy: str | None
    exit_code: int

    def as_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "error": {
                "kind": self.kind,
                "message": self.message,
                "try": self.remedy,
                "exit_code": self.exit_code,
            }
        }


def report_error(error: BaseException, arguments: Sequence[str] = ()) -> ErrorReport:
    """What to tell about an exception.

    Parameters
    ----------
    error : BaseException
    arguments : sequence of str
        Those of the program, to tell how to run it again.

    Examples
    --------
    >>> report = report_error(ValueError("alpha must be positive, got -1; set alpha=1e-4."))
    >>> report.message
    '--alpha must be positive, got -1'
    >>> report.remedy
    'set --alpha 1e-4'
    """
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return ErrorReport("Interrupted", "interrupted: nothing was written", None, INTERRUPTED)
    kind = type(error).__name__
    if isinstance(error, click.UsageError):
        return ErrorReport("UsageError", *_usage(error), WRONG_USAGE)
    if isinstance(error, click.ClickException):
        message, move = _parted(error.format_message())
        return ErrorReport(kind, message, move, error.exit_code)
    return ErrorReport(kind, *_of_work(error, arguments), FAILED)


def _of_work(error: BaseException, arguments: Sequence[str]) -> tuple[str, str | None]:
    if isinstance(error, OSError):
        return _of_files(error)
    if isinstance(error, MemoryError):
        message = str(error).rstrip(".") or "there is not enough memory"
        return message, "fewer features (--n-components), or end other programs"
    if isinstance(error, ValueError) and str(error):
        return _parted(in_words_of_options(str(error)))
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    again = " ".join(["kernelmill", *map(_quoted, arguments), "--debug"])
    return f"unexpected: {text}", f"{again}  (shows the traceback)"


def near_files(path: str) -> list[str]:
    """Names of files beside `path` that are much like it."""
    wanted = Path(path)
    try:
        names = [beside.name for beside in wanted.parent.iterdir()]
    except OSError:
        return []
    return [str(wanted.parent / name) for name in get_close_matches(wanted.name, names, n=3)]


def _parted(text: str) -> tuple[str, str | None]:
    """The message and the move after its last semicolon, where one is outside of quotes."""
    text = text.strip()
    inside = re.sub(r"'[^'\n]*'|\"[^\"\n]*\"", lambda match: "_" * len(match[0]), text)
    place = inside.rfind("; ")
    if "\n" in text:
        return text, None
    if place < 0 and "? " in inside:  # "Which column? Give --target."
        place = inside.index("? ") + 1
        return text[:place], text[place + 1].lower() + text[place + 2 :].removesuffix(".")
    if place < 0:
        return text.removesuffix("."), None
    move = text[place + 2 :].removesuffix(".")
    return text[:place], re.sub(r"^near names are (.*[^?])$", r"did you mean \1?", move)


def _usage(error: click.UsageError) -> tuple[str, str | None]:
    command = error.ctx.command_path if error.ctx is not None else "kernelmill"
    move = f"{command} --help"
    if isinstance(error, click.NoSuchOption):
        if error.possibilities:
            move = f"did you mean {' or '.join(error.possibilities)}?"
        return f"there is no option {error.option_name}", move
    if isinstance(error, click.MissingParameter) and error.param is not None:
        name = error.param.human_readable_name if error.param.param_type_name == "argument" else ""
        return f"{name or error.param.opts[0]} is missing", move
    message, own_move = _parted(error.format_message())
    return message[:1].lower() + message[1:], own_move or move


def _of_files(error: OSError) -> tuple[str, str | None]:
    if error.errno is None or error.filename is None:
        # The library's own words, or a system's without a file.
        return _parted(in_words_of_options(str(error)) or type(error).__name__)
    name = os.fspath(error.filename)
    name = os.fsdecode(name) if isinstance(name, bytes) else str(name)
    reason = (error.strerror or type(error).__name__).lower()
    moves = {
        errno.EACCES: "change its permissions (chmod), or choose another file",
        errno.ENOSPC: "free some space on the disk, or write to another one",
        errno.EISDIR: "give a file; many files: 'FOLDER/*.csv' in quotes",
        errno.EROFS: "write to another folder",
    }
    move = moves.get(error.errno)
    if error.errno == errno.ENOENT:
        near = near_files(name)
        folder = Path(name).parent
        if near:
            move = f"did you mean {' or '.join(near)}?"
        elif not folder.is_dir():
            move = f"the folder {str(folder)!r} does not exist either: check the path"
        else:
            move = f"look at what is there: ls {_quoted(str(folder))}"
    return f"{name}: {reason}", move


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[\w./%+,:@=-]+", text) else "'" + text.replace("'", "'\\''") + "'"
