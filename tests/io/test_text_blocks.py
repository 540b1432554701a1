"""Rows of text files come back as they were written, whatever the blocks."""

import bz2
import gzip

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelmill.errors import ArgumentError
from kernelmill.io import TableColumn, TableError, open_table


@pytest.fixture
def write(tmp_path):
    def write(content, name="rows.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def rows(table, seed=None):
    columns = {column.name: [] for column in table.columns}
    for block in table.blocks(seed):
        for name, values in block.data.to_pydict().items():
            columns[name] += values
    return columns


def kinds(table):
    return [column.kind for column in table.columns]


@pytest.mark.representative
def test_kinds_and_missing_values(write):
    table = open_table(
        write("a,b,c,d\n1, x ,2024-05-01, ?\n?,,NA,2.5\n-1e3 ,None,2024-05-02,NaN\n")
    )
    assert table.columns == (
        TableColumn("a", "numeric"),
        TableColumn("b", "category"),
        TableColumn("c", "date"),
        TableColumn("d", "numeric"),
    )
    assert rows(table) == {
        "a": [1.0, None, -1000.0],
        "b": ["x", None, None],
        "c": ["2024-05-01", None, "2024-05-02"],
        "d": [None, 2.5, None],
    }
    assert table.n_rows == 3


def test_types_of_a_block(write):
    (block,) = open_table(write("a,b\n1,x\n2,y\n3, x\n")).blocks()
    assert block.data["a"].type == pa.float64()
    assert block.data["b"].type == pa.dictionary(pa.int32(), pa.string())
    assert block.data["b"].dictionary.to_pylist() == ["x", "y"]  # trimmed, each word once
    assert block.first_row == 0
    assert block.n_rows == 3
    assert block.labels is None


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("trailing", ["", "E", "EEE"])
def test_ends_of_lines(write, ending, trailing):
    text = ending.join(["a,b", "1,x", "2,y"]) + trailing.replace("E", ending)
    for block_bytes in (1, 5, 1000):
        table = open_table(write(text), block_bytes=block_bytes)
        assert rows(table) == {"a": [1.0, 2.0], "b": ["x", "y"]}


def test_mixed_ends_and_blank_lines_and_byte_order_mark(write):
    table = open_table(write(b"\xef\xbb\xbfa,b\r\n\n1,x\n   \n2,y\r3,z\r\n \n"))
    assert rows(table) == {"a": [1.0, 2.0, 3.0], "b": ["x", "y", "z"]}


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("1{}2{}x", "tab"),
        ("1{}2{}x", "semicolon"),
        ("1{}2{}x", "bar"),
        ("1,5{}2,5{}x", "semicolon"),
    ],
)
def test_delimiters_are_found(write, line, note):
    delimiter = {"tab": "\t", "semicolon": ";", "bar": "|"}[note]
    table = open_table(write((line.format(delimiter, delimiter) + "\n") * 3, "rows.txt"))
    assert len(table.columns) == 3
    assert table.notes[0] == f"The delimiter is a {note}."


def test_whitespace(write):
    table = open_table(
        write('  1   2\tred\n10  20   blue  \n\n 3 4 "red\n', "rows.dat"), block_bytes=8
    )
    assert rows(table) == {
        "0": [1.0, 10.0, 3.0],
        "1": [2.0, 20.0, 4.0],
        "2": ["red", "blue", '"red'],
    }
    assert table.notes[0] == "The delimiter is whitespace."


def test_words_are_one_column(write):
    assert rows(open_table(write("New York\nOld Town\nNew York\n"))) == {
        "0": ["New York", "Old Town", "New York"]
    }


@pytest.mark.parametrize(("given", "meant"), [("\\t", "\t"), ("tab", "\t"), (" ", " "), ("#", "#")])
def test_given_delimiter(write, given, meant):
    table = open_table(write(f"a{meant}b\n1{meant}2\n"), delimiter=given)
    assert rows(table) == {"a": [1.0], "b": [2.0]}


