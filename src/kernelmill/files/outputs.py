"""Files that are written: none of them may be a file that is read, or another one of them."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from kernelmill.errors import ArgumentError, Remedy
from kernelmill.files.remote_path import RemotePath, parse_path

__all__ = ["Output", "check_outputs", "is_same_file"]


class Output(NamedTuple):
    """A file that is written.

    Attributes
    ----------
    path : str or path
    parameter : str
        The name of the argument that determines the path.
    role : str
        What the file is: "the model".
    given : str or path, optional
        The value of the argument, if the path is derived from it.
    """

    path: str | os.PathLike[str]
    parameter: str
    role: str
    given: str | os.PathLike[str] | None = None


def check_outputs(outputs: Sequence[Output], inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
    """Raise if an output is an input or another output, also if the file does not exist yet.

    Examples
    --------
    >>> from kernelmill.files.outputs import Output, check_outputs
    >>> try:
    ...     check_outputs([Output("./a.csv", "out", "the table")], ["a.csv"])
    ... except ValueError as error:
    ...     print(error)  # doctest: +NORMALIZE_WHITESPACE
    out must not be a file that is read, got './a.csv': it would be overwritten; choose another name
    (out).
    """
    inputs = list(inputs)
    for place, output in enumerate(outputs):
        if any(is_same_file(output.path, each) for each in inputs):
            raise _overwriting_error(output, "a file that is read", ": it would be overwritten")
        for earlier in outputs[:place]:
            if is_same_file(output.path, earlier.path):
                raise _overwriting_error(output, f"{earlier.role} as well")


def _overwriting_error(output: Output, other: str, reason: str = "") -> ArgumentError:
    path, given = os.fspath(output.path), output.given
    problem = f"must not be {other}, got {path!r}{reason}"
    if given is not None:
        problem = f"cannot be {os.fspath(given)!r}: {output.role}, {path!r}, is {other}"
    remedy = Remedy("choose another name", **{output.parameter: ...})
    return ArgumentError(problem, remedy, parameter=output.parameter)


def is_same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Return whether two paths or URLs stand for one file, whether it exists or not.

    Links are followed. Names that differ only in case count as equal as long as neither file
    exists, since that depends on the file system.

    Examples
    --------
    >>> from kernelmill.files.outputs import is_same_file
    >>> is_same_file("a.csv", "./a.csv"), is_same_file("a.csv", "b.csv")
    (True, False)
    """
    first, second = parse_path(one), parse_path(other)
    if isinstance(first, RemotePath) or isinstance(second, RemotePath):
        return (
            isinstance(first, RemotePath)
            and isinstance(second, RemotePath)
            and first.is_same(second)
        )
    try:
        return first.samefile(second)
    except (OSError, ValueError):  # at least one does not exist
        pass
    first, second = (Path(os.path.realpath(each)) for each in (first, second))
    if first == second:
        return True
    try:
        are_together = first.parent.samefile(second.parent)
    except (OSError, ValueError):
        are_together = first.parent == second.parent
    if not are_together or first.name == second.name:
        return are_together
    is_new = not (os.path.exists(first) or os.path.exists(second))  # noqa: PTH110 # never raises
    return is_new and _fold(first.name) == _fold(second.name)


def _fold(name: str) -> str:
    """Return a name as file systems that ignore case compare it."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
