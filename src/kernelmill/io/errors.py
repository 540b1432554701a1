"""The errors of tables: files that cannot be read or written as asked."""

from __future__ import annotations

from kernelmill.errors import KernelmillError

__all__ = ["NotANumberError", "TableError"]


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
    no-such-file.csv does not exist; give the path of a file, a list of paths or a glob pattern.
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