@pytest.mark.parametrize("wrong", ["", "::", '"', "\n", "é"])
def test_wrong_delimiter(write, wrong):
    with pytest.raises(ArgumentError, match="delimiter must be"):
        open_table(write("a,b\n1,2\n"), delimiter=wrong)


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("a,b\n1,2\n", True),
        ("1,b\n1,2\n", False),
        ("x,y\nx,z\n", False),  # the value occurs again
        ("colour,size\nred,big\nred,small\n", True),
        ("colour,size\nred,big\nblue,small\n", False),  # four words without a pattern
        ("day,n\n2024-01-01,x\n", True),
        (",n\n0,1\n1,2\n", True),  # row numbers without a name
        ("a,?\n1,2\n", False),
        ("a,b\n", True),
    ],
)
def test_header_is_found(write, text, header):
    table = open_table(write(text))
    assert (table.columns[1].name != "1") == header
    assert any("No header" in str(note) for note in table.notes) == (not header)


def test_header_is_given(write):
    assert rows(open_table(write("1,2\n3,4\n"), header=True)) == {"1": [3.0], "2": [4.0]}
    assert rows(open_table(write("a,b\n3,4\n"), header=False)) == {"0": ["a", "3"], "1": ["b", "4"]}


def test_repeated_and_empty_names(write):
    table = open_table(write("a,,a,b\n1,2,3,4\n"), header=True)
    assert [column.name for column in table.columns] == ["a", "1", "a_2", "b"]
    assert table.notes == [
        "Column 1 has no name; it is called '1'.",
        "Column 2 repeats the name 'a'; it is called 'a_2'.",
    ]


def test_skipped_lines(write):
    table = open_table(write('|made by "us\n\na,b\n1,x\n2,y\n'), skip_rows=1)
    assert rows(table) == {"a": [1.0, 2.0], "b": ["x", "y"]}


def test_given_kinds(write):
    path = write("a,b,c\n1,2,3\n4,5,6\n")
    table = open_table(path, categorical=["a", 2])
    assert kinds(table) == ["category", "numeric", "category"]
    assert rows(table)["a"] == ["1", "4"]
    with pytest.raises(TableError, match="must be declared as only one of"):
        open_table(path, categorical="a", numeric=["0"])
    with pytest.raises(TableError, match=r"no column 'd'; use one of its columns: 'a', 'b', 'c'"):
        open_table(path, categorical=["d"])


def test_doubtful_columns_are_noted(write):
    lines = "".join(f"{i},{i},5\n" for i in range(30))
    table = open_table(write("a,b,c\n" + lines + "unknown,3,\nnone,3,\n"))
    assert kinds(table) == ["category", "numeric", "numeric"]
    assert "'unknown' is not" in table.notes[0].problem
    table = open_table(write("a;b\n1,5;\n2,5;\n"))
    assert table.notes[1] == "Numbers have decimal commas."
    assert "missing" in str(table.notes[2])


def test_odd_spaces_and_numbers(write):
    text = "a,b\n+5,x\n     ?,     ?\n .5 ,\tx\n5.,  None   \nINF,y\n-NAN,y\n"
    for block_bytes in (1, 1000):
        table = open_table(write(text), block_bytes=block_bytes)
        assert rows(table) == {
            "a": [5.0, None, 0.5, 5.0, float("inf"), None],
            "b": ["x", None, "x", None, "y", "y"],
        }


def test_one_column_one_row(write):
    assert rows(open_table(write("3"))) == {"0": [3.0]}
    assert rows(open_table(write('a\n3\n""\n\n4'), block_bytes=1)) == {"a": [3.0, None, 4.0]}


def test_header_only(write):
    table = open_table(write("a,b\n"))
    assert list(table.blocks()) == []
    assert table.n_rows == 0
    assert list(table.blocks(seed=1)) == []


@pytest.mark.parametrize("text", ["", "\n\n", "  \n", "\ufeff"])
def test_empty_file(write, text):
    with pytest.raises(TableError, match=r"rows.csv (is empty|contains only empty lines)"):
        open_table(write(text))


def test_long_line(write):
    long = "x" * (1 << 20)
    table = open_table(write(f'a,b\n1,{long}\n2,"{long},\n"\n3,y\n'), block_bytes=1000)
    assert rows(table) == {"a": [1.0, 2.0, 3.0], "b": [long, long + ",", "y"]}


