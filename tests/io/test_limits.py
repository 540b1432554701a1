"""What a table in a file may hold: lengths of values, numbers of columns, levels of JSON."""

import gzip
import json
import re
import struct

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelmill.io import TableError, json_lines, limits, open_table
from kernelmill.io.columnar import columnar_files
from kernelmill.io.limits import LONGEST_VALUE, MOST_COLUMNS, MOST_FEATURES, MOST_LEVELS
from kernelmill.io.pieces import cut_table


def problem_of(path, **options):
    with pytest.raises(TableError) as caught:
        list(open_table(path, **options).blocks())
    return str(caught.value)


def nested(levels):
    """An object whose member is arrays of arrays."""
    return b'{"a": 1, "b": ' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}\n"


def test_levels_of_json(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(nested(MOST_LEVELS) * 3)
    assert sum(block.n_rows for block in open_table(path).blocks()) == 3
    path.write_bytes(nested(2) * 3 + nested(MOST_LEVELS + 1))
    assert "rows.jsonl, line 4: arrays and objects are nested 65 levels deep, more than 64" in (
        problem_of(path)
    )
    path.write_bytes(nested(2) * 3000 + b"\n" + nested(200) + nested(2))
    assert "line 3002: arrays and objects are nested 200 levels" in problem_of(path)
    assert "line 3002: arrays" in problem_of(path, block_bytes=5000)
    path.write_bytes(nested(2) * 20 + b'{"a": 1, "b": "' + b"[" * 9000 + b'\\"[{"}\n')
    assert "has a array in one line and a string" in problem_of(path)  # these are in a string


@pytest.mark.representative
def test_deep_json_ends_in_an_error(tmp_path):
    """pyarrow overflowed the stack: the process was killed."""
    path = tmp_path / "rows.jsonl.gz"
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        content = b'{"a": ' + 100_000 * opening + b"1" + 100_000 * closing + b"}\n"
        path.write_bytes(gzip.compress(content))
        assert path.stat().st_size < 2000
        assert "line 1: arrays and objects are nested 100001 levels deep" in problem_of(path)
    path.write_bytes(gzip.compress(b'{"a": ' + b"[" * 100_000))  # not closed
    assert "line 1: arrays and objects" in problem_of(path)


JSON = st.recursive(
    st.none() | st.integers(0, 9) | st.text('["]{}\\:,a\n', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("[}a", max_size=2), inner),
    max_leaves=12,
)


def levels_of(value):
    inner = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    return 0 if inner is None else 1 + max(map(levels_of, inner), default=0)


def parts_of(value):
    if isinstance(value, dict):
        return 1 + len(value) + sum(map(parts_of, value.values()))
    return 1 + sum(map(parts_of, value)) if isinstance(value, list) else 0


@settings(max_examples=40, deadline=None)
@given(rows=st.lists(st.dictionaries(st.text("[}a", max_size=2), JSON), min_size=1, max_size=4))
def test_sizes_of_lines_of_json(rows):
    """They are those of the parsed lines, whatever brackets the strings have."""
    lines = "\n".join(map(json.dumps, rows)).encode()
    for ending in (b"", b"\n"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(json_lines, "MOST_LEVELS", -1)  # every line is measured
            sizes = json_lines._measure_lines(lines + ending)
        assert sizes.levels[: len(rows)].tolist() == list(map(levels_of, rows))
        assert sizes.parts[: len(rows)].tolist() == list(map(parts_of, rows))


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.dictionaries(st.text("[}a", max_size=2), JSON), min_size=1, max_size=6),
    most=st.integers(1, 6),
)
def test_lines_of_json_that_are_too_deep_are_found(rows, most):
    """Also if all lines but a few are not measured."""
    lines = "\n".join(map(json.dumps, rows)).encode()
    deep = [number for number, row in enumerate(rows) if levels_of(row) > most]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_lines, "MOST_LEVELS", most)
        found = json_lines._find_oversized_line(lines)
    assert (None if found is None else found[0]) == (deep[0] if deep else None)


def test_columns_of_json(tmp_path):
    path = tmp_path / "rows.jsonl"
    members = ",".join(f'"c{i}":1' for i in range(MOST_COLUMNS + 1))
    path.write_text('{"c1": 5}\n{' + members + "}\n")
    assert f"rows.jsonl, line 2: the line has {MOST_COLUMNS + 2} members and arrays, more than" in (
        problem_of(path)
    )


def test_columns_of_many_lines_of_json(tmp_path, monkeypatch):
    """The lines that determine the columns cannot have too many together."""
    monkeypatch.setattr(json_lines, "MOST_COLUMNS", 100)
    path = tmp_path / "rows.jsonl"
    rows = [{f"c{row}_{i}": row for i in range(10)} for row in range(40)]
    path.write_text("\n" + "\n".join(map(json.dumps, rows)))
    assert len(open_table(path).columns) == 100
    path.write_text(json.dumps({"a": ":" * 200}) + "\n" + json.dumps(rows[0]))
    assert [column.name for column in open_table(path).columns] == ["a"]


