"""Keys of rows: the same in every file format and for any size of blocks."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kernelmill.encoding.inputs import choose_inputs
from kernelmill.encoding.row_keys import InputKeys
from kernelmill.io import open_table


def read_keys(source, target="y", **options):
    table = open_table(source, **options)
    row_keys = InputKeys(choose_inputs(table, target, []))
    return np.concatenate([row_keys.of(block) for block in table.blocks()])


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 400
    rows = pd.DataFrame(
        {
            "size": rng.integers(0, 3, n) / 4,
            "count": rng.integers(0, 2, n),
            "town": rng.choice(["Rome", "Oslo", "São Paulo"], n),
            "flag": rng.random(n) < 0.5,
            "day": pd.to_datetime("2024-01-30") + pd.to_timedelta(rng.integers(0, 3, n), "D"),
            "y": rng.normal(size=n),
        }
    )
    rows.loc[::7, "size"] = np.nan
    rows.loc[::11, "town"] = None
    return rows


@pytest.mark.representative
def test_keys_do_not_depend_on_the_format(frame, tmp_path):
    expected = read_keys(frame)
    groups = frame.drop(columns="y").groupby(list(frame.columns[:-1]), dropna=False).ngroup()
    # Equal keys if and only if the inputs are equal.
    assert pd.Series(expected).groupby(groups.to_numpy()).nunique().max() == 1
    assert len(np.unique(expected)) == groups.nunique() < len(frame)

    table = pa.Table.from_pandas(frame, preserve_index=False)
    encoded = table.set_column(2, "town", table["town"].dictionary_encode())
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=90)
    pq.write_table(encoded, tmp_path / "dictionaries.parquet", row_group_size=50)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.assign(flag=frame["flag"].astype(str).str.upper()).to_csv(
        tmp_path / "upper.csv", index=False
    )
    frame.to_json(
        tmp_path / "rows.jsonl", orient="records", lines=True, date_format="iso", date_unit="s"
    )
    for name in ("rows.parquet", "dictionaries.parquet", "rows.csv", "upper.csv", "rows.jsonl"):
        for block_bytes in (1500, 1 << 20):
            found = read_keys(tmp_path / name, block_bytes=block_bytes)
            np.testing.assert_array_equal(found, expected, err_msg=name)
    np.testing.assert_array_equal(read_keys(encoded), expected)
    # The order of rows and the names of columns do not matter, and neither does the target.
    order = np.random.default_rng(1).permutation(len(frame))
    other = frame.iloc[order].rename(columns={"size": "length"}).assign(y=0.5)
    np.testing.assert_array_equal(read_keys(other), expected[order])


def test_times_are_those_of_text(tmp_path):
    moments = pd.to_datetime(
        ["2024-05-31T12:00:00.123456", "1969-12-31T23:59:59"] * 3, format="ISO8601", utc=True
    )
    frame = pd.DataFrame({"at": moments, "y": range(6)})
    frame.to_parquet(tmp_path / "rows.parquet")
    rows = "".join(f"{each.isoformat()},{y}\n" for each, y in zip(moments, range(6), strict=True))
    (tmp_path / "rows.csv").write_text(f"at,y\n{rows}")
    found = [read_keys(tmp_path / name) for name in ("rows.parquet", "rows.csv")]
    np.testing.assert_array_equal(*found)
    assert len(set(found[0].tolist())) == 2


def test_matrices_and_text_without_a_header_agree(tmp_path):
    X = np.random.default_rng(0).integers(0, 3, (200, 4)).astype(np.float64)
    y = np.arange(200.0)
    np.save(tmp_path / "rows.npy", np.c_[X, y])
    np.savetxt(tmp_path / "rows.csv", np.c_[X, y], delimiter=",")
    lines = (
        f"{t} " + " ".join(f"{i + 1}:{v}" for i, v in enumerate(row) if v)
        for row, t in zip(X, y, strict=True)
    )
    (tmp_path / "rows.svm").write_text("\n".join(lines))
    expected = read_keys(tmp_path / "rows.npy", 4)
    np.testing.assert_array_equal(read_keys(tmp_path / "rows.csv", "4"), expected)
    np.testing.assert_array_equal(read_keys(tmp_path / "rows.svm", "labels"), expected)
    np.testing.assert_array_equal(read_keys((X, y), "labels"), expected)
