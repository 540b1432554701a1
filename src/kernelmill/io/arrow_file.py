"""Arrow IPC files, which Feather files of version 2 are too, in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from kernelmill.io.columnar_file import ColumnarFile, arrow_errors
from kernelmill.io.compression import first_bytes
from kernelmill.io.errors import TableError
from kernelmill.io.table_file import TableOptions

__all__ = ["ArrowFile"]


class ArrowFile(ColumnarFile):
    """An Arrow IPC file, mapped into memory; its batches are cut into blocks."""

    def __init__(self, path: Path, options: TableOptions, first: ArrowFile | None) -> None:
        start = first_bytes(path, 6)
        if start.startswith(b"FEA1"):
            raise TableError(
                f"{path} is a Feather file of version 1; write it again as version 2 (the default "
                "of pyarrow.feather.write_feather)."
            )
        if start != b"ARROW1":
            raise TableError(
                f"{path} is not an Arrow IPC file (or it is a stream, which cannot be read at any "
                "place); write it by pyarrow.ipc.new_file or pyarrow.feather.write_feather."
            )
        super().__init__(path, options, first)
        self._places: list[tuple[int, int, int, int]] = []  # batch, rows before it, start, rows
        with self._opened() as file, arrow_errors(path):
            self.n_rows = _count_rows(file)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        with arrow_errors(self.path):
            source = pa.memory_map(str(self.path))
        with source:
            with arrow_errors(self.path):
                file = pa.ipc.open_file(source)
            yield file

    def schema(self) -> Any:
        """The schema of the file."""
        with self._opened() as file:
            return file.schema

    def _batch(self, file: Any, number: int) -> Any:
        with arrow_errors(self.path):
            return file.get_batch(number)

    def blocks(self) -> Iterator[tuple[Any, None]]:
        """Record batches in order."""
        places = []
        before = 0
        with self._opened() as file:
            for number in range(file.num_record_batches):
                batch = self._batch(file, number)
                for start in range(0, batch.num_rows, self._block_rows):
                    part = batch.slice(start, self._block_rows)
                    places.append((number, before, start, part.num_rows))
                    yield self.finished(part, before + start), None
                before += batch.num_rows
        self._places = places

    def block(self, number: int) -> tuple[Any, None]:
        """A block by its number."""
        batch_number, before, start, count = self._places[number]
        with self._opened() as file:
            batch = self._batch(file, batch_number)
            return self.finished(batch.slice(start, count), before + start), None


def _count_rows(file: Any) -> int:
    with_rows = getattr(file, "count_rows", None)
    if with_rows is not None:
        return int(with_rows())
    return sum(int(file.get_batch(number).num_rows) for number in range(file.num_record_batches))
