"""Pieces of a table have the rows of the table, in order, whatever the format and the sizes."""

import gzip
import itertools
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelmill.io import TableError, open_table
from kernelmill.io.pieces import cut_table

SIZES = (1, 7, 40, 300, 1 << 20)


def values(block):
    data = block.data
    if isinstance(data, pa.RecordBatch):
        rows = list(zip(*(column.to_pylist() for column in data.columns), strict=True))
    else:
        rows = (data.toarray() if scipy.sparse.issparse(data) else data).tolist()
    labels = [None] * len(rows) if block.labels is None else block.labels.tolist()
    return list(zip(map(tuple, rows), labels, strict=True))


def assert_same_rows(table, size):
    """Compare all pieces, each read in another process as far as pickle can tell."""
    expected = [(str(b.file), *row) for b in table.blocks() for row in values(b)]
    found, position = [], 0
    for piece in cut_table(table, size):
        assert piece.n_rows > 0
        assert piece.first_row == position
        for block in pickle.loads(pickle.dumps(piece)).blocks():
            assert block.first_row == position
            position += block.n_rows
            found += [(str(block.file), *row) for row in values(block)]
    assert found == expected
    return expected


def write_columns(folder, name, n_rows):
    rng = np.random.default_rng(n_rows)
    table = pa.table(
        {
            "a": rng.normal(size=n_rows),
            "b": pa.array([None if i % 7 == 3 else f"w {i % 5}" for i in range(n_rows)]),
            "c": pa.array(rng.integers(0, 9, n_rows)),
        }
    )
    path = folder / f"{name}-{n_rows}"
    if name == "parquet":
        pa.parquet.write_table(table, path.with_suffix(".parquet"), row_group_size=13)
        return path.with_suffix(".parquet")
    if name == "arrow":
        pa.feather.write_feather(table, path.with_suffix(".arrow"), chunksize=11)
        return path.with_suffix(".arrow")
    path = path.with_suffix(".jsonl")
    lines = [str(row).replace("'", '"').replace("None", "null") for row in table.to_pylist()]
    path.write_text("\n".join(lines) + "\n\n")
    return path


def write_matrix(folder, name, n_rows):
    X = np.arange(n_rows * 3, dtype=np.float32).reshape(n_rows, 3) / 8
    y = np.arange(n_rows) % 3
    path = folder / f"{name}-{n_rows}"
    if name == "npy":
        np.save(path.with_suffix(".npy"), X)
        return path.with_suffix(".npy")
    if name == "fortran":
        np.save(path.with_suffix(".npy"), np.asfortranarray(X))
        return path.with_suffix(".npy")
    if name.startswith("npz"):
        (np.savez_compressed if name == "npz_compressed" else np.savez)(path, X=X, y=y)
        return path.with_suffix(".npz")
    if name == "svmlight":
        lines = [f"{t} 1:{r[0]} 3:{r[2]} # row" for r, t in zip(X, y, strict=True)]
        path = path.with_suffix(".svm")
        path.write_text("\n# comment\n".join(lines))
        return path
    images = folder / f"images{n_rows}-idx2-ubyte"
    images.write_bytes(
        b"\0\0\x08\2" + np.array([n_rows, 3], ">u4").tobytes() + X.astype("u1").tobytes()
    )
    labels = folder / f"labels{n_rows}-idx1-ubyte"
    labels.write_bytes(
        b"\0\0\x08\1" + np.array([n_rows], ">u4").tobytes() + y.astype("u1").tobytes()
    )
    return images


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("write", "name"),
    [(write_columns, each) for each in ("parquet", "arrow", "jsonl")]
    + [
        (write_matrix, each)
        for each in ("npy", "fortran", "npz", "npz_compressed", "svmlight", "idx")
    ],
)
def test_rows_of_formats(tmp_path, write, name, size):
    paths = [write(tmp_path, name, n_rows) for n_rows in (40, 1, 23)]
    table = open_table(paths, block_bytes=100)
    assert len(assert_same_rows(table, size)) == 64
    is_one = name == "npz_compressed" or size >= (300 if name == "idx" else 1 << 20)
    assert (len(cut_table(table, size)) == 3) == is_one


@pytest.mark.parametrize("name", ["npy", "npz"])
def test_empty_matrix_has_no_pieces(tmp_path, name):
    assert cut_table(open_table(write_matrix(tmp_path, name, 0))) == []


TEXTS = {
    "header": "a,b\n1,x\n2,y\n3,\n4,z\n",
    "no end": "a,b\n1,x\n2,y\n3,z",
    "byte order mark": "\ufeff1,x\n2,y\n3,z\n",
    "header only": "a,b\n",
    "windows": "a,b\r\n1,x\r\n\r\n2,y\r\n3,z\r\n",
    "only carriage returns": "a,b\r1,x\r2,y\r3,z\r",
    "empty lines": "\n\na,b\n\n1,x\n   \n\n2,y\n\n\n",
    "whitespace": " 1   x\n2 \t y \n\n 3 z",
    "quoted newlines": 'a,b\n1,"x\ny\n\nz"\n2,"a ""b""\n"\n3,"x, y"\n4,plain\n5,"\n"\n',
    "one long value": 'a,b\n1,"' + "long\n" * 40 + '"\n2,y\n',
    "quotes inside": 'a,b\n1,5" pipe\n2,x"y\n3,"q"\n4,z\n',
    "one column": "a\n1\n\n2\n 3 \n",
    "non-ASCII": "a,b\n1,é\n2,日本\n3,ü\n",
    "percent": "a,b\n1 %,1.5\n2 %,2\n3 %,7\n",
    "decimal commas": "a;b\n1,5;x\n1.234,5;y\n3;z\n",
}


