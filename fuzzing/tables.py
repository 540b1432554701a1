"""Tables of every format: a read gives the rows that an independent reader gives, or raises.

Files with a checksum give the original rows or raise. The independent readers are Python's csv and
json, NumPy, polars and scikit-learn. Where one of them rejects a file, nothing is compared.
"""

from __future__ import annotations

import bz2
import contextlib
import csv
import gzip
import io
import json
import math
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from fuzzing.campaign import Subject
from fuzzing.mutation import mutate_bytes, mutate_json, mutate_text
from kernelmill.errors import KernelmillError
from kernelmill.io import open_table

__all__ = ["make_subjects", "read_rows"]

Rows = list[tuple[Any, ...]]
Reader = Callable[[Path], Rows]

_N_ROWS = 60
_MISSING = {"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?"}
_OPTIONS: dict[str, dict[str, Any]] = {
    "rows.csv": {"delimiter": ",", "header": True, "decimal": "."},
    "rows.svm": {"zero_based": False, "n_features": 12},
}


class Incomparable(Exception):
    """The independent reader rejects the file, or reads it by other rules."""


def make_subjects() -> list[Subject]:
    """One subject for each format, with and without compression."""
    rng = np.random.default_rng(0)
    matrix = rng.integers(0, 255, (_N_ROWS, 9), dtype=np.uint8)
    labels = rng.integers(0, 3, _N_ROWS, dtype=np.uint8)
    text, lines, pairs = _csv_bytes(rng), _json_bytes(rng), _svmlight_bytes(rng)
    idx = struct.pack(">HBB3I", 0, 8, 3, _N_ROWS, 3, 3) + matrix.tobytes()
    arrays = {"X": rng.standard_normal((_N_ROWS, 11)), "y": labels}
    original = {
        "rows.csv": text,
        "rows.idx": idx,
        "rows.npz": _npz_bytes(np.savez, arrays),
    }
    subjects = [
        _subject("rows.csv", (text,), mutate_text, _read_csv),
        _subject("rows.jsonl", (lines,), mutate_text, _read_json),
        _subject("nested.jsonl", (_nested_bytes(rng),), mutate_json, _read_json),
        _subject("rows.svm", (pairs,), mutate_text, _read_svmlight),
        _subject("rows.npy", (_npy_bytes(arrays["X"]),), mutate_bytes, _read_npy),
        _subject("rows.idx", (idx,), mutate_bytes, _read_idx),
        _subject("rows.parquet", _parquet_bytes(rng), mutate_bytes, _read_parquet),
        _subject("rows.feather", _arrow_bytes(rng), mutate_bytes, _read_arrow),
    ]
    checked = {
        "rows.csv.gz": (gzip.compress(text),),
        "rows.csv.bz2": (bz2.compress(text), bz2.compress(text[:400]) + bz2.compress(text[400:])),
        "rows.csv.zst": (_zstd_bytes(text), _zstd_bytes(text[:400]) + _zstd_bytes(text[400:])),
        "rows.idx.gz": (gzip.compress(idx), gzip.compress(idx, 0)),
        "rows.npz": (original["rows.npz"], _npz_bytes(np.savez_compressed, arrays)),
    }
    for name, seeds in checked.items():
        plain = _without_compression(name)
        expected = partial(_read_original, plain, original[plain])
        subjects.append(_subject(name, seeds, mutate_bytes, expected))
    return subjects


def _without_compression(name: str) -> str:
    return name.removesuffix(".gz").removesuffix(".bz2").removesuffix(".zst")


def _subject(name: str, seeds: tuple[bytes, ...], mutate: Any, reader: Reader) -> Subject:
    return Subject(name, seeds, mutate, partial(_judge, reader))


def _judge(reader: Reader, path: Path) -> str:
    """Compare the rows of kernelmill with those of the independent reader, for two block sizes."""
    rows, errors = [], 0
    for block_bytes in (1 << 20, 200):
        try:
            rows.append(read_rows(path, block_bytes=block_bytes))
        except KernelmillError:
            errors += 1
    if errors == 2:
        return "rejected"
    assert errors == 0, "rejected with one size of blocks only"
    assert _same(rows[0], rows[1]), "the rows depend on the size of blocks"
    if _has_unread_columns(path):
        return "accepted, not compared"
    try:
        expected = reader(path)
    except Incomparable:
        return "accepted, not compared"
    assert _same(rows[0], expected), f"{rows[0][:3]}, {len(rows[0])} rows; {expected[:3]}"
    return "accepted"


def _has_unread_columns(path: Path) -> bool:
    """Whether there are bytes or lists: no model takes them, and those of Parquet are not read."""
    if path.suffix not in (".parquet", ".feather"):
        return False
    return any(column.kind == "other" for column in open_table(path).columns or ())


