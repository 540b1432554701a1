"""What a table in a file may hold, so that a small file takes bounded memory.

A compressed file can be a thousand times as large as it looks: these limits hold for its content.
They are far beyond tables of measurements. Data in memory have no limits.
"""

from __future__ import annotations

from pathlib import Path

from kernelmill.io.errors import TableError

__all__ = [
    "LONGEST_VALUE",
    "MOST_BLOCK_BYTES",
    "MOST_COLUMNS",
    "MOST_FEATURES",
    "MOST_LEVELS",
    "MOST_SPARSE_FEATURES",
    "MOST_TEXT_BYTES",
    "check_n_columns",
    "check_n_features",
]

LONGEST_VALUE = 16 << 20
"""The most bytes of one value. A line of text or JSON, which is read as a whole, has no more."""

MOST_COLUMNS = 1 << 17
"""The most columns with names. Each takes some kilobytes, for its kind and its statistics."""

MOST_FEATURES = 1 << 24
"""The most columns of a dense matrix: a row of float64 takes 128 MiB."""

MOST_SPARSE_FEATURES = 1 << 27
"""The most columns of a sparse matrix: a vector of float64 takes 1 GiB."""

MOST_LEVELS = 64
"""The most levels of nested arrays and objects in a line of JSON."""

MOST_BLOCK_BYTES = 1 << 29
"""The most bytes that a batch of Arrow or the pages of Parquet may decompress to."""

MOST_TEXT_BYTES = 1 << 26
"""The most bytes of strings in one row, or in a dictionary: several copies are made of them."""


def check_n_columns(path: Path, n_columns: int) -> None:
    """Raise an error if a file has more columns with names than a table may have."""
    if n_columns > MOST_COLUMNS:
        raise TableError(
            f"{path} has {n_columns} columns, more than the {MOST_COLUMNS} that a table may have",
            "write the numbers as a matrix (NPY), or as svmlight if most are 0",
            "transpose the table if its rows are columns",
        )


def check_n_features(path: Path, n_features: int) -> None:
    """Raise an error if a dense matrix in a file has more columns than it may have."""
    if n_features > MOST_FEATURES:
        raise TableError(
            f"{path} has rows of {n_features} numbers, more than the {MOST_FEATURES} that a matrix "
            "may have",
            "write svmlight if most are 0",
            "transpose the matrix if its rows are columns",
        )
