"""Svmlight files as tables: blocks, numbering of indices, widths, compression."""

import bz2
import gzip
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelmill.io import TableError, open_table, read_svmlight
from kernelmill.io.svmlight.reader import split_lines
from kernelmill.io.svmlight.svmlight_file import SvmlightFile
from kernelmill.io.table_file import TableOptions

TEXT = b"".join(
    b"%d 1:%d %d:0.25%s\n" % (i, i, 2 + i % 7, b" # note: x" if i % 3 == 0 else b"")
    for i in range(100)
)


def dense_of_text():
    rows = np.zeros((100, 8))
    rows[:, 0] = np.arange(100)
    rows[np.arange(100), 1 + np.arange(100) % 7] = 0.25
    return rows


def write(folder, text, name="rows.svm"):
    path = folder / name
    path.write_bytes(text)
    return path


def whole(blocks):
    blocks = list(blocks)
    X = scipy.sparse.vstack([block.data for block in blocks]).toarray()
    return X, np.concatenate([block.labels for block in blocks])


@pytest.mark.parametrize("block_bytes", [1, 40, 333, 1 << 20])
@pytest.mark.parametrize(
    ("name", "compress"),
    [("a.svm", bytes), ("a.svm.gz", gzip.compress), ("a.svm.bz2", bz2.compress)],
)
def test_blocks_of_any_size_hold_the_rows(tmp_path, name, compress, block_bytes):
    table = open_table(write(tmp_path, compress(TEXT), name), block_bytes=block_bytes)
    assert (table.format, table.n_features, table.n_rows) == ("svmlight", 8, 100)
    assert table.carries_labels
    for _ in range(2):
        X, labels = whole(table.blocks())
        np.testing.assert_array_equal(X, dense_of_text())
        np.testing.assert_array_equal(labels, np.arange(100))


@pytest.mark.representative
@pytest.mark.parametrize(("name", "compress"), [("a.svm", bytes), ("a.svm.gz", gzip.compress)])
@pytest.mark.parametrize("text", [TEXT, TEXT[:-1], b"\xef\xbb\xbf" + TEXT])
def test_shuffled_blocks_are_the_same_blocks(tmp_path, name, compress, text):
    table = open_table(write(tmp_path, compress(text), name), block_bytes=100)
    in_order = {block.first_row: block for block in table.blocks()}
    shuffled = list(table.blocks(seed=3))
    assert [block.first_row for block in shuffled] != sorted(in_order)
    assert sorted(block.first_row for block in shuffled) == sorted(in_order)
    for block in shuffled:
        same = in_order[block.first_row]
        np.testing.assert_array_equal(block.labels, same.labels)
        np.testing.assert_array_equal(block.data.toarray(), same.data.toarray())


@settings(deadline=None, max_examples=100)
@given(st.lists(st.binary(max_size=9)), st.integers(1, 30), st.booleans())
def test_pieces_are_all_of_the_text_cut_at_line_ends(tmp_path_factory, lines, size, ended):
    text = b"\n".join(lines) + (b"\n" if ended else b"")
    path = write(tmp_path_factory.getbasetemp(), text, "pieces")
    with path.open("rb", buffering=0) as stream:
        pieces = [(start, n, bytes(view)) for start, n, view in split_lines(stream, size, path)]
    assert b"".join(piece[:n] for _, n, piece in pieces) == text
    position = 0
    for start, n, piece in pieces:
        assert start == position
        assert piece.endswith(b"\n")
        assert n <= max(size, 2 * len(piece.split(b"\n")[0]) + 2)
        position += n


def test_a_line_without_end_is_rejected(tmp_path):
    path = write(tmp_path, b"1 1:1\n" + b"2" * 5000)
    with (
        path.open("rb") as stream,
        pytest.raises(TableError, match="line of more than 1000 bytes, starting at byte 7"),
    ):
        list(split_lines(stream, 10, path, longest_line=1000))


def test_a_line_longer_than_a_block(tmp_path):
    pairs = " ".join(f"{i}:{i % 9}" for i in range(1, 100_001))
    path = write(tmp_path, f"1 1:1\n-1 {pairs}\n1 2:1\n".encode())
    table = open_table(path, block_bytes=1000)
    assert table.n_features == 100_000
    assert next(table.blocks()).n_rows == 1
    X, _ = whole(table.blocks())
    np.testing.assert_array_equal(X[1], np.arange(1, 100_001) % 9)


def test_pieces_of_comments_are_no_blocks(tmp_path):
    path = write(tmp_path, b"# comment\n" * 50 + TEXT + b"# comment\n" * 50)
    table = open_table(path, block_bytes=50)
    assert all(block.n_rows for block in table.blocks())
    X, _ = whole(sorted(table.blocks(seed=1), key=lambda block: block.first_row))
    np.testing.assert_array_equal(X, dense_of_text())


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# nothing\n"])
def test_a_file_without_rows(tmp_path, text):
    path = write(tmp_path, text)
    file = SvmlightFile(path, TableOptions(), None)
    assert (file.n_rows, file.n_features, list(file.blocks())) == (0, 0, [])
    X, labels = read_svmlight(path)
    assert (X.shape, labels.shape) == ((0, 0), (0,))


