"""The errors of tables: files that cannot be read or written as requested."""

from __future__ import annotations

from kernelmill.errors import KernelmillError, Remedy

__all__ = ["NotANumberError", "TableError", "suggest_codes"]


class TableError(KernelmillError, ValueError):
    """A table cannot be read, encoded or written.

    The problem names the file and the place in it. See `kernelmill.errors.KernelmillError` for the
    parameters and the attribute `message`.

    Examples
    --------
    >>> from kernelmill.io import TableError, open_table
    >>> try:
    ...     open_table("no-such-file.csv")
    ... except TableError as error:
    ...     print(error)
    no-such-file.csv does not exist; pass the path of a file, a list of paths or a glob pattern.
    """


class NotANumberError(TableError):
    """A value in a numeric column is not a number.

    Examples
    --------
    >>> from kernelmill.io.errors import NotANumberError
    >>> error = NotANumberError("rows.csv, line 3: 'x' is not a number", "correct it")
    >>> error.message.problem
    "rows.csv, line 3: 'x' is not a number"
    """


def suggest_codes(*words: str) -> list[Remedy]:
    """Return the remedy for values that may stand for missing ones: those without digits."""
    if not words or any(map(str.isdigit, "".join(words))):
        return []
    return [Remedy("if it is a code for missing values, declare it", missing_codes=[*words])]