def test_length_of_a_line_of_json(tmp_path):
    path = tmp_path / "rows.jsonl.gz"
    line = b'{"a": "' + b"x" * LONGEST_VALUE
    for end, content in (("", line), ('"}', line + b'"}\n{"a": ""}\n')):
        path.write_bytes(gzip.compress(b'{"a": "y"}\n' + content, 1))
        for block_bytes in (1 << 20, 1 << 26):
            said = problem_of(path, block_bytes=block_bytes)
            assert "rows.jsonl.gz, line 2: the line is longer than 16 MiB" in said, end
    path.write_bytes(gzip.compress(b'{"a": 1}\n' + b" " * (2 * LONGEST_VALUE) + b'\n{"a": 2}\n', 1))
    assert np.concatenate([b.data["a"] for b in open_table(path).blocks()]).tolist() == [1.0, 2.0]


def compressed(path, *pieces):
    """Write a compressed text, pieces of which may be very long."""
    with gzip.open(path, "wb", 1) as file:
        file.writelines(pieces)
    return path


@pytest.mark.parametrize(
    ("pieces", "problem"),
    [
        (
            (b"7,", b"9" * LONGEST_VALUE),
            "the line is longer than 16 MiB, and its longest value is ",
        ),
        (
            (b'7,"', b"x\n" * LONGEST_VALUE),
            "a value begins with a quote that is not closed in",
        ),
        ((b'7,"', b"x" * LONGEST_VALUE, b'"\n7,8\n'), "a value begins with a quote that is not "),
    ],
)
def test_long_values_in_text(tmp_path, pieces, problem):
    path = compressed(tmp_path / "rows.csv.gz", b"a,b\n1,2\n3,4\n", *pieces)
    for block_bytes in (1 << 20, 1 << 26):
        said = problem_of(path, block_bytes=block_bytes)
        assert said.startswith(f"{path}, line 4: {problem}")
        assert ("column 'b' (index 1)" in said) == ("longest" in problem)


def test_the_longest_line_of_text(tmp_path):
    """A line just below the limit is read, in blocks of any size; empty ones may be before it."""
    path = tmp_path / "rows.csv"
    line = b"1," + b"x" * (LONGEST_VALUE - 4) + b"\n"
    path.write_bytes(b"a,b\n" + b"\n" * 100 + line + b"2,y\n" + line)
    for block_bytes in (1 << 20, 1 << 26):
        blocks = open_table(path, block_bytes=block_bytes, categorical=["b"]).blocks()
        rows = [value for block in blocks for value in block.data["b"].to_pylist()]
        assert list(map(len, rows)) == [LONGEST_VALUE - 4, 1, LONGEST_VALUE - 4]


@pytest.mark.parametrize("header", [None, True, False])
def test_columns_of_text(tmp_path, header):
    path = tmp_path / "rows.csv"
    path.write_text(",".join("1" * (MOST_COLUMNS + 1)) + "\n")
    said = problem_of(path, header=header)
    assert said.startswith(f"{path} has 131073 columns, more than the 131072 that a table may have")


def test_long_lines_are_not_the_only_one(tmp_path):
    """The first 64 KiB held one line: it was read as the header, whatever was below."""
    path = tmp_path / "rows.csv"
    names = ",".join(f"name{i:04d}" for i in range(5000))
    assert len(names) > 40_000
    rows = [",".join(f"{i % 7 + row / 8:.5f}" for i in range(5000)) for row in range(3)]
    path.write_text("\n".join([names, *rows]))
    table = open_table(path)
    assert table.notes == []
    assert [column.kind for column in table.columns[:2]] == ["numeric", "numeric"]
    assert sum(block.n_rows for block in table.blocks()) == 3
    strings = ",".join(f"a{i % 9}" for i in range(12_000))
    path.write_text(f"{strings}\n" * 4)
    assert "No header was detected" in str(open_table(path).notes[0])
    path.write_text(names)
    assert open_table(path).notes == ["The only line is read as the column names."]


def test_one_line_before_a_very_long_one(tmp_path):
    """Only the beginning of a file is inspected: a line that is alone in it is not the only one."""
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1," + "x" * (5 << 20) + "\n2,y\n")
    assert "The only line" not in "".join(map(str, open_table(path).notes))


def write_columns(path, columns, **settings):
    """Write a table as Parquet or as a compressed Arrow file."""
    if path.suffix == ".parquet":
        pa.parquet.write_table(pa.table(columns), path, compression="zstd", **settings)
    else:
        pa.feather.write_feather(pa.table(columns), path, compression="zstd")
    return path


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow"])
def test_long_strings_of_columns(tmp_path, name):
    values = ["a", None, "x" * (LONGEST_VALUE + 1), "b"]
    shared = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1, 0]), pa.array(["a", values[2]]))
    for strings in (values, shared):
        path = write_columns(tmp_path / name, {"n": [1.0, 2, 3, 4], "s": strings})
        table = open_table(path)
        with pytest.raises(TableError) as caught:
            list(table.blocks())
        assert str(caught.value).startswith(
            f"{path}, row 3, column 's': a string of 16777217 bytes is longer than the 16777216 "
        )
        assert "drop=['s']" in str(caught.value)
        (block,) = table.with_unused(["s"]).blocks()  # as remedied
        assert block.data["n"].to_pylist() == [1, 2, 3, 4]
        with pytest.raises(TableError, match="row 3, column 's'"):
            list(table.with_originals("values").blocks())