def test_rows_without_entries(tmp_path):
    X, labels = read_svmlight(write(tmp_path, b"1\n2\n"), n_features=3)
    np.testing.assert_array_equal(X.toarray(), np.zeros((2, 3)))
    np.testing.assert_array_equal(labels, [1, 2])


@pytest.mark.parametrize(
    ("text", "zero_based", "expected"),
    [
        (b"1 1:5 2:6\n", None, [[5, 6]]),
        (b"1 2:6\n1 0:5\n", None, [[0, 0, 6], [5, 0, 0]]),
        (b"1 1:5 2:6\n", True, [[0, 5, 6]]),
        (b"1 1:5 2:6\n", False, [[5, 6]]),
    ],
)
def test_indices_count_from_0_if_0_occurs(tmp_path, text, zero_based, expected):
    path = write(tmp_path, text)
    X, _ = read_svmlight(path, zero_based=zero_based)
    np.testing.assert_array_equal(X.toarray(), expected)
    file = SvmlightFile(path, TableOptions(block_bytes=5, zero_based=zero_based), None)
    X = scipy.sparse.vstack([data for data, _ in file.blocks()])
    np.testing.assert_array_equal(X.toarray(), expected)


def test_an_index_0_contradicts_counting_from_1(tmp_path):
    path = write(tmp_path, b"1 0:5\n")
    with pytest.raises(TableError, match="has the index 0, but its indices must count from 1"):
        read_svmlight(path, zero_based=False)
    with pytest.raises(TableError, match="has the index 0, but its indices must count from 1"):
        SvmlightFile(path, TableOptions(zero_based=False), None)


def test_files_of_one_table_count_alike(tmp_path):
    write(tmp_path, b"1 1:5\n", "1.svm")
    write(tmp_path, b"1 0:6\n", "2.svm")
    write(tmp_path, b"1 3:7\n", "3.svm")
    table = open_table(str(tmp_path / "*.svm"))
    assert table.n_features == 4
    assert table.notes == ["Indices count from 0, since the index 0 occurs."]
    X, _ = whole(table.blocks())
    np.testing.assert_array_equal(X, [[0, 5, 0, 0], [6, 0, 0, 0], [0, 0, 0, 7]])


def test_a_given_width_holds(tmp_path):
    path = write(tmp_path, b"1 1:5\n1 1:1 3:7\n")
    table = open_table(path, n_features=5)
    assert [block.data.shape for block in table.blocks()] == [(2, 5)]
    message = r"rows.svm, line 2, column 7: .*at most 2 for 2 features, got '3:7'"
    with pytest.raises(TableError, match=message):
        open_table(path, n_features=2)
    with pytest.raises(TableError, match=message):
        read_svmlight(path, n_features=2)


def test_a_given_width_of_indices_that_turn_out_to_count_from_0(tmp_path):
    path = write(tmp_path, b"1 1:5 3:7\n1 0:1\n")
    message = r"rows.svm, line 1, column 7: .*at most 2 for 3 features, got '3:7'"
    with pytest.raises(TableError, match=message):
        read_svmlight(path, n_features=3)
    with pytest.raises(TableError, match=message):
        open_table(path, n_features=3)
    first = write(tmp_path, b"1 3:7\n", "first.svm")
    second = write(tmp_path, b"1 0:7\n", "second.svm")
    with pytest.raises(TableError, match=r"first.svm, line 1, column 3: .*at most 2"):
        open_table([first, second], n_features=3)


def test_huge_indices_cost_nothing(tmp_path):
    path = write(tmp_path, b"1 2147483647:3\n")
    X, _ = read_svmlight(path)
    assert X.shape == (1, 2147483647)
    np.testing.assert_array_equal(X.indices, [2147483646])


def test_a_truncated_gz_is_rejected(tmp_path):
    path = write(tmp_path, gzip.compress(TEXT)[:-20], "rows.svm.gz")
    with pytest.raises(TableError, match=r"rows.svm.gz is truncated"):
        read_svmlight(path)


def test_a_file_that_shrinks_is_noticed(tmp_path):
    path = write(tmp_path, TEXT)
    file = SvmlightFile(path, TableOptions(block_bytes=100), None)
    list(file.blocks())
    path.write_bytes(TEXT[:50])
    with pytest.raises(TableError, match="changed while it was being read"):
        file.block(3)


@pytest.mark.parametrize("index", [0, 9])
def test_indices_that_were_not_there_are_noticed(tmp_path, index):
    path = write(tmp_path, b"1 1:1 8:1\n")
    file = SvmlightFile(path, TableOptions(), None)
    path.write_bytes(b"1 %d:1 %d:1\n" % (index, index + 1))
    with pytest.raises(TableError, match="changed while it was being read"):
        list(file.blocks())


def test_a_file_without_extension_is_recognized(tmp_path):
    assert open_table(write(tmp_path, TEXT, "rows")).format == "svmlight"


def test_rows_keep_no_memory_of_comments():
    from kernelmill.io.svmlight.parser import SvmlightText, parse_rows

    rows = parse_rows(SvmlightText(b"1 1:1 #" + b":" * 1000 + b"\n", Path("a")), np.float64)
    assert rows.data.base is None
    np.testing.assert_array_equal(rows.data, [1])
