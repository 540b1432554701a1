"""Parquet files in blocks."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from kernelmill.io.columnar_file import ColumnarFile, arrow_errors, as_plain
from kernelmill.io.compression import copying_errors
from kernelmill.io.table_file import TableOptions

__all__ = ["ParquetFile"]

_BUFFER = 1 << 16  # read at once of each column, rather than all of it


class ParquetFile(ColumnarFile):
    """A Parquet file; blocks do not extend over row groups.

    Rows inside of a group can be reached from its beginning only: a file with groups larger than a
    block is copied to an uncompressed temporary file when a shuffled order is first wanted.
    """

    def __init__(self, path: Path, options: TableOptions, first: ParquetFile | None) -> None:
        super().__init__(path, options, first)
        self._copy: Any = None
        self._places: list[tuple[int, int]] = []  # the group and the first row of each block
        with self._opened() as file:
            metadata = file.metadata
            self.n_rows = metadata.num_rows
            groups = range(metadata.num_row_groups)
            self._group_rows = [metadata.row_group(group).num_rows for group in groups]

    def _opened(self) -> Any:
        with arrow_errors(self.path):
            return pa.parquet.ParquetFile(self.path, buffer_size=_BUFFER, pre_buffer=False)

    def schema(self) -> Any:
        """The schema as pyarrow reads it."""
        with self._opened() as file, arrow_errors(self.path):
            return file.schema_arrow

    def blocks(self) -> Iterator[tuple[Any, None]]:
        """Record batches in order."""
        if self._copy is not None:
            for number in range(self._copy.num_record_batches):
                yield self.block(number)
            return
        places = []
        first_row = 0
        with self._opened() as file:
            for group in range(len(self._group_rows)):
                for batch in self._batches(file, group):
                    places.append((group, first_row))
                    yield self.finished(batch, first_row), None
                    first_row += batch.num_rows
        self._places = places

    def _batches(self, file: Any, group: int) -> Iterator[Any]:
        with arrow_errors(self.path):
            batches = file.iter_batches(self._block_rows, row_groups=[group], use_threads=False)
            yield from (batch for batch in batches if batch.num_rows)

    def prepare_random_access(self) -> None:
        """Copy the blocks to a temporary file if there are several in a row group."""
        if self._copy is not None or max(self._group_rows, default=0) <= self._block_rows:
            return
        copy = tempfile.TemporaryFile()  # noqa: SIM115  (kept as long as this object)
        weakref.finalize(self, copy.close)
        writer = None
        for batch, _ in self.blocks():
            plain = as_plain(batch)
            with copying_errors(self.path):
                if writer is None:
                    writer = pa.ipc.new_file(pa.PythonFile(copy, "w"), plain.schema)
                writer.write_batch(plain)
        assert writer is not None
        with copying_errors(self.path):
            writer.close()
            copy.flush()
        copy.seek(0)
        self._copy = pa.ipc.open_file(pa.PythonFile(copy, "r"))
        self._names = tuple(column.name for column in self.columns or ())

    def block(self, number: int) -> tuple[Any, None]:
        """A block by its number."""
        if self._copy is not None:
            return self.finished(self._copy.get_batch(number), 0), None
        group, first_row = self._places[number]
        with self._opened() as file:
            (batch,) = self._batches(file, group)
        return self.finished(batch, first_row), None