def read_rows(path: Path, **options: Any) -> Rows:
    """All rows as kernelmill reads them, in order and shuffled, which must give the same ones."""
    name = path.name.split("-")[-1]
    plain = _without_compression(name)
    table = open_table(path, **{**_OPTIONS.get(plain, {}), **options})
    blocks = {block.first_row: _block_rows(block) for block in table.blocks()}
    if "block_bytes" in options and options["block_bytes"] < 1000:
        again = {block.first_row: _block_rows(block) for block in table.blocks(seed=1)}
        assert {at: _same(rows, again.get(at, [])) for at, rows in blocks.items()} == dict.fromkeys(
            blocks, True
        ), "shuffled blocks differ"
    return [row for _, rows in sorted(blocks.items()) for row in rows]


def _block_rows(block: Any) -> Rows:
    data = block.data
    if isinstance(data, pa.RecordBatch):
        return list(zip(*(column.to_pylist() for column in data.columns), strict=True))
    dense = data.toarray() if hasattr(data, "toarray") else data
    if block.labels is not None:
        return [(*row, y) for row, y in zip(dense.tolist(), block.labels.tolist(), strict=True)]
    return [tuple(row) for row in dense.tolist()]


def _same(ours: Rows, theirs: Rows) -> bool:
    if len(ours) != len(theirs):
        return False
    return all(
        len(a) == len(b) and all(map(_same_value, a, b)) for a, b in zip(ours, theirs, strict=True)
    )


def _same_value(ours: Any, theirs: Any) -> bool:
    """Whether a value is that of the other reader, which may have it as a string."""
    if isinstance(ours, float) and isinstance(theirs, str):
        return _parse(theirs) in (None, ours) or _is_missing(ours)
    if _is_missing(ours) or _is_missing(theirs):
        return _is_missing(ours) and _is_missing(theirs)
    if isinstance(ours, str):
        return ours == _spell(theirs)
    if isinstance(theirs, int):
        with contextlib.suppress(OverflowError):
            return bool(ours == float(theirs))
        return math.isinf(ours)
    return bool(ours == theirs)


