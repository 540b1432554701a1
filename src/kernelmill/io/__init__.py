"""Tables in files of many formats, read in blocks of rows, and written.

Contents
--------
open_table
    A file, a list of files or a glob pattern as a `Table`.
Table, TableBlock, Column
    Rows in blocks, in order or shuffled; a block; the name and the kind of a column.
open_writer
    Columns to a CSV, Parquet, Arrow or NPY file: complete or not at all.
read_svmlight
    All rows of a svmlight / LIBSVM file as a sparse matrix.
TableError
    What all of them raise: the file, the place in it and what to change.
"""

from kernelmill.io.errors import TableError
from kernelmill.io.libsvm.svmlight_file import read_svmlight
from kernelmill.io.table import Table, TableBlock, open_table
from kernelmill.io.table_file import Column
from kernelmill.io.writing.table_writer import open_writer

__all__ = [
    "Column",
    "Table",
    "TableBlock",
    "TableError",
    "open_table",
    "open_writer",
    "read_svmlight",
]
