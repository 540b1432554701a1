"""Unsupported sources are rejected: workbooks, archives, files given twice."""

import gzip
import lzma
import os
import struct
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from kernelmill.io import TableError, open_table


def message(source, **options):
    with pytest.raises(TableError) as caught:
        for _ in open_table(source, **options).blocks():
            pass
    return str(caught.value)


@pytest.mark.parametrize("name", ["rows.xlsx", "rows.ods", "rows.csv", "rows"])
@pytest.mark.parametrize("member", ["xl/workbook.xml", "content.xml"])
def test_workbooks(tmp_path, name, member):
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr(member, "<x/>")
    assert "is a workbook, which is not supported; save the sheet as CSV." in message(
        tmp_path / name
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wine.html", "a,b\n1,2\n"),
        ("wine.csv", "<!DOCTYPE html>\n"),
        ("wine", "\n<html>"),
    ],
)
def test_pages(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    problem = message(path)
    assert "is an HTML page, which is not a table format; save the table as CSV, or" in problem
    assert ".parquet" in problem


def test_old_workbooks_and_archives(tmp_path):
    (tmp_path / "rows.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(64))
    assert "is a workbook" in message(tmp_path / "rows.xls", format="csv")
    with zipfile.ZipFile(tmp_path / "rows.zip", "w") as archive:
        archive.writestr("rows.csv", "a,b\n1,2\n")
    assert "is a zip archive" in message(tmp_path / "rows.zip")


@pytest.mark.parametrize("name", ["rows.csv.xz", "rows.csv"])
def test_other_compressions(tmp_path, name):
    (tmp_path / name).write_bytes(lzma.compress(b"a,b\n1,2\n"))
    assert message(tmp_path / name).endswith(
        "is compressed with xz, which is not supported; decompress it or use .gz, .bz2 or .zst."
    )


def test_gzip_without_its_extension(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n3,4\n"))
    table = open_table(path)
    for seed in (None, 1):
        assert [b.data.to_pydict() for b in table.blocks(seed)] == [{"a": [1, 3], "b": [2, 4]}]


def test_the_same_file_twice(tmp_path):
    path, link = tmp_path / "rows.csv", tmp_path / "link.csv"
    path.write_text("a\n1\n")
    assert f"{path} is given twice; its rows" in message([path, path])
    link.symlink_to(path)
    assert "is the same file as" in message(str(tmp_path / "*.csv"))
    link.unlink()
    os.link(path, link)
    assert f"{link} is given twice (it is the same file as {path})" in message([path, link])


@pytest.mark.parametrize("value", [2**53 + 2, -(2**53) - 2])
def test_integers_that_floats_would_merge(tmp_path, value):
    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.table({"the id": [1, value, None], "b": [1, 2**53, 3]}), path)
    said = message(path)
    assert f"column 'the id' has integers beyond 2**53, such as {value}" in said
    assert "(categorical=['the id'])" in said
    (block,) = open_table(path, categorical=["the id"]).blocks()
    assert block.data["the id"].to_pylist() == ["1", str(value), None]
    np.save(tmp_path / "rows.npy", np.array([[1, 2**53], [2, value]]))
    assert f"column 1 has integers beyond 2**53, such as {value}" in message(tmp_path / "rows.npy")


def test_unsigned_integers_that_floats_would_merge(tmp_path):
    np.save(tmp_path / "rows.npy", np.array([[1, 2**64 - 1]], np.uint64))
    assert "such as 18446744073709551615" in message(tmp_path / "rows.npy")
    np.save(tmp_path / "rows.npy", np.array([[1, 2**53]], np.uint64))
    assert [b.data.shape for b in open_table(tmp_path / "rows.npy").blocks()] == [(1, 2)]


def test_truth_values_are_categories_as_in_text(tmp_path):
    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.table({"a": [True, None, False]}), path)
    (block,) = open_table(path).blocks()
    assert block.data["a"].to_pylist() == ["true", None, "false"]
    (block,) = open_table(path, numeric=["a"]).blocks()
    assert block.data["a"].to_pylist() == [1.0, None, 0.0]


def test_bytes_are_no_categories(tmp_path):
    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.table({"a": [b"x", b"y"]}), path)
    assert "column 'a' holds bytes (type binary)" in message(path, categorical=["a"])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_labels_that_are_not_read(tmp_path, save):
    path = tmp_path / "rows.npz"
    save(path, X=np.eye(2), y=np.array(["a", None], object))
    assert "object arrays are not read" in message(path)
    save(path, X=np.eye(2), y=np.array([b"a", b"b"]))
    assert f"{path}: y holds bytes" in message(path)


def test_huge_header_of_npy(tmp_path):
    path = tmp_path / "rows.npy"
    path.write_bytes(b"\x93NUMPY\x02\0" + struct.pack("<I", 1 << 30) + b"{" + b" " * 100)
    said = message(path)
    assert "its header has 1073741824 bytes" in said
    assert "pickle" not in said


def test_svmlight_indices_too_large_for_dense_vectors(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text(f"1 1:2\n1 {2**27}:1\n")
    assert open_table(path).n_features == 2**27
    path.write_text(f"1 1:2\n1 {2**27 + 1}:1\n")
    assert f"{path}, line 2, column 3: an index must be at most {2**27}" in message(path)
    path.write_text(f"1 0:2\n1 {2**27}:1\n")
    assert f"{path}, line 2, column 3: an index must be at most {2**27 - 1}" in message(path)
    assert open_table(path, n_features=2**28).n_features == 2**28


def test_svmlight_without_pairs(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1\n-1\n")
    assert f"{path} has no pair index:value" in message(path)
    assert open_table(path, n_features=3).n_features == 3
