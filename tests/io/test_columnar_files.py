"""Parquet and Arrow files: types become kinds, and blocks are cut anywhere."""

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from kernelmill.io import TableError, open_table


def write_parquet(table, path, **options):
    pa.parquet.write_table(table, path, **options)


def write_arrow(table, path, row_group_size=None):
    pa.feather.write_feather(table, path, compression="uncompressed", chunksize=row_group_size)


def write_compressed_arrow(table, path, row_group_size=None):
    pa.feather.write_feather(table, path, compression="zstd", chunksize=row_group_size)


WRITERS = pytest.mark.parametrize(
    ("name", "write"),
    [
        ("rows.parquet", write_parquet),
        ("rows.feather", write_arrow),
        ("rows.arrow", write_compressed_arrow),
    ],
)


def rows(table, seed=None):
    columns = {column.name: [] for column in table.columns}
    for block in sorted(table.blocks(seed), key=lambda block: block.first_row):
        assert block.first_row == len(columns[table.columns[0].name])
        for name, values in block.data.to_pydict().items():
            columns[name] += values
    return columns


def mixed():
    day = dt.date(2024, 5, 1)
    return pa.table(
        {
            "int": pa.array([1, None, 3], pa.int16()),
            "bool": [True, False, None],
            "float": [1.5, float("nan"), None],
            "half": pa.array(np.array([1, 2, 3], np.float16)),
            "decimal": [decimal.Decimal("1.5"), None, decimal.Decimal("-2.5")],
            "text": [" a", "a ", "?"],
            "large": pa.array(["x", None, "y"], pa.large_string()),
            "dictionary": pa.array(["u", "u", None]).dictionary_encode(),
            "numbers": pa.array([5, 6, 5]).dictionary_encode(),
            "nothing": pa.array([None] * 3, pa.null()),
            "day": [day, None, day],
            "time": pa.array([1, 2, 3], pa.timestamp("us")),
            "list": [[1], [2, 3], None],
        }
    )


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
@WRITERS
def test_kinds(tmp_path, name, write, block_bytes):
    write(mixed(), tmp_path / name)
    table = open_table(tmp_path / name, block_bytes=block_bytes)
    kinds = {column.name: column.kind for column in table.columns}
    assert list(kinds.values()) == (
        ["numeric", "category"]
        + ["numeric"] * 3
        + ["category"] * 3
        + ["numeric"] * 2
        + ["date"] * 2
        + ["other"]
    )
    assert table.n_rows == 3
    found = rows(table)
    assert found["int"] == [1.0, None, 3.0]
    assert found["bool"] == ["true", "false", None]
    assert found["float"] == [1.5, None, None]
    assert found["half"] == [1.0, 2.0, 3.0]
    assert found["decimal"] == [1.5, None, -2.5]
    assert found["text"] == ["a", "a", None]
    assert found["large"] == ["x", None, "y"]
    assert found["dictionary"] == ["u", "u", None]
    assert found["numbers"] == [5.0, 6.0, 5.0]
    assert found["nothing"] == [None] * 3
    assert rows(table, seed=1) == found
    for block in table.blocks():
        for column, array in zip(table.columns, block.data.columns, strict=True):
            if column.kind == "numeric":
                assert array.type == pa.float64()
            if column.kind == "category":
                assert array.type == pa.dictionary(pa.int32(), pa.string())


@WRITERS
@pytest.mark.parametrize("group", [7, 1000])
@pytest.mark.parametrize("block_bytes", [24 * 4, 24 * 10, 1 << 20])
def test_blocks_and_groups(tmp_path, name, write, group, block_bytes):
    original = pa.table({"a": range(100), "b": [f"word {i % 11}" for i in range(100)]})
    write(original, tmp_path / name, row_group_size=group)
    table = open_table(tmp_path / name, block_bytes=block_bytes)
    expected = original.to_pydict()
    shuffled = [block.first_row for block in table.blocks(seed=3)]
    in_order = [(block.first_row, block.data) for block in table.blocks()]
    assert sorted(shuffled) == [first_row for first_row, _ in in_order]
    assert all(data.num_rows <= max(1, block_bytes // 24) for _, data in in_order)
    assert rows(table) == expected
    again = [(block.first_row, block.data) for block in table.blocks(seed=3)]
    assert [first_row for first_row, _ in again] == shuffled
    for first_row, data in again:
        assert data.to_pydict() == dict(in_order)[first_row].to_pydict()
    if len(shuffled) > 5:
        assert shuffled != sorted(shuffled)


@WRITERS
def test_given_kinds(tmp_path, name, write):
    write(pa.table({"a": [1, 2], "b": [" 1.5", "?"], "c": [[1], [2]]}), tmp_path / name)
    table = open_table(tmp_path / name, categorical=["a"], numeric=["b"])
    assert [column.kind for column in table.columns] == ["category", "numeric", "other"]
    found = rows(table)
    assert (found["a"], found["b"]) == (["1", "2"], [1.5, None])
    with pytest.raises(TableError, match=r"'c' of type list.* cannot be read as numbers"):
        open_table(tmp_path / name, numeric=["c"])
    write(pa.table({"b": ["1"] * 9 + ["one"]}), tmp_path / name)
    table = open_table(tmp_path / name, numeric=["b"], block_bytes=16)
    with pytest.raises(TableError, match="row 10, column 'b': 'one' is not a number"):
        list(table.blocks())


@WRITERS
def test_damaged(tmp_path, name, write):
    path = tmp_path / name
    write(pa.table({"a": range(1000), "b": [f"word {i}" for i in range(1000)]}), path)
    whole = path.read_bytes()
    for size in (0, 3, 7, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(TableError, match="rows"):
            open_table(path)
    random = np.random.RandomState(0)
    n_errors = 0
    for _ in range(100):
        damaged = bytearray(whole)
        for place in random.randint(8, len(whole), size=20):
            damaged[place] = random.randint(256)
        path.write_bytes(damaged)
        try:  # other values are possible, a crash or another error is not
            rows(open_table(path))
        except TableError:
            n_errors += 1
    assert n_errors > 0


def test_not_arrow_files(tmp_path):
    path = tmp_path / "rows.arrow"
    with pa.ipc.new_stream(path, pa.schema([("a", pa.int64())])) as writer:
        writer.write(pa.record_batch({"a": [1]}))
    with pytest.raises(TableError, match="stream"):
        open_table(path)
    path.write_bytes(b"FEA1" + bytes(100))
    with pytest.raises(TableError, match="version 1"):
        open_table(path)


@WRITERS
def test_several_files(tmp_path, name, write):
    one, two = tmp_path / f"1{name}", tmp_path / f"2{name}"
    write(pa.table({"a": [1.0, 2.0], "b": ["x", "y"]}), one)
    write(pa.table({"b": ["z"], "a": [3]}), two)
    table = open_table([one, two])
    assert rows(table) == {"a": [1.0, 2.0, 3.0], "b": ["x", "y", "z"]}
    assert table.n_rows == 3
    write(pa.table({"b": [1.5], "c": [3]}), two)
    with pytest.raises(TableError) as caught:
        open_table([one, two])
    assert str(caught.value).startswith(
        f"{two} and {one} have different columns: column 'a' is missing, column 'c' is additional, "
        "'b' is numeric in this file and category in the first one"
    )


@WRITERS
def test_odd_tables(tmp_path, name, write):
    path = tmp_path / name
    write(pa.table({"a": pa.array([], pa.int64())}), path)
    table = open_table(path)
    assert list(table.blocks()) == list(table.blocks(seed=0)) == []
    with pytest.raises(TableError, match="is for text files"):
        open_table(path, delimiter=",")
