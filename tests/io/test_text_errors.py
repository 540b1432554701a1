"""Errors in text files name the file, the line, the column, the value and remedies."""

import gzip
import os

import pytest

from kernelmill.errors import KernelmillError
from kernelmill.io import TableError, open_table
from kernelmill.io.errors import NotANumberError


@pytest.fixture
def write(tmp_path):
    def write(content, name="rows.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def good_rows(n):
    """Rows with a newline inside a quoted value: two lines each."""
    return "".join(f'{i},"x\ny"\n' for i in range(n))


def message(source, **options):
    with pytest.raises(TableError) as caught:
        for _ in open_table(source, **options).blocks():
            pass
    return str(caught.value)


def settings(error):
    """What the remedies of an error set."""
    return [remedy.settings for remedy in error.message.remedies]


@pytest.mark.parametrize("block_bytes", [20, 500, 1 << 20])
def test_not_a_number(write, block_bytes):
    path = write("\n# made by hand\nage,b\n" + good_rows(50) + "forty,z\n" + good_rows(3))
    table = open_table(path, numeric=["age"], skip_rows=2, block_bytes=block_bytes)
    with pytest.raises(NotANumberError) as caught:
        list(table.blocks())
    assert caught.value.message.problem == (
        f"{path}, line 104, column 'age' (index 0): 'forty' is not a number"
    )
    assert settings(caught.value) == [{}, {"missing_codes": ["forty"]}, {"categorical": ["age"]}]


@pytest.mark.parametrize("block_bytes", [20, 500, 1 << 20])
def test_not_a_number_in_the_second_file(write, block_bytes):
    one = write(good_rows(50), "one.csv")
    two = write(good_rows(7) + "\r\n\r\nten,x\n", "two.csv")
    said = message([one, two], block_bytes=block_bytes)
    assert said.startswith(f"{two}, line 17, column 0: 'ten' is not a number")


@pytest.mark.parametrize("block_bytes", [20, 500, 1 << 20])
@pytest.mark.parametrize(("line", "got"), [("1", 1), ("1,2,3", 3), ('1,"a,b",', 3)])
def test_wrong_number_of_values(write, block_bytes, line, got):
    path = write("a,b\n" + good_rows(50) + line + "\n" + good_rows(2))
    said = message(path, block_bytes=block_bytes)
    assert said.startswith(f"{path}, line 102: expected 2 values, got {got}; ")


def test_faults_after_the_rows_that_decide(write):
    path = write("a,b\n" + "123456,x\n" * 500_000 + "x,x\n")
    assert f"{path}, line 500002, column 'a'" in message(path)


def test_title_above_the_rows(write):
    path = write("|1x3 Cross validator\n" + "1, 2, x\n" * 20)
    with pytest.raises(TableError, match="line 1: expected 3 values, got 1") as caught:
        open_table(path)
    assert settings(caught.value) == [{}, {"delimiter": ...}, {"skip_rows": 1}]


@pytest.mark.parametrize("block_bytes", [10, 1 << 20])
def test_not_utf8(write, block_bytes):
    path = write(b"a,b\n1,x\n2,\xe9t\xe9\n3,z\n")
    said = message(path, block_bytes=block_bytes)
    assert said.startswith(
        f"{path}, line 3, byte 3 of the line: 0xe9 is not UTF-8; set its encoding"
    )


def test_not_utf8_later(write):
    path = write(b"a,b\n" + b"1234567,x\n" * 500_000 + b"2,\xff\n")
    assert f"{path}, line 500002, byte 3" in message(path)


def test_utf16_and_binary(write):
    assert "UTF-16" in message(write("a,b\n1,2\n".encode("utf-16")))
    assert "not a text file" in message(write(b"a,b\n1,\0\n"))


@pytest.mark.parametrize("block_bytes", [10, 1 << 20])
def test_quote_that_is_not_closed(write, block_bytes):
    path = write('a,b\n1,x\n2,"y\n3,z\n')
    assert message(path, block_bytes=block_bytes).startswith(
        f"{path}, line 3: a value begins with a quote that is not closed"
    )


def test_truncated_gzip(write):
    whole = gzip.compress(b"".join(b"%d,x\n" % i for i in range(100_000)))
    path = write(whole[: len(whole) // 2], "rows.csv.gz")
    assert f"{path} is truncated" in message(path)
    assert "gzip" in message(write(b"1,2\n", "rows.csv.gz"))
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 0xFF
    assert "rows.csv.gz" in message(write(bytes(broken), "rows.csv.gz"))


def test_second_file_with_other_columns(write):
    one = write("a,b\n1,x\n", "one.csv")
    two = write("a,c\n1,x\n", "two.csv")
    assert message([one, two]) == (
        f"{two} and {one} have different columns: column 'b' is missing, column 'c' is additional; "
        "use files with the same columns."
    )
    three = write("1,2\n3,4\n", "three.csv")
    four = write("1,2,3\n", "four.csv")
    assert f"{four} has 3 columns, but {three} has 2" in message([three, four])


def test_second_file_with_another_order(write):
    one = write("a,b\n1,x\n", "one.csv")
    two = write("b,a\ny,2\n", "two.csv")
    table = open_table([one, two])
    assert [block.data.to_pydict() for block in table.blocks()] == [
        {"a": [1.0], "b": ["x"]},
        {"a": [2.0], "b": ["y"]},
    ]
    assert [(block.file, block.first_row) for block in table.blocks()] == [(one, 0), (two, 1)]


def test_changed_file(write):
    path = write("a,b\n1,x\n")
    table = open_table(path)
    list(table.blocks())
    path.write_text("a,b\n1,x\n2,y\n")
    with pytest.raises(TableError, match="changed while it was being read"):
        list(table.blocks())
    path.unlink()
    with pytest.raises(TableError, match="cannot be read"):
        list(table.blocks())


def test_file_that_changes_during_a_pass(write):
    path = write("a,b\n" + "1,x\n" * 100)
    table = open_table(path, block_bytes=50)
    blocks = table.blocks()
    next(blocks)
    os.utime(path, (1, 1))
    with pytest.raises(TableError, match="changed"):
        list(blocks)
    assert table.n_rows is None


@pytest.mark.parametrize(
    ("option", "value"),
    [("block_bytes", 0), ("block_bytes", 1.5), ("skip_rows", -1), ("categorical", [1.5])],
)
def test_wrong_options(write, option, value):
    with pytest.raises(KernelmillError, match=f"{option} must"):
        open_table(write("a\n1\n"), **{option: value})


def test_file_without_lines(write):
    assert "line is longer than 4 MiB" in message(write("é" * (3 << 20)))


def test_skipping_everything(write):
    assert "no lines after the 2 skipped ones" in message(write("a\n1\n"), skip_rows=2)
