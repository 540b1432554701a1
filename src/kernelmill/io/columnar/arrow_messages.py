"""Messages of Arrow IPC files: what their compressed buffers expand to.

pyarrow decompresses a record batch as a whole, whatever size its buffers declare, so the sizes are
read here first. The metadata of a message is a FlatBuffer: a table begins with the offset back to
its list of fields, in which each field has an offset from the table, or 0 if it is absent.
"""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa

__all__ = ["decompressed_bytes"]

_HEADER_OF_MESSAGE, _DATA_OF_DICTIONARY = 2, 1
_BUFFERS_OF_BATCH, _COMPRESSION_OF_BATCH = 2, 3


def decompressed_bytes(message: Any) -> int:
    """The bytes that the buffers of a message declare to decompress to; 0 if none is compressed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from kernelmill.io.columnar.arrow_messages import decompressed_bytes
    >>> batch = pa.record_batch({"a": [0.0] * 1000})
    >>> options = pa.ipc.IpcWriteOptions(compression="zstd")
    >>> stream = pa.BufferOutputStream()
    >>> with pa.ipc.new_stream(stream, batch.schema, options=options) as writer:
    ...     writer.write_batch(batch)
    >>> [decompressed_bytes(message) for message in pa.ipc.MessageReader.open_stream(
    ...     stream.getvalue())]
    [0, 8000]
    """
    if message.type not in ("record batch", "dictionary batch"):
        return 0
    data = memoryview(message.metadata)
    try:
        header = _follow(data, _follow(data, 0), _HEADER_OF_MESSAGE)
        if message.type == "dictionary batch":
            header = _follow(data, header, _DATA_OF_DICTIONARY)
        if _find(data, header, _COMPRESSION_OF_BATCH) is None:
            return 0
        vector = _follow(data, header, _BUFFERS_OF_BATCH)
        (count,) = struct.unpack_from("<I", data, vector)
        body, total = memoryview(message.body), 0
        for place in range(count):
            offset, length = struct.unpack_from("<qq", data, vector + 4 + 16 * place)
            if length > 8:  # each begins with its size, or -1 if it is not compressed
                (size,) = struct.unpack_from("<q", body, offset)
                total += length if size < 0 else size
    except (struct.error, TypeError, ValueError):
        raise pa.ArrowInvalid("the metadata of a record batch are invalid") from None
    return total


def _find(data: memoryview, table: int, field: int) -> int | None:
    """The position of a field of a table; None if it is absent."""
    (back,) = struct.unpack_from("<i", data, table)
    fields = table - back
    (size,) = struct.unpack_from("<H", data, fields)
    if 6 + 2 * field > size:
        return None
    (offset,) = struct.unpack_from("<H", data, fields + 4 + 2 * field)
    return table + offset if offset else None


def _follow(data: memoryview, table: int, field: int | None = None) -> int:
    """The position that a field refers to, or the root table at the beginning."""
    place = table if field is None else _find(data, table, field)
    if place is None:
        raise ValueError("a field is absent")
    (offset,) = struct.unpack_from("<I", data, place)
    return int(place + offset)
