"""Errors as data: a problem, the parameter it is about, and remedies.

The library raises them and every interface renders them in its own terms. Python names keyword
arguments (``drop=['id']``), the command line names options (``--drop id``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "Doubt",
    "KernelmillError",
    "Message",
    "Remedy",
    "Rendered",
    "escape_controls",
]

# Control characters except the line feed, surrogates, text direction marks and overrides, and line
# separators other than the line feed.
_CONTROLS = re.compile(
    "[\0-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def escape_controls(text: str) -> str:
    r"""Return the text with control characters and direction marks escaped, such as \x1b.

    Terminals interpret these characters: a column name could clear the screen. Line feeds stay.

    Examples
    --------
    >>> from kernelmill.errors import escape_controls
    >>> print(escape_controls("\x1b[2Jname"))
    \x1b[2Jname
    """
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)


class Remedy:
    """Something the user can do about a problem.

    Parameters
    ----------
    action : str
        What to do, as an imperative without a full stop: "leave the column out".
    **settings
        Parameters of the call that raised the error, with the values that carry out the action.
        ``...`` stands for a value that the user has to choose.

    Examples
    --------
    >>> from kernelmill.errors import Remedy
    >>> str(Remedy("leave the column out", drop=["id"]))
    "leave the column out (drop=['id'])"
    >>> str(Remedy("hold out fewer rows", holdout=...))
    'hold out fewer rows (holdout)'
    """

    def __init__(self, action: str, **settings: Any) -> None:
        self.action = action
        self.settings = settings

    def render(self, render_setting: Callable[[str, Any], str]) -> str:
        """Return the action with its settings, each rendered by `render_setting`."""
        if not self.settings:
            return self.action
        settings = ", ".join(render_setting(name, value) for name, value in self.settings.items())
        return f"{self.action} ({settings})"

    def __str__(self) -> str:
        return self.render(_python_setting)

    def __repr__(self) -> str:
        settings = "".join(f", {name}={value!r}" for name, value in self.settings.items())
        return f"Remedy({self.action!r}{settings})"


class Rendered(NamedTuple):
    """A problem and its remedy as strings, without full stops at their ends."""

    problem: str
    remedy: str | None


class Message:
    """A problem with its remedies, which each interface renders in its own terms.

    Errors carry one, and so do notes about data and settings that raise nothing.

    Parameters
    ----------
    problem : str
        What is wrong, with what was given and what is allowed. If `parameter` is set, the text
        continues a sentence that begins with its name: "must be positive, got -1".
    *remedies : Remedy or str
        Alternatives, most useful first.
    parameter : str, optional
        The parameter of the call that the problem is about.
    column : str, optional
        The table column that the message is about. If the column is not used, the message is
        omitted.

    Examples
    --------
    >>> from kernelmill.errors import Message, Remedy
    >>> str(Message("3 of 40 columns are constant", Remedy("leave them out", drop=["a", "b"])))
    "3 of 40 columns are constant; leave them out (drop=['a', 'b'])."
    """

    def __init__(
        self,
        problem: str,
        *remedies: Remedy | str,
        parameter: str | None = None,
        column: str | None = None,
    ) -> None:
        self.problem = problem
        self.remedies = tuple(
            Remedy(remedy) if isinstance(remedy, str) else remedy for remedy in remedies
        )
        self.parameter = parameter
        self.column = column

    def render(
        self,
        render_parameter: Callable[[str], str],
        render_setting: Callable[[str, Any], str],
    ) -> Rendered:
        """Return the message with parameters and settings rendered by the given functions."""
        problem = self.problem
        if self.parameter is not None:
            problem = f"{render_parameter(self.parameter)} {problem}"
        remedies = [escape_controls(each.render(render_setting)) for each in self.remedies]
        return Rendered(escape_controls(problem), ", or ".join(remedies) or None)

    def __str__(self) -> str:
        problem, remedy = self.render(str, _python_setting)
        return f"{problem}; {remedy}." if remedy else f"{problem}."


class Doubt(Message):
    """A note about a probable mistake or a problem; in Python, a warning.

    Examples
    --------
    >>> from kernelmill.errors import Doubt
    >>> str(Doubt("All values of column 'a' are missing"))
    "All values of column 'a' are missing."
    """


class KernelmillError(Exception):
    """The base class of the errors that kernelmill raises.

    The parameters are those of `Message`.

    Attributes
    ----------
    message : Message

    Examples
    --------
    >>> from kernelmill.errors import ArgumentError, Remedy
    >>> str(ArgumentError("must be positive, got -1", parameter="alpha"))
    'alpha must be positive, got -1.'
    >>> error = ArgumentError("column 'id' has only strings", Remedy("leave it out", drop=["id"]))
    >>> str(error)
    "column 'id' has only strings; leave it out (drop=['id'])."
    """

    def __init__(self, problem: str, *remedies: Remedy | str, parameter: str | None = None) -> None:
        super().__init__(problem, *remedies)  # as `args`, from which pickle makes a copy
        self.message = Message(problem, *remedies, parameter=parameter)

    def __str__(self) -> str:
        return str(self.message)


class ArgumentError(KernelmillError, ValueError):
    """An argument has a value that is not allowed."""


class ArgumentTypeError(KernelmillError, TypeError):
    """An argument is of a type that is not allowed."""


def _python_setting(name: str, value: Any) -> str:
    return name if value is ... else f"{name}={value!r}"
