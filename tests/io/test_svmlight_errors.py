"""Malformed svmlight lines: the file, the line, the column and what was expected."""

import re
from pathlib import Path

import numpy as np
import pytest

from kernelmill import _native
from kernelmill.errors import KernelmillError
from kernelmill.io import TableError, open_table, read_svmlight
from kernelmill.io.svmlight.parser import SvmlightText, explain

MALFORMED = [
    (b"x 1:1", 1, "a line must start with a label that is a finite number, got 'x'"),
    (b" nan 1:1", 2, "finite number, got 'nan'"),
    (b"1,2 1:1", 2, "a row must have one label, got '1,2'"),
    (b"1:2 2:1", 1, "a line must start with a label, got '1:2'"),
    (b"1 a:1", 3, "an index must be a non-negative integer, got 'a:1'"),
    (b"1 -3:1", 3, "an index must be 0 or more, got '-3:1'"),
    (b"1 4:1 4:2", 7, "the indices of a row must increase, got '4:2' after '4:1'"),
    (b"1 4:1 \t3:1", 8, "got '3:1' after '4:1'"),
    (b"1 3", 4, "an index must be followed by a colon and a value, as in 3:0.5, got '3'"),
    (b"1 3:", 5, "a value must be a finite number, got '3:'"),
    (b"1 3: 4", 5, "a value must be a finite number, got '3:'"),
    (b"1 3:-inf", 5, "a value must be a finite number, got '3:-inf'"),
    (
        b"1 3:1e39",
        5,
        "float32, got '3:1e39'; scale the feature, or read the values as",
    ),
    (b"1 3:1;4:2", 6, "a space or the end of the line must follow a number, got '3:1;4:2'"),
    (b"1 3:1\xff", 6, r"got '3:1\xff'"),
    (b"1 2147483648:1", 3, "an index must be at most 2147483647, got '2147483648:1'"),
    (b"1 " + b"9" * 1000 + b":1", 3, "got '99999999999999999999999999999999...'"),
]


@pytest.mark.parametrize(("line", "column", "message"), MALFORMED)
@pytest.mark.parametrize("before", [b"", b"1 1:1\r\n\n# comment\n"])
def test_the_place_is_named(tmp_path, line, column, message, before):
    path = tmp_path / "rows.svm"
    path.write_bytes(before + line)
    number = before.count(b"\n") + 1
    place = f"{path}, line {number}, column {column}: "
    with pytest.raises(TableError, match=f"^{re.escape(place)}.*{re.escape(message)}"):
        read_svmlight(path)


def test_lines_count_over_the_blocks(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_bytes(b"1 1:1 # x\n\n" * 500 + b"1 1:1 1:2\n")
    with pytest.raises(TableError, match=r"line 1001, column 7: "):
        open_table(path, block_bytes=64)


def test_every_problem_has_words():
    source = (Path(__file__).parents[2] / "native/core/svmlight.cpp").read_text()
    names = set(re.findall(r'return "(\w+)";', source)) - {"none", "large_index"}
    text = b"1 1:1\n"
    assert len(names) == 10
    for name in names:
        error = explain(SvmlightText(text, Path("rows")), "rows", name, 2, np.dtype("float64"))
        assert error.message.problem.startswith("rows: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_features": -1}, "n_features must be between 0 and 2**31 - 1, got -1"),
        ({"n_features": 2.0}, "n_features must be an integer"),
        ({"n_features": True}, "n_features must be an integer"),
        ({"n_features": 2**31}, "n_features must be between 0 and"),
        ({"dtype": "int32"}, "dtype must be float32 or float64, got 'int32'"),
        ({"zero_based": "auto"}, "zero_based must be True, False or None, got 'auto'"),
    ],
)
def test_arguments_are_checked(tmp_path, arguments, message):
    path = tmp_path / "rows.svm"
    path.write_bytes(b"1 1:1\n")
    with pytest.raises(KernelmillError, match=re.escape(message)):
        read_svmlight(path, **arguments)


def test_a_file_that_is_not_there():
    with pytest.raises(TableError, match=r"no-such-file.svm cannot be read: No such file"):
        read_svmlight("no-such-file.svm")


def arrays(rows=1, entries=1, dtype=np.float64):
    return (
        np.empty(rows),
        np.empty(rows + 1, np.int32),
        np.empty(entries, np.int32),
        np.empty(entries, dtype),
    )


def test_the_native_function_checks_its_arrays():
    labels, starts, indices, values = arrays()
    parse = _native.svmlight_parse
    assert parse(b"1 1:1\n", 9, labels, starts, indices, values)[:3] == (1, 1, 1)
    for wrong in (
        (labels.astype(np.float32), starts, indices, values),
        (labels, starts.astype(np.int64), indices, values),
        (labels, starts[:1], indices, values),
        (labels, starts, indices.astype(np.int64), values),
        (labels, starts, indices, values.astype(np.int64)),
        (labels, starts, indices, np.empty(2)),
        (labels, starts, np.empty(4, np.int32)[::2], np.empty(2)),
    ):
        with pytest.raises(TypeError):
            parse(b"1 1:1\n", 9, *wrong)
    with pytest.raises(TypeError, match="text must be bytes"):
        parse(memoryview(b"1 1:1\n\n")[::2], 9, labels, starts, indices, values)
    with pytest.raises(ValueError, match="must end with a line end"):
        parse(b"1 1:1", 9, labels, starts, indices, values)
    for rows, entries in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="too few"):
            parse(b"1 1:1\n", 9, *arrays(rows, entries))
