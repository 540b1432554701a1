"""Damage is noticed: checksums, lengths and numbers of rows are verified in every pass."""

import bz2
import gzip
import io
import struct

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from kernelmill.io import TableError, open_table

PIXELS = np.random.default_rng(0).integers(0, 255, (40, 16), dtype=np.uint8)
IDX = struct.pack(">HBB3I", 0, 8, 3, 40, 4, 4) + PIXELS.tobytes()


def read(path, seed=None, **options):
    """All rows; in random order with a seed."""
    return [block.data for block in open_table(path, **options).blocks(seed)]


@pytest.mark.representative
@pytest.mark.parametrize("seed", [None, 1])
def test_every_bit_of_a_compressed_image_file(tmp_path, seed):
    path = tmp_path / "rows.idx.gz"
    content = gzip.compress(IDX, 0, mtime=0)  # stored, so that only the checksum shows the damage
    for at in range(0, 8 * len(content), 37):
        damaged = bytearray(content)
        damaged[at // 8] ^= 1 << at % 8
        path.write_bytes(damaged)
        if at // 8 in range(3, 10):  # flags, time and system are not covered by the checksum
            continue
        with pytest.raises(TableError):
            read(path, seed)
    path.write_bytes(content)
    assert np.array_equal(np.concatenate(read(path)), PIXELS)


@pytest.mark.parametrize("change", [lambda c: c[:-3], lambda c: c + b"more"])
def test_the_end_of_a_compressed_file(tmp_path, change):
    text = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(300))
    for name, content in {
        "rows.idx.gz": gzip.compress(IDX),
        "rows.csv.gz": gzip.compress(text),
        "rows.csv.bz2": bz2.compress(text),
        "rows.csv.zst": pa.compress(text, "zstd", asbytes=True),
    }.items():
        path = tmp_path / name
        path.write_bytes(change(content))
        for seed in (None, 1):
            with pytest.raises(TableError, match=r"rows\.(idx|csv)"):
                read(path, seed)


def test_more_images_than_the_header_declares(tmp_path):
    path = tmp_path / "rows.idx.gz"
    path.write_bytes(gzip.compress(IDX + bytes(16)))
    with pytest.raises(TableError, match="more data than its header declares"):
        read(path)


def test_a_second_stream_of_bzip2_is_not_lost(tmp_path):
    path = tmp_path / "rows.csv.bz2"
    first, second = bz2.compress(b"a,b\n1,2\n"), bz2.compress(b"3,4\n")
    path.write_bytes(first + second)
    assert sum(block.num_rows for block in read(path)) == 2
    path.write_bytes(first + b"X" + second[1:])
    with pytest.raises(TableError, match="cannot be read"):
        read(path)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_members_of_npz(tmp_path, save, order):
    path = tmp_path / "rows.npz"
    X = np.asarray(np.random.default_rng(0).normal(size=(200, 30)), order=order)
    save(path, X=X)
    content = path.read_bytes()
    assert np.array_equal(np.concatenate(read(path)), X)
    for at in range(300, len(content) - 200, 1501):
        damaged = bytearray(content)
        damaged[at] ^= 4
        path.write_bytes(damaged)
        for seed in (None, 3):
            with pytest.raises(TableError, match=r"rows\.npz"):
                read(path, seed)


def test_surplus_data_of_npy(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.ones((5, 2)))
    path.write_bytes(path.read_bytes() + bytes(16))
    with pytest.raises(TableError, match="more than one array"):
        read(path)


def parquet_bytes(**settings):
    stream = io.BytesIO()
    table = pa.table({"a": np.arange(40.0), "t": ["x", "y"] * 20})
    pa.parquet.write_table(table, stream, **settings)
    return stream.getvalue()


def test_parquet_loses_no_row_groups(tmp_path):
    path = tmp_path / "rows.parquet"
    content = parquet_bytes(row_group_size=10)
    rng = np.random.default_rng(0)
    read_whole = 0
    for at in rng.integers(0, 8 * len(content), 120).tolist():
        damaged = bytearray(content)
        damaged[at // 8] ^= 1 << at % 8
        path.write_bytes(damaged)
        try:
            n_rows = sum(block.num_rows for block in read(path, block_bytes=300))
        except TableError:
            continue
        assert n_rows == 40
        read_whole += 1
    assert read_whole > 10  # many bits are values, or nothing that readers look at


def test_checksums_of_parquet_pages(tmp_path):
    path = tmp_path / "rows.parquet"
    content = parquet_bytes(compression="none", use_dictionary=False, write_page_checksum=True)
    at = content.index(np.float64(7).tobytes())
    path.write_bytes(content[:at] + np.float64(8).tobytes() + content[at + 8 :])
    with pytest.raises(TableError, match="CRC checksum"):
        read(path)


def test_arrow_loses_no_batches(tmp_path):
    path = tmp_path / "rows.feather"
    table = pa.table({"a": np.arange(40.0), "t": ["x", "y"] * 20})
    pa.feather.write_feather(table, path, chunksize=10, compression="uncompressed")
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.integers(8 * len(content) - 8000, 8 * len(content), 400).tolist():  # the footer
        damaged = bytearray(content)
        damaged[at // 8] ^= 1 << at % 8
        path.write_bytes(damaged)
        try:
            n_rows = sum(block.num_rows for block in read(path, block_bytes=100))
        except TableError:
            continue
        assert n_rows == 40


def test_rows_that_a_pass_does_not_give(tmp_path, monkeypatch):
    path = tmp_path / "rows.npy"
    np.save(path, np.ones((40, 2)))
    table = open_table(path, block_bytes=160)
    file = table._files[0]
    blocks = list(file.blocks())
    monkeypatch.setattr(file, "blocks", lambda: iter(blocks[:-1]))
    with pytest.raises(TableError, match="has 30 rows, but its metadata declares 40"):
        list(table.blocks())


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("block_bytes", [8, 50, 1 << 20])
def test_a_byte_order_mark_at_a_later_line(tmp_path, block_bytes, end):
    path = tmp_path / "rows.csv"
    lines = ["a,b", *(f"x{i % 5},{i}" for i in range(10)), "\ufeffx1,7", "x2,9"]
    path.write_bytes(end.join(lines).encode() + end.encode())
    with pytest.raises(TableError, match=r"line 12 begins with a byte order mark"):
        read(path, block_bytes=block_bytes)


@pytest.mark.parametrize("block_bytes", [8, 1 << 20])
def test_a_byte_order_mark_inside_a_value(tmp_path, block_bytes):
    path = tmp_path / "rows.csv"
    path.write_text('a,b\n"one\n\ufefftwo",1\nx\ufeff,2\n', encoding="utf-8")
    values = [value for block in read(path, block_bytes=block_bytes) for value in block["a"]]
    assert [value.as_py() for value in values] == ["one\n\ufefftwo", "x\ufeff"]


def test_nothing_is_printed_for_lines_that_are_not_utf8(tmp_path, capfd):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,b\n1,2\n\xc3,\xc3,\xc3\n")
    with pytest.raises(TableError, match="line 3, byte 1 of the line: 0xc3 is not UTF-8"):
        read(path)
    assert capfd.readouterr().err == ""