def test_stray_quotes(write):
    # A quote opens a value only at its beginning; then what follows the closing one is text again.
    text = 'a,b\n1,5" pipe\n2,"x"y"z\n3,"a\n""b"\n4,6" pipe\n'
    for block_bytes in range(1, 40):
        table = open_table(write(text), block_bytes=block_bytes)
        assert rows(table)["b"] == ['5" pipe', 'xy"z', 'a\n"b', '6" pipe']


@pytest.mark.representative
@pytest.mark.parametrize(
    ("compress", "name"),
    [
        (gzip.compress, "rows.csv.gz"),
        (bz2.compress, "rows.csv.bz2"),
        (lambda data: pa.compress(data, "zstd", asbytes=True), "rows.csv.zst"),
        (lambda data: gzip.compress(data[:100]) + gzip.compress(data[100:]), "rows.data.gz"),
    ],
)
def test_compressed(write, compress, name):
    lines = "".join(f"{i},{'xyz'[i % 3]}\n" for i in range(200))
    table = open_table(write(compress(b"a,b\n" + lines.encode()), name), block_bytes=100)
    assert rows(table)["a"] == list(range(200))
    assert sorted(rows(table, seed=3)["a"]) == list(range(200))
    assert rows(table)["a"] == list(range(200))  # now from the decompressed copy


def test_shuffled_blocks_are_the_same_blocks(write):
    path = write("a,b\n" + "".join(f'{i},"{i}\n"\n' for i in range(300)))
    table = open_table(path, block_bytes=200)
    fresh = [(block.first_row, block.data) for block in table.blocks(seed=5)]
    in_order = [(block.first_row, block.data) for block in table.blocks()]
    again = [(block.first_row, block.data) for block in table.blocks(seed=5)]
    other = [(block.first_row, block.data) for block in table.blocks(seed=6)]
    assert len(in_order) > 10
    assert fresh == again != in_order
    assert other != again
    assert sorted(fresh, key=lambda item: item[0]) == in_order
    assert sorted(other, key=lambda item: item[0]) == in_order


def test_two_passes_at_once(write):
    path = write(gzip.compress(b"a\n" + b"".join(b"%d\n" % i for i in range(500))), "rows.csv.gz")
    table = open_table(path, block_bytes=100)
    list(table.blocks(seed=0))
    pairs = list(zip(table.blocks(), table.blocks(), strict=True))
    assert len(pairs) > 5
    assert all(one.data == two.data for one, two in pairs)


@st.composite
def tables(draw):
    """Rows of a number and of strings, with quotes, delimiters, newlines and missing values."""
    words = st.text(st.sampled_from("ab\"',;\n\r |é"), max_size=6).map(str.strip)
    words = words.filter(lambda word: word not in ("", "?"))
    numbers = st.floats(allow_nan=False, width=32) | st.integers(-5, 5).map(float)
    row = st.tuples(st.none() | numbers, st.none() | words, st.none() | words)
    return draw(st.lists(row, min_size=1, max_size=12))


def as_csv(value, delimiter, quote):
    text = "" if value is None else str(value)
    if quote or any(character in text for character in f'{delimiter}"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


@given(
    tables(),
    st.integers(1, 60),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([",", ";", "\t"]),
)
@settings(max_examples=100, deadline=None)
def test_random_tables_come_back(
    tmp_path_factory, table, block_bytes, quote_all, ending, delimiter
):
    lines = [["number", "one", "two"], *table]
    text = "".join(
        delimiter.join(as_csv(value, delimiter, quote_all) for value in line) + ending
        for line in lines
    )
    path = tmp_path_factory.mktemp("random") / "rows.csv"
    path.write_bytes(text.encode())
    opened = open_table(
        path,
        block_bytes=block_bytes,
        delimiter=delimiter,
        header=True,
        categorical=["one", "two"],
        numeric=["number"],
    )
    expected = [list(column) for column in zip(*table, strict=True)]
    assert list(rows(opened).values()) == expected
    assert sorted(rows(opened, seed=1)["one"], key=str) == sorted(expected[1], key=str)
    assert opened.n_rows == len(table)
