"""Data frames, Arrow tables, dictionaries and arrays as tables."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from kernelmill.errors import ArgumentError
from kernelmill.io import TableError, open_table
from kernelmill.io.memory import make_like

COLUMNS = {"x": np.array([1.5, np.nan, 3.0]), "town": np.array(["Rome", "Oslo", "Rome"])}
STRUCTURED = np.rec.fromarrays(list(COLUMNS.values()), names=list(COLUMNS))
FRAMES = {
    "pandas": pd.DataFrame(COLUMNS, index=[7, 8, 9]),
    "polars": pl.DataFrame(COLUMNS),
    "lazy": pl.LazyFrame(COLUMNS),
    "arrow": pa.table(COLUMNS),
    "batch": pa.table(COLUMNS).to_batches()[0],
    "dict": COLUMNS,
    "lists": {"x": [1.5, None, 3.0], "town": ["Rome", "Oslo", "Rome"]},
    "structured": STRUCTURED,
}


@pytest.mark.representative
@pytest.mark.parametrize("kind", FRAMES)
def test_all_kinds_of_frames_are_one_table(kind):
    table = open_table(FRAMES[kind], block_bytes=48)
    assert [(c.name, c.kind) for c in table.columns] == [("x", "numeric"), ("town", "category")]
    assert table.n_rows == 3
    for seed in (None, 0, 1):
        rows = {}
        for block in table.blocks(seed):
            for place, row in enumerate(block.data.to_pylist()):
                rows[block.first_row + place] = (row["x"], row["town"])
        assert rows == {0: (1.5, "Rome"), 1: (None, "Oslo"), 2: (3.0, "Rome")}


def test_numbers_are_not_copied():
    numbers = np.arange(1000.0)
    sources = (
        {"x": numbers},
        pl.DataFrame({"x": pl.Series(numbers)}),
        pd.DataFrame({"x": numbers}, copy=False),
        pa.table({"x": numbers}),
    )
    for source in sources:
        held = source["x"].to_numpy() if not isinstance(source, dict) else numbers
        (block,) = open_table(source).blocks()
        view = block.data.column("x").to_numpy(zero_copy_only=True)
        assert np.shares_memory(view, np.asarray(held))
    (block,) = open_table(numbers.reshape(-1, 10)).blocks()
    assert np.shares_memory(block.data, numbers)


def test_declared_categories_stay_categories():
    frame = pd.DataFrame({"code": pd.Categorical([3, 1, 3]), "size": [1, 2, 3]})
    frame["size"] = pd.Categorical(["S", "L", "M"], ["S", "M", "L"], ordered=True)
    table = open_table(frame)
    assert [c.kind for c in table.columns] == ["category", "category"]
    assert table.ordered == {"size"}
    (block,) = table.blocks()
    assert block.data.column("code").to_pylist() == ["3", "1", "3"]
    assert open_table(pl.DataFrame({"c": ["a"]}).cast(pl.Categorical)).columns[0].kind == "category"


def test_matrices_with_and_without_labels():
    X = np.arange(24.0).reshape(6, 4)
    y = np.array(["a", "b"] * 3)
    for source in (X, scipy.sparse.csr_array(X), (X, y), (scipy.sparse.csr_matrix(X), y)):
        table = open_table(source, block_bytes=2 * 4 * 8)
        assert table.columns is None
        assert (table.n_features, table.n_rows) == (4, 6)
        blocks = list(table.blocks())
        assert len(blocks) > 1
        rows = [b.data.toarray() if scipy.sparse.issparse(b.data) else b.data for b in blocks]
        np.testing.assert_array_equal(np.concatenate(rows), X)
        assert table.carries_labels == isinstance(source, tuple)
        if table.carries_labels:
            assert np.concatenate([b.labels for b in blocks]).tolist() == y.tolist()
    assert open_table((X.reshape(6, 2, 2, 1), y)).n_features == 4
    named = open_table(X, names=["a", "b", "c", "d"])
    assert [c.name for c in named.columns] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ({"a": [1, 2], "b": [1]}, {}, "must have the same length, got 'a' 2, 'b' 1"),
        ({"a": np.ones((2, 2))}, {}, r"column 'a' must have one dimension, got shape \(2, 2\)"),
        ({"a": 3}, {}, "column 'a' must be an array or a list, got int"),
        ({}, {}, "dictionary of columns has no columns"),
        (pd.DataFrame({"a": [1, "x"]}), {}, "column 'a' has .*: int in row 1, str in row 2"),
        (np.ones(3), {}, r"must have two dimensions, rows and columns, got shape \(3,\)"),
        (np.array([[1, "x"]], object), {}, "must hold real numbers, got dtype object; pass a data"),
        (np.ones((2, 2)), {"names": ["a"]}, "must have one name for each column, got 1 for"),
        (np.ones((2, 2)), {"names": ["a", "a"]}, "must be unique"),
        (np.ones((2, 2)), {"categorical": [0]}, r"name its columns \(names\)"),
        (pd.DataFrame({"a": [1]}), {"names": ["a"]}, "names is for NumPy arrays"),
        (pd.DataFrame({"a": [1]}), {"delimiter": ","}, "delimiter is for text files"),
        ((np.ones((2, 2)), [1]), {}, "y must have one label for each of 2 rows"),
        ((pd.DataFrame({"a": [1]}), [1, 2]), {}, "y has 2 labels for 1 rows of X"),
        (
            (pd.DataFrame({"labels": [1]}), [1]),
            {},
            "y and a column of X have the same name, 'labels'",
        ),
        (np.array([[2**60, 1]]), {}, "integers beyond"),
    ],
)
def test_bad_data_are_reported(source, options, message):
    with pytest.raises(TableError, match=message):
        for _ in open_table(source, **options).blocks():
            pass


def test_options_of_files_are_rejected(tmp_path):
    with pytest.raises(ArgumentError, match="format is for files, got 'csv'"):
        open_table({"a": [1]}, format="csv")
    path = tmp_path / "rows.csv"
    path.write_text("1,2\n")
    with pytest.raises(ArgumentError, match="names is for NumPy arrays, got files"):
        open_table(path, names=["a", "b"])


def test_other_data_frames_are_rejected():
    class DataFrame:
        def __iter__(self):
            return iter(["a", "b"])

    with pytest.raises(TableError, match="convert it to pandas, polars or pyarrow"):
        open_table(DataFrame())


def test_results_have_the_kind_of_the_source():
    new = {"p": np.array([0.0, 1.0, 2.0])}
    pandas = make_like(FRAMES["pandas"], new, keep=True)
    assert pandas.index.tolist() == [7, 8, 9]
    assert list(pandas.columns) == ["x", "town", "p"]
    for kind in ("polars", "lazy"):
        assert make_like(FRAMES[kind], new, keep=True).columns == ["x", "town", "p"]
        assert make_like(FRAMES[kind], new).columns == ["p"]
    for kind in ("arrow", "batch"):
        assert make_like(FRAMES[kind], new, keep=True).column_names == ["x", "town", "p"]
    assert list(make_like(COLUMNS, new, keep=True)) == ["x", "town", "p"]
    assert make_like(STRUCTURED, new, keep=True).dtype.names == ("x", "town", "p")
    assert make_like(np.ones((3, 2)), new)["p"].tolist() == [0.0, 1.0, 2.0]
    assert make_like("rows.csv", new).column_names == ["p"]