@pytest.mark.parametrize("size", [1, 3, 8, 50])
@pytest.mark.parametrize("name", TEXTS)
def test_rows_of_text(tmp_path, name, size):
    path = tmp_path / "rows.csv"
    path.write_bytes(TEXTS[name].encode())
    for block_bytes in (1, 1000):
        rows = assert_same_rows(open_table(path, block_bytes=block_bytes), size)
    is_cut = len(cut_table(open_table(path), size)) > 1
    if name in ("only carriage returns", "one column", "header only"):
        assert is_cut == (name == "one column" and size < 8)
    elif size == 1:
        assert is_cut or len(rows) < 2


def test_compressed_and_encoded_text_is_one_piece(tmp_path):
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(TEXTS["quoted newlines"].encode()))
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(b'{"a": 1}\n{"a": 2}\n'))
    (tmp_path / "rows.csv").write_bytes("a,b\n1,é\n2,ü\n".encode("latin-1"))
    for name, options, n_rows in (
        ("rows.csv.gz", {}, 5),
        ("rows.jsonl.gz", {}, 2),
        ("rows.csv", {"encoding": "latin-1"}, 2),
    ):
        table = open_table(tmp_path / name, **options)
        assert len(assert_same_rows(table, 1)) == n_rows
        assert len(cut_table(table, 1)) == 1


VALUES = st.text(st.sampled_from('ab",\n\r é'), max_size=6)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=30), st.integers(1, 60))
def test_any_text(tmp_path_factory, records, size):
    """Quoted values may hold anything; each record has a number, so none is empty."""
    path = tmp_path_factory.mktemp("text") / "rows.csv"
    lines = ["n,x,y"]
    for number, record in enumerate(records):
        quoted = ['"' + value.replace('"', '""') + '"' for value in record]
        lines.append(",".join([str(number), *quoted]))
    path.write_bytes(("\n".join(lines) + "\n").encode())
    table = open_table(path, header=True, delimiter=",", categorical=["x", "y"], block_bytes=64)
    assert len(assert_same_rows(table, size)) == len(records)


def test_derived_kinds_travel_with_the_piece(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n01,1\n02,2\n03,3\n")
    table = open_table(path).with_kinds(categorical=["a"])
    assert [row[1][0] for row in assert_same_rows(table, 4)] == ["01", "02", "03"]


def test_counting_runs_where_it_is_told_to(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(TEXTS["quoted newlines"])
    calls = []

    def run(function, places):
        calls.append(len(places))
        return map(function, pickle.loads(pickle.dumps(places)))

    pieces = cut_table(open_table(path), 8, run)
    assert [piece.first_row for piece in pieces] == list(
        itertools.accumulate([0, *(piece.n_rows for piece in pieces[:-1])])
    )
    assert calls[0] > 4
    assert set(calls[1:]) == {1}  # joined ones are counted again


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("1,2,3", "line 201: expected 2 values, got 3"),
        ('1,"open', "line 201: a value begins with a quote that is not closed"),
    ],
)
def test_errors_name_the_line(tmp_path, bad, message):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "1,2\n" * 199 + bad + "\n" + "1,2\n" * 50)
    with pytest.raises(TableError, match=message):
        cut_table(open_table(path, header=True, delimiter=","), 100)


def test_errors_of_values_name_the_line(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "1,2\n" * 199 + "1,x\n" + "1,2\n" * 50)
    pieces = cut_table(open_table(path, numeric=["b"]), 100)
    bad = next(piece for piece in pieces if piece.first_row + piece.n_rows > 199)
    with pytest.raises(TableError, match=r"line 201, column 'b' .index 1.: 'x' is not a number"):
        list(bad.blocks())
    assert str(bad).startswith(f"{path}, rows {bad.first_row + 1} to ")


def test_file_that_other_machines_do_not_see(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    (piece,) = (pickle.loads(pickle.dumps(each)) for each in cut_table(open_table(path)))
    path.write_text("a,b\n1,2\n3,4\n5,6\n")
    with pytest.raises(
        TableError, match="make the same files available to all workers under the same paths"
    ):
        list(piece.blocks())
    path.unlink()
    with pytest.raises(TableError, match="No such file"):
        list(piece.blocks())


def test_pickled_pieces_are_small(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "\n".join(f"{i},word {i % 50}" for i in range(50_000)))
    pieces = cut_table(open_table(path), 1 << 16)
    assert len(pieces) > 8
    assert all(len(pickle.dumps(piece)) < 3000 for piece in pieces)
