"""The errors of data files."""

from __future__ import annotations

__all__ = ["NotANumberError", "TableError"]


class TableError(ValueError):
    """A data file is not what it should be; the message says where and what to change.

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
    """A value in a column of numbers is none.

    Attributes
    ----------
    what : str
        The file, the place and the value: the message without what to change.

    Examples
    --------
    >>> error = NotANumberError("rows.csv, line 3: 'x' is not a number", "correct it")
    >>> str(error), error.what
    ("rows.csv, line 3: 'x' is not a number; correct it.", "rows.csv, line 3: 'x' is not a number")
    """

    def __init__(self, what: str, move: str) -> None:
        super().__init__(what, move)
        self.what = what
        self._move = move

    def __str__(self) -> str:
        return f"{self.what}; {self._move}."
