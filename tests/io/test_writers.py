"""Written files can be read again, and are written atomically."""

import os

import numpy as np
import pyarrow.feather
import pyarrow.parquet
import pytest

from kernelmill.errors import KernelmillError
from kernelmill.io import TableError, open_table, open_writer

COLUMNS = {"label": "string", 'p, "q"': "float32", "n": np.int64}
LABELS = ["yes", 'a "b", c', "new\nline", "é", None]
P = np.array([0.1, 1e-9, 2.5, -1, 3e30], np.float32)
N = np.arange(5) - 2


def write(path, labels=LABELS):
    with open_writer(path, COLUMNS) as writer:
        writer.write({"label": labels[:2], "n": N[:2], 'p, "q"': P[:2]})
        writer.write({"label": [], "n": [], 'p, "q"': []})
        writer.write({"label": labels[2:], "n": N[2:], 'p, "q"': P[2:]})
        assert not path.exists()
        assert writer.n_rows == 5


@pytest.mark.representative
@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.parquet", "p.feather", "p.ARROW"])
def test_round_trip(tmp_path, name):
    path = tmp_path / name
    write(path)
    (block, *rest) = open_table(path).blocks()
    columns = block.data.to_pydict()
    for more in rest:
        for column, values in more.data.to_pydict().items():
            columns[column] += values
    assert columns["label"] == LABELS
    assert np.array_equal(np.array(columns['p, "q"'], np.float32), P)  # to the last bit
    assert columns["n"] == N.tolist()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_types_of_columnar_files(tmp_path):
    write(tmp_path / "p.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "p.parquet")
    assert [str(kind) for kind in table.schema.types] == ["string", "float", "int64"]
    write(tmp_path / "p.feather")
    assert pyarrow.feather.read_table(tmp_path / "p.feather").equals(table)


def test_csv_has_quotes_only_where_needed(tmp_path):
    path = tmp_path / "p.csv"
    with open_writer(path, {"label": "string", "n": "int8"}) as writer:
        writer.write({"label": np.array(["yes", "no"]), "n": [1, 2]})
    assert path.read_text() == "label,n\nyes,1\nno,2\n"


def test_parquet_groups_are_not_tiny(tmp_path):
    path = tmp_path / "p.parquet"
    with open_writer(path, {"n": "int64"}) as writer:
        for first in range(0, 100_000, 1000):
            writer.write({"n": np.arange(first, first + 1000)})
    assert pyarrow.parquet.ParquetFile(path).num_row_groups == 2
    assert pyarrow.parquet.read_table(path)["n"].to_pylist() == list(range(100_000))


@pytest.mark.parametrize("n_blocks", [0, 1, 3])
def test_npy(tmp_path, n_blocks):
    path = tmp_path / "p.npy"
    with open_writer(path, {"a": "float32", "b": "int16"}) as writer:
        for _ in range(n_blocks):
            writer.write({"b": [3, 4], "a": [1.5, 2.5]})
            writer.write_matrix(np.array([[5, 6]]))
    expected = np.array([[1.5, 3], [2.5, 4], [5, 6]] * n_blocks, np.float32).reshape(-1, 2)
    found = np.load(path, allow_pickle=False)
    assert found.dtype == np.float32
    assert np.array_equal(found, expected)


def test_matrix_to_other_formats(tmp_path):
    path = tmp_path / "p.csv"
    with open_writer(path, {"a": "float64", "b": "float64"}) as writer:
        writer.write_matrix([[1.5, 2], [3, 4]])
    assert path.read_text() == "a,b\n1.5,2\n3,4\n"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("name", ["p.csv", "p.parquet", "p.arrow", "p.npy"])
def test_errors_leave_nothing(tmp_path, error, name):
    def fail(path):
        with open_writer(path, {"n": "int64"}) as writer:
            writer.write({"n": [1, 2]})
            raise error

    with pytest.raises(error):
        fail(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / name).write_bytes(b"before")
    with pytest.raises(error):
        fail(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"before"


def test_full_disk(tmp_path, monkeypatch):
    class Full:
        def write(self, data):
            raise OSError(28, "No space left on device")

    def fill():
        with open_writer(tmp_path / "p.npy", {"n": "int64"}) as writer:
            monkeypatch.setattr(writer._format, "_stream", Full())
            writer.write({"n": [1]})

    with pytest.raises(TableError, match=r"p\.npy cannot be written: no space left"):
        fill()
    assert list(tmp_path.iterdir()) == []


def test_link_and_permissions(tmp_path):
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    link.symlink_to(target)
    with open_writer(link, {"n": "int64"}) as writer:
        writer.write({"n": [1]})
    assert link.is_symlink()
    assert target.read_text() == "n\n1\n"
    (tmp_path / "plain").touch()
    assert target.stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize(
    ("name", "columns", "match"),
    [
        ("p.xlsx", {"a": "int64"}, r"one of the extensions \.csv, \.tsv, \.parquet"),
        ("p", {"a": "int64"}, "one of the extensions"),
        ("no/p.csv", {"a": "int64"}, "must lie in an existing folder"),
        ("p.npy", {"a": "string"}, "only numbers"),
        ("p.csv", {"a": "complex128"}, "must hold real numbers"),
        ("p.csv", {}, "at least one column"),
        ("folder.csv", {"a": "int64"}, "must be the path of a file"),
    ],
)
def test_rejected(tmp_path, name, columns, match):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(KernelmillError, match=match):
        open_writer(tmp_path / name, columns)


def test_wrong_values(tmp_path):
    path = tmp_path / "p.csv"
    writer = open_writer(path, {"a": "int64", "b": "int64"})
    with pytest.raises(TableError, match="not open"):
        writer.write({"a": [1], "b": [2]})
    with writer:
        with pytest.raises(TableError, match="must have the columns a, b, got a"):
            writer.write({"a": [1]})
        with pytest.raises(TableError, match="the same length"):
            writer.write({"a": [1], "b": [1, 2]})
        with pytest.raises(TableError, match="one dimension"):
            writer.write({"a": [1], "b": [[1]]})
        with pytest.raises(TableError, match="2 columns"):
            writer.write_matrix(np.ones((2, 3)))
    assert path.read_text() == "a,b\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_that_is_not_writable(tmp_path):
    tmp_path.chmod(0o500)
    with (
        pytest.raises(TableError, match="cannot be written"),
        open_writer(tmp_path / "p.csv", {"a": "int64"}),
    ):
        pass


def test_columns_of_blocks(tmp_path):
    source = tmp_path / "rows.csv"
    source.write_text("a,b\n1.5,x\n?,\n")
    (block,) = open_table(source).blocks()
    for name in ("p.csv", "p.parquet"):
        with open_writer(tmp_path / name, {"b": "string", "a": "float64"}) as writer:
            writer.write({name: block.data.column(name) for name in ("a", "b")})
        (again,) = open_table(tmp_path / name).blocks()
        assert again.data.to_pydict() == {"b": ["x", None], "a": [1.5, None]}
    with open_writer(tmp_path / "p.npy", {"a": "float32"}) as writer:
        writer.write({"a": block.data.column("a")})
    assert np.array_equal(np.load(tmp_path / "p.npy"), [[1.5], [np.nan]], equal_nan=True)


def test_files_that_are_read_are_not_replaced(tmp_path):
    path, link = tmp_path / "p.npy", tmp_path / "link.npy"
    path.write_bytes(b"before")
    link.symlink_to(path)
    with pytest.raises(KernelmillError, match="is read, got"):
        open_writer(link, {"a": "int64"}, inputs=[tmp_path / "other", path])
    assert path.read_bytes() == b"before"
