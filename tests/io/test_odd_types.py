"""Types of data frames and Arrow tables that few people have, and wrong arguments."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from kernelmill import fit_table
from kernelmill.errors import KernelmillError
from kernelmill.io import TableError, open_table
from kernelmill.runtime.progress import SilentProgress

N = 120
X = np.random.default_rng(0).normal(size=N)
QUICK = {"tune": False, "n_components": 16, "length_scale": 1.0, "alpha": 1e-3}
INTERVAL = pa.array([(1, 2, 3)] * N, pa.month_day_nano_interval())
ODD = {
    "list": pa.array([[1]] * N),
    "struct": pa.array([{"p": 1}] * N),
    "binary": pa.array([b"a"] * N),
    "interval": INTERVAL,
    "union": pa.UnionArray.from_sparse(
        pa.array([0, 1] * 60, pa.int8()), [pa.array(range(N)), pa.array(["a"] * N)]
    ),
    "dictionary of lists": pa.DictionaryArray.from_arrays(pa.array([0] * N), pa.array([[1]])),
    "uuid": pa.array([b"0123456789abcdef"] * N, pa.uuid()),
}


@pytest.mark.parametrize("name", ODD)
def test_types_that_cannot_be_inputs(name):
    table = pa.table({"a": ODD[name], "x": X, "y": X**2})
    with pytest.raises(TableError, match="'a' is of a kind that cannot be an input"):
        fit_table(table, "y", **QUICK)
    assert fit_table(table, "y", drop=["a"], **QUICK).summary.n_inputs == 1
    with pytest.raises(TableError, match="the target 'a' must contain numbers or strings"):
        fit_table(table, "a", **QUICK)


def test_run_end_encoded_columns():
    runs = {"a": pa.RunEndEncodedArray.from_arrays([60, N], ["a", "b"])}
    runs["b"] = pa.RunEndEncodedArray.from_arrays([60, N], [1.0, 2.0])
    table = pa.table({**runs, "y": X})
    assert [column.kind for column in open_table(table).columns] == [
        "category",
        "numeric",
        "numeric",
    ]
    assert fit_table(table, "y", **QUICK).summary.n_inputs == 3


def test_intervals_periods_and_sparse_columns_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = make_frame(pandas)
    table = open_table(frame)
    kinds = {column.name: column.kind for column in table.columns}
    assert kinds == {
        "cut": "category",
        "interval": "category",
        "month": "date",
        "sparse": "numeric",
        "y": "numeric",
    }
    (block,) = table.blocks()
    assert block.data.column("cut").to_pylist()[:2] == [str(each) for each in frame["cut"][:2]]
    assert block.data.column("interval").to_pylist()[:2] == ["(0.0, 1.0]", None]
    assert block.data.column("sparse").to_pylist() == np.where(X > 1, X, 0.0).tolist()
    assert list(frame.dtypes) == list(make_frame(pandas).dtypes)  # unchanged
    model = fit_table(frame, "y", drop=["interval"], **QUICK)
    assert list(model.predict_table(frame).columns) == ["prediction"]
    assert fit_table(frame, "cut", drop=["interval"], **QUICK, epochs=1).summary.classes is not None
    twice = pandas.DataFrame(np.c_[X, X], columns=["a", "a"])
    with pytest.raises(TableError, match="two columns of the data frame have the name 'a'"):
        open_table(twice)


def make_frame(pandas):
    intervals = pandas.arrays.IntervalArray.from_tuples([(0, 1), np.nan] * (N // 2))
    return pandas.DataFrame(
        {
            "cut": pandas.cut(X, [-9, -1, 0, 1, 9]),
            "interval": intervals,
            "month": pandas.period_range("2020-01", periods=N, freq="M"),
            "sparse": pandas.arrays.SparseArray(np.where(X > 1, X, 0.0)),
            "y": X,
        }
    )


def test_one_column_is_no_table():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for series in (pandas.Series(X), polars.Series(X), pa.array(X), pa.chunked_array([X])):
        with pytest.raises(
            TableError, match=r"source must be a table, got a .* which is one column"
        ):
            fit_table(series, "y")


def test_masked_values_are_missing():
    masked = np.ma.masked_array(np.c_[X, X**2], mask=np.zeros((N, 2), bool))
    masked[3, 0] = np.ma.masked
    with pytest.raises(TableError, match="row 4"):
        fit_table(masked, 1, **QUICK)
    with pytest.raises(TableError, match="'a' has no value in row 4"):
        fit_table({"a": masked[:, 0], "y": X}, "y", **QUICK)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weights": np.ones(N)}, "weights must be the name of a column"),
        ({"weights": True}, "weights must be the name of a column"),
        ({"target": ["y"]}, "target must be the name of a column"),
        ({"drop": None}, "drop must be a list of column names"),
        ({"checkpoint": 3}, "checkpoint must be a string or a path"),
        ({"progress": 3}, "progress must have the methods"),
        ({"day_first": "month"}, "day_first must be True or False"),
        ({"tune": "yes"}, "tune must be True or False"),
        ({"validation": 3}, "must be a path"),
    ],
)
def test_wrong_arguments(options, words):
    columns = {"x": X, "y": X**2, "when": [dt.date(2024, 1, 1)] * N}
    arguments = {"target": "y", "progress": SilentProgress(), **QUICK, **options}
    with pytest.raises(KernelmillError, match=words):
        fit_table(columns, **arguments)


def test_no_source():
    with pytest.raises(KernelmillError, match="source must be a path"):
        fit_table(None, "y")


def test_mixed_types_in_a_column_of_json_lines_that_is_not_used(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1, "m": 1, "n": {"k": 1}}\n{"a": 2, "m": "x", "n": 3}\n')
    table = open_table(path)
    assert [column.name for column in table.columns] == ["a", "m", "n"]
    with pytest.raises(TableError, match="column 'm' has a number in one line and a string"):
        list(table.blocks())
    (block,) = table.with_unused(["m", "n"]).blocks()
    assert block.data["a"].to_pylist() == [1.0, 2.0]
    with pytest.raises(TableError, match="column 'm' has a number"):
        list(table.with_unused(["m", "n"]).with_originals("values").blocks())
    for broken in ('{"a": 1, "a": 2 "m": 3}', '{"a": [1, 2, "m": 3}', "[1]"):
        path.write_text('{"a": 1, "m": 1}\n{"a": 2, "m": "x"}\n' + broken + "\n")
        with pytest.raises(TableError):
            open_table(path)
    path.write_text('{"a/b": 1, "c": 1}\n{"a/b": "x", "c": 2}\n')
    with pytest.raises(TableError, match="'a/b' has a number"):
        open_table(path)
    # After the lines that determine the types.
    line = '{"a": 1, "m": 2}\n'
    path.write_text(line * ((4 << 20) // len(line) + 9) + '{"a": 1, "m": "x"}\n')
    with pytest.raises(TableError, match="column 'm' has a number in one"):
        list(open_table(path).blocks())
    *_, last = open_table(path).with_unused(["m"]).blocks()
    assert last.data["a"][-1].as_py() == 1.0
