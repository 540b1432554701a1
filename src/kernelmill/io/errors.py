"""The error of data files."""

from __future__ import annotations

__all__ = ["TableError"]


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
