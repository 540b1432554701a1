"""The files of a source, their format, and the column that a name stands for."""

import gzip
import os

import numpy as np
import pytest

from kernelmill.errors import ArgumentError
from kernelmill.io import TableError, open_table
from kernelmill.io.sources import detect_format


def write(path, text="a,b\n1,x\n"):
    path.write_text(text)
    return path


def test_globs_are_sorted(tmp_path):
    for i in (3, 1, 10, 2):
        write(tmp_path / f"part-{i:02}.csv", f"a,b\n{i},x\n")
    (tmp_path / "part-99.csv").mkdir()  # a folder is not a file
    table = open_table(str(tmp_path / "part-*.csv"))
    assert [path.name for path in table.files] == [f"part-{i:02}.csv" for i in (1, 2, 3, 10)]
    assert [block.data["a"][0].as_py() for block in table.blocks()] == [1, 2, 3, 10]
    assert table.n_bytes == sum(path.stat().st_size for path in table.files)
    listed = open_table([tmp_path / "part-10.csv", str(tmp_path / "part-0[12].csv")])
    assert [path.name for path in listed.files] == ["part-10.csv", "part-01.csv", "part-02.csv"]


def test_a_name_with_brackets_is_a_file(tmp_path):
    table = open_table(write(tmp_path / "rows[1].csv"))
    assert [path.name for path in table.files] == ["rows[1].csv"]


@pytest.mark.parametrize(
    ("source", "match"),
    [
        ("adult.dta", r"adult\.dta does not exist \(similar names in that folder: adult\.data\)"),
        ("zzz", "zzz does not exist; pass the path"),
        ("no/adult.data", r"\(there is no folder .*no\)"),
        (
            "adutl*.data",
            r"no file matches the .*adutl\*\.data \(similar names.*adult\.data",
        ),
        ("", r"is a folder; .* use a pattern such as '.*\*\.data'"),
    ],
)
def test_no_such_file(tmp_path, source, match):
    write(tmp_path / "adult.data")
    with pytest.raises(TableError, match=match):
        open_table(tmp_path / source)


@pytest.mark.parametrize(("source", "match"), [([], "at least one"), (5, "a path"), ([5], "paths")])
def test_wrong_sources(source, match):
    with pytest.raises(TableError, match=match):
        open_table(source)


def test_pipes_are_rejected(tmp_path):
    os.mkfifo(tmp_path / "rows.csv")
    with pytest.raises(TableError, match="regular file"):
        open_table(tmp_path / "rows.csv")


def test_formats_by_content(tmp_path):
    np.save(tmp_path / "rows.npy", np.ones((2, 3)))
    (tmp_path / "rows.npy").rename(tmp_path / "rows")
    assert open_table(tmp_path / "rows").format == "npy"
    (tmp_path / "rows").write_bytes(gzip.compress(b"1;2\n"))
    (tmp_path / "rows").rename(tmp_path / "rows.gz")
    table = open_table(tmp_path / "rows.gz")
    assert (table.format, len(table.columns)) == ("text", 2)
    assert open_table(write(tmp_path / "rows.xyz"), format="csv").format == "text"
    with pytest.raises(ArgumentError, match="format must be one of arrow, csv"):
        open_table(tmp_path / "rows.xyz", format="excel")


@pytest.mark.parametrize(
    ("text", "format_"),
    [
        ("+1 1:0.5 3:1\n-1 2:1e-3 # a remark\n-1\n", "svmlight"),
        ("2 qid:1 1:0.5\n", "svmlight"),
        ("1 2 3\n4 5 6\n", "text"),
        ("12:30 13:45\n", "text"),
        ("a,b\n1,2\n", "text"),
        ("1\n2\n", "text"),
    ],
)
def test_svmlight_is_told_from_text(tmp_path, text, format_):
    assert detect_format(write(tmp_path / "rows.txt", text), None) == format_


def test_one_format(tmp_path):
    np.save(tmp_path / "b.npy", np.ones((2, 3)))
    with pytest.raises(
        TableError, match=r"a\.csv has the format text, but .*b\.npy has the format"
    ):
        open_table([write(tmp_path / "a.csv"), tmp_path / "b.npy"])


def test_column_index(tmp_path):
    table = open_table(write(tmp_path / "rows.csv", "age,Town,5,1\n1,x,2,3\n"), header=True)
    assert table.column_index("Town") == 1
    assert table.column_index(2) == 2
    assert table.column_index("0") == 0
    assert table.column_index("1") == 3  # there is a column of that name
    assert table.column_index(1) == 1
    for wrong, match in [
        ("town", "no column 'town'; use a column with a similar name: 'Town'"),
        ("zzz", "use one of its columns: 'age', 'Town', '5', '1'"),
        (4, "between 0 and 3"),
        (-5, "between 0 and 3"),
        ("-5", "between 0 and 3"),
        ("7", "between 0 and 3"),
        (1.5, "name or a zero-based index"),
        (True, "name or a zero-based index"),
    ]:
        with pytest.raises(TableError, match=match):
            table.column_index(wrong)


def test_column_index_of_a_matrix(tmp_path):
    np.save(tmp_path / "rows.npy", np.ones((2, 3)))
    table = open_table(tmp_path / "rows.npy")
    assert table.column_index("2") == 2
    with pytest.raises(TableError, match="have no names"):
        table.column_index("age")