def _spell(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def _is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip() in _MISSING
    return value is None or (isinstance(value, float) and math.isnan(value))


def _parse(text: str) -> float | None:
    """The number, or None for spellings that Python does not know, such as amounts."""
    with contextlib.suppress(ValueError):
        return float(text)
    return None


def _read_original(name: str, content: bytes, path: Path) -> Rows:
    original = path.with_name(f"original-{name}")
    original.write_bytes(content)
    return read_rows(original)


def _zstd_bytes(data: bytes) -> bytes:
    """A frame of Zstandard with a checksum, which pyarrow verifies, but does not write."""
    frame = bytearray(pa.compress(data, "zstd", asbytes=True))
    frame[4] |= 4  # the flag of the checksum
    return bytes(frame) + struct.pack("<I", _xxh64(data) & 0xFFFFFFFF)


_PRIMES = (
    *(0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9),
    *(0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5),
)
_WORD = (1 << 64) - 1


def _xxh64(data: bytes) -> int:
    """The hash function XXH64 of Collet (2012), with seed 0, of at least 32 bytes."""
    p1, p2, p3, p4, p5 = _PRIMES

    def turn(value: int, count: int) -> int:
        return (value << count | value >> 64 - count) & _WORD

    def mix(value: int, word: int) -> int:
        return turn((value + word * p2) & _WORD, 31) * p1 & _WORD

    lanes = [(p1 + p2) & _WORD, p2, 0, -p1 & _WORD]
    n_words = len(data) // 32 * 4
    words = struct.unpack_from(f"<{n_words}Q", data)
    for place, word in enumerate(words):
        lanes[place % 4] = mix(lanes[place % 4], word)
    found = sum(turn(lane, count) for lane, count in zip(lanes, (1, 7, 12, 18), strict=True))
    for lane in lanes:
        found = ((found ^ mix(0, lane)) * p1 + p4) & _WORD
    found = (found + len(data)) & _WORD
    rest = data[8 * n_words :]
    while len(rest) >= 8:
        found = (turn(found ^ mix(0, struct.unpack_from("<Q", rest)[0]), 27) * p1 + p4) & _WORD
        rest = rest[8:]
    if len(rest) >= 4:
        word = struct.unpack_from("<I", rest)[0]
        found, rest = (turn(found ^ word * p1 & _WORD, 23) * p2 + p3) & _WORD, rest[4:]
    for byte in rest:
        found = turn(found ^ byte * p5 & _WORD, 11) * p1 & _WORD
    for shift, prime in ((33, p2), (29, p3)):
        found = (found ^ found >> shift) * prime & _WORD
    return found ^ found >> 32


def _csv_bytes(rng: np.random.Generator) -> bytes:
    towns = ["Rome", "Oslo", '"a ""b"", c"', "é", "", '"two\nlines"']
    rows = (
        f"{rng.normal():.6g},{towns[rng.integers(len(towns))]},{rng.integers(-9, 99)}, x{i % 7}"
        for i in range(_N_ROWS)
    )
    return ("a,town,n,code\n" + "\n".join(rows) + "\n").encode()


def _read_csv(path: Path) -> Rows:
    data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    if b"\r" in data.replace(b"\r\n", b"") or b"\0" in data or b"\x0b" in data or b"\x0c" in data:
        raise Incomparable  # the csv module does not know these line ends
    text = data.decode("utf-8", errors="surrogateescape")
    try:
        found = list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error:
        raise Incomparable from None
    rows = [row for row in found if row and not (len(row) == 1 and not row[0].strip())]
    if any(len(row) != len(rows[0]) for row in rows):
        raise Incomparable
    return [tuple(value.strip() for value in row) for row in rows[1:]]


def _json_bytes(rng: np.random.Generator) -> bytes:
    rows = (
        {"a": float(f"{rng.normal():.6g}"), "town": ["Rome", "Oslo", None][i % 3], "b": i % 2 == 0}
        for i in range(_N_ROWS)
    )
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _nested_bytes(rng: np.random.Generator) -> bytes:
    """Columns that no model takes, which are null, next to others."""
    rows = (
        {
            "x": float(f"{rng.normal():.6g}"),
            "at": {"town": ["Rome", "Oslo"][i % 2], "place": [i, 0.5, None]},
            "words": ["[", '"}', "\\"][: i % 4],
            "note": ['a "quoted" {word}', "]]", "é\n"][i % 3],
            "n": i % 5,
        }
        for i in range(_N_ROWS)
    )
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _read_json(path: Path) -> Rows:
    lines = path.read_bytes().split(b"\n")
    try:
        rows = [json.loads(line) for line in lines if line.strip()]
    except (ValueError, RecursionError):
        raise Incomparable from None
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [tuple(_without_parts(row.get(name)) for name in names) for row in rows]


def _without_parts(value: Any) -> Any:
    return None if isinstance(value, (list, dict)) else value


def _svmlight_bytes(rng: np.random.Generator) -> bytes:
    lines = []
    for i in range(_N_ROWS):
        indices = np.flatnonzero(rng.random(12) < 0.4) + 1
        pairs = " ".join(f"{j}:{rng.normal():.5g}" for j in indices)
        lines.append(f"{i % 3} {pairs}{' # note' if i % 9 == 0 else ''}")
    return ("\n".join(lines) + "\n").encode()


def _read_svmlight(path: Path) -> Rows:
    from sklearn.datasets import load_svmlight_file  # noqa: PLC0415  (heavy)

    if b"\r" in path.read_bytes() or b"\xef\xbb\xbf" in path.read_bytes():
        raise Incomparable
    try:
        X, y = load_svmlight_file(io.BytesIO(path.read_bytes()), n_features=12, zero_based=False)
    except Exception:
        raise Incomparable from None
    return [(*row, label) for row, label in zip(X.toarray().tolist(), y.tolist(), strict=True)]


def _npy_bytes(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def _npz_bytes(save: Any, arrays: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    save(stream, **arrays)
    return stream.getvalue()


def _read_npy(path: Path) -> Rows:
    try:
        array = np.load(path, allow_pickle=False)
        return [tuple(row) for row in array.reshape(len(array), -1).tolist()]
    except Exception:
        raise Incomparable from None


def _read_idx(path: Path) -> Rows:
    data = path.read_bytes()
    sizes = struct.unpack(f">{data[3]}I", data[4 : 4 + 4 * data[3]])
    kinds = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
    array = np.frombuffer(data[4 + 4 * data[3] :], kinds[data[2]]).reshape(sizes[0], -1)
    return [tuple(row) for row in array.tolist()]


def _arrow_table(rng: np.random.Generator) -> Any:
    towns = ["Rome", "Oslo", None, "Lima"]
    return pa.table(
        {
            "a": rng.standard_normal(_N_ROWS),
            "town": [towns[i] for i in rng.integers(4, size=_N_ROWS)],
            "n": pa.array(rng.integers(0, 99, _N_ROWS), pa.int32()),
        }
    )


def _parquet_bytes(rng: np.random.Generator) -> tuple[bytes, ...]:
    table = _arrow_table(rng)
    settings: tuple[dict[str, Any], ...] = (
        {"row_group_size": 15},
        {"row_group_size": 20, "compression": "gzip", "use_dictionary": False},
        {"compression": "none", "data_page_version": "2.0", "write_page_checksum": True},
    )
    found = []
    for each in settings:
        stream = io.BytesIO()
        pa.parquet.write_table(table, stream, **each)
        found.append(stream.getvalue())
    return tuple(found)


def _arrow_bytes(rng: np.random.Generator) -> tuple[bytes, ...]:
    table = _arrow_table(rng)
    found = []
    for compression in ("uncompressed", "lz4"):
        stream = io.BytesIO()
        pa.feather.write_feather(table, stream, compression=compression, chunksize=15)
        found.append(stream.getvalue())
    return tuple(found)


def _read_parquet(path: Path) -> Rows:
    import polars as pl  # noqa: PLC0415

    return _read_by_polars(partial(pl.read_parquet, path))


def _read_arrow(path: Path) -> Rows:
    import polars as pl  # noqa: PLC0415

    return _read_by_polars(partial(pl.read_ipc, io.BytesIO(path.read_bytes())))


def _read_by_polars(read: Callable[[], Any]) -> Rows:
    import polars as pl  # noqa: PLC0415

    try:
        frame = read()
        return list(frame.rows())
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
        raise Incomparable from None