def to_rows(blocks):
    return {
        block.first_row + place: row
        for block in blocks
        for place, row in enumerate(block.data.to_pylist())
    }


@pytest.mark.parametrize("kind", ["strings", "dictionary", "runs"])
@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow"])
def test_long_strings_are_read_in_small_blocks(tmp_path, monkeypatch, name, kind):
    monkeypatch.setattr(columnar_files, "MOST_TEXT_BYTES", 8000)
    rng = np.random.default_rng(0)
    values = [None if i % 9 == 0 else str(i) * rng.integers(1, 1000) for i in range(120)]
    strings = pa.array(values)
    if kind == "dictionary":
        strings = strings.dictionary_encode()
    elif kind == "runs":
        if name == "rows.parquet":
            pytest.skip("Parquet has no runs")
        strings = pa.RunEndEncodedArray.from_arrays(pa.array(range(1, 121), pa.int32()), strings)
    path = write_columns(tmp_path / name, {"n": np.arange(120.0), "s": strings})
    table = open_table(path, block_bytes=900)
    blocks = list(table.blocks())
    expected = {row: {"n": row, "s": value} for row, value in enumerate(values)}
    assert to_rows(blocks) == expected
    assert to_rows(table.blocks(seed=1)) == expected
    assert len(blocks) > 10
    for block in blocks:
        lengths = [len(each or "") for each in block.data["s"].to_pylist()]
        assert sum(lengths) <= 8000
    read = [block for piece in cut_table(table) for block in piece.blocks()]
    assert [row for block in read for row in block.data["n"].to_pylist()] == list(range(120))


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow"])
def test_rows_of_long_strings(tmp_path, monkeypatch, name):
    monkeypatch.setattr(columnar_files, "MOST_TEXT_BYTES", 8000)
    columns = {f"c{i}": ["a", "b" * (3000 if i < 3 else 2)] for i in range(9)}
    path = write_columns(tmp_path / name, columns)
    said = problem_of(path, block_bytes=900)
    assert said.startswith(f"{path}, row 2: its strings have 9012 bytes, more than the 8000 that")
    columns["c0"] = pa.DictionaryArray.from_arrays(
        pa.array([0, 1]), pa.array(["a" * 5000, "b" * 5000]), ordered=True
    )
    path = write_columns(tmp_path / "ordered.arrow", columns)
    said = problem_of(path, block_bytes=900)
    assert re.search(
        "categories of column 'c0' would take .* memory, more than the limit of 8", said
    )


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow"])
def test_columns_of_typed_files(tmp_path, monkeypatch, name):
    monkeypatch.setattr(limits, "MOST_COLUMNS", 5)
    path = write_columns(tmp_path / name, {f"c{i}": [1.0] for i in range(5)})
    assert len(open_table(path).columns) == 5
    path = write_columns(tmp_path / name, {f"c{i}": [1.0] for i in range(6)})
    assert (
        "has 6 columns, more than the 5 that a table may have; write the numbers as a matrix"
        in (problem_of(path))
    )


def test_columns_of_matrices(tmp_path, monkeypatch):
    """Matrices have no names and kinds of columns: there may be far more of them."""
    wide = np.zeros((2, MOST_COLUMNS + 1), np.uint8)
    np.save(tmp_path / "rows.npy", wide)
    (block,) = open_table(tmp_path / "rows.npy").blocks()
    assert block.data.shape == wide.shape
    (tmp_path / "rows.svm").write_text("1 1:1\n2 100000000:3\n")
    (block,) = open_table(tmp_path / "rows.svm").blocks()
    assert block.data.shape == (2, 10**8)
    widest = np.zeros((1, MOST_FEATURES + 1), np.uint8)
    np.savez_compressed(tmp_path / "rows.npz", X=widest)
    header = struct.pack(">HBB2I", 0, 8, 2, *widest.shape)
    (tmp_path / "images.idx.gz").write_bytes(gzip.compress(header + widest.tobytes(), 1))
    for name in ("rows.npz", "images.idx.gz"):
        assert "has rows of 16777217 numbers, more than the 16777216" in problem_of(tmp_path / name)


def test_long_labels_of_npz(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez_compressed(path, X=np.zeros((1, 2)), y=np.array(["a" * (5 << 20)]))
    assert "the strings of y have 20971520 bytes" in problem_of(path)
    np.savez(path, X=np.zeros((500, 2)), y=np.array(["a" * 100, *(499 * "b")]))
    lengths = [block.n_rows for block in open_table(path, block_bytes=4000).blocks()]
    assert lengths == [10] * 50  # 400 bytes each
