"""Tables in files of many formats, read and written in blocks of rows.

Contents
--------
open_table
    Open a file, a list of files or a glob pattern as a `Table`.
Table, TableBlock, TableColumn
    A table read in blocks, in order or shuffled; a block; the name and the kind of a column.
open_writer
    Write columns to a CSV, Parquet, Arrow or NPY file, atomically.
read_svmlight
    Read all rows of a svmlight / LIBSVM file as a sparse matrix.
TableError
    The error of these functions: the problem, with the file and the place in it, and remedies.

The folders hold the formats: `text`, `columnar`, `matrix`, `svmlight`, and `writing`.
"""

from kernelmill.io.errors import TableError
from kernelmill.io.svmlight.svmlight_file import read_svmlight
from kernelmill.io.table import Table, TableBlock, open_table
from kernelmill.io.table_file import TableColumn
from kernelmill.io.writing.table_writer import open_writer

__all__ = [
    "Table",
    "TableBlock",
    "TableColumn",
    "TableError",
    "open_table",
    "open_writer",
    "read_svmlight",
]
