"""Strings of typed columns are read as those of text files are."""

import json
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from kernelmill.errors import ArgumentError, Doubt
from kernelmill.io import TableError, open_table
from kernelmill.io.errors import NotANumberError

COLUMNS = {
    "price": ["$1.20", "$3", None, "NA", "-$2.5"],
    "share": ["3.1%", " 4 %", "0", "5%", "?"],
    "grouped": ["1,257.30", "12", "1,000", "3.5", ""],
    "comma": ["1,5", "2", "3,25", None, "4,0"],
    "german": ["1.234,5", "2", "3,25", None, "4,0"],
    "day": ["01.02.2023", "31.05.2024", None, "1.1.2020", "2.1.2020"],
    "plain": ["1", "2.5", "3", None, "4"],
    "code": ["007", "010", "100", None, "200"],
    "mixed": ["$1", "2 €", "3%", None, "1,000"],
    "town": ["Rome", "None", " Oslo ", "Rome", "Rome"],
}
NUMBERS = {
    "price": [1.2, 3, None, None, -2.5],
    "share": [3.1, 4, 0, 5, None],
    "grouped": [1257.3, 12, 1000, 3.5, None],
    "comma": [1.5, 2, 3.25, None, 4],
    "german": [1234.5, 2, 3.25, None, 4],
}


def read(source, **options):
    table = open_table(source, **options)
    return table, pa.Table.from_batches([block.data for block in table.blocks()]).to_pydict()


def write(kind, columns, folder):
    table = pa.table(columns)
    path = folder / f"rows.{kind}"
    if kind == "parquet":
        pa.parquet.write_table(table, path, row_group_size=2)
    elif kind == "arrow":
        pa.feather.write_feather(table, path)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        return {"arrow table": table, "large": table.cast(large(table)), "dictionary": columns}[
            kind
        ]
    return path


def large(table):
    return pa.schema([(name, pa.large_string()) for name in table.column_names])


@pytest.mark.parametrize(
    "kind", ["parquet", "arrow", "jsonl", "arrow table", "large", "dictionary"]
)
def test_amounts_and_dates(tmp_path, kind):
    source = write(kind, COLUMNS, tmp_path)
    table, found = read(source)
    kinds = {column.name: column.kind for column in table.columns}
    assert kinds == {
        **dict.fromkeys(NUMBERS, "numeric"),
        "day": "date",
        **dict.fromkeys(["plain", "code", "mixed", "town"], "category"),
    }
    for name, expected in NUMBERS.items():
        assert found[name] == expected, name
    assert found["day"] == COLUMNS["day"]
    assert found["town"] == ["Rome", None, "Oslo", "Rome", "Rome"]  # as in text
    notes = [str(note) for note in table.notes]
    assert sum("is read as numbers: its values have symbols" in note for note in notes) == 5
    assert (
        sum(note.startswith("Column 'plain' is read as categories, since") for note in notes) == 1
    )
    (doubt,) = [note for note in table.notes if isinstance(note, Doubt)]
    assert "'mixed' is read as categories: its values look like numbers" in str(doubt)
    given, found = read(source, numeric=["plain"], categorical=["price", "comma", "day", "mixed"])
    assert found["plain"] == [1, 2.5, 3, None, 4]
    assert found["price"] == ["$1.20", "$3", None, None, "-$2.5"]
    assert not [n for n in map(str, given.notes) if "'plain'" in n or "'price'" in n]
    _, again = read(source)
    assert pickle.loads(pickle.dumps(again)) == again


def test_text_and_columns_agree(tmp_path):
    """The same strings in a text file, with semicolons between them; commas are another matter."""
    names = ["price", "share", "grouped", "day", "code", "mixed", "town"]
    rows = zip(*(COLUMNS[name] for name in names), strict=True)
    text = "\n".join(";".join(cell or "" for cell in row) for row in [names, *rows])
    (tmp_path / "rows.csv").write_text(text)
    in_text, from_text = read(tmp_path / "rows.csv")
    in_memory, from_memory = read({name: COLUMNS[name] for name in names})
    assert in_text.columns == in_memory.columns
    assert from_text == from_memory


def test_later_rows_that_are_no_numbers(tmp_path):
    prices = ["$1"] * 10_000 + ["2"]
    with pytest.raises(
        NotANumberError, match=r"row 10001, column 'a': '2' is not a number with \$"
    ):
        read({"a": pa.chunked_array([prices[:3], prices[3:]])})
    read({"a": pa.chunked_array([prices[:3], prices[3:]])}, numeric=["a"])
    for name, part in (("1.parquet", ["$1", "$2"]), ("2.parquet", ["$3", "x"])):
        pa.parquet.write_table(pa.table({"a": part}), tmp_path / name)
    with pytest.raises(NotANumberError, match=r"2\.parquet, row 2, column 'a': 'x' is not"):
        read([tmp_path / "1.parquet", tmp_path / "2.parquet"])


LARGE = 2**53 + 1


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "arrow table"])
def test_large_integers_of_columns(tmp_path, kind):
    for values in ([1, LARGE], [LARGE, -(2**60)]):
        source = write(kind, {"a": values}, tmp_path)
        with pytest.raises(
            TableError, match=r"'a' has integers beyond 2\*\*53, such as .*; read it"
        ):
            read(source)
        assert read(source, categorical=["a"])[1] == {"a": [str(each) for each in values]}
        assert read(source, numeric=["a"])[1] == {"a": [float(each) for each in values]}


def test_large_integers_of_later_lines(tmp_path):
    path = tmp_path / "rows.jsonl"
    lines = ["1", "2"] * 1500 + ["1.5"] + [str(10**20)]
    path.write_text("".join(f'{{"a": {each}, "b": 1e300}}\n' for each in lines))
    with pytest.raises(TableError, match=r"beyond 2\*\*53, such as 100000000000000000000"):
        read(path, block_bytes=4000, numeric=["b"])
    path.write_text("".join(f'{{"a": {each}, "b": 1e300}}\n' for each in lines[:-1]))
    _, found = read(path, block_bytes=4000)
    assert found["a"][-3:] == [1, 2, 1.5]


def test_digits_in_strings_and_names_of_json_are_no_integers(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"{LARGE}": "{LARGE}", "b": 1e300}}\n{{"b": 2.5}}\n')
    for block_bytes in (1 << 20, 20):
        assert read(path, block_bytes=block_bytes)[1] == {
            str(LARGE): [str(LARGE), None],
            "b": [1e300, 2.5],
        }


def test_large_integers_in_text(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(f"id,x\n{LARGE},1\n{LARGE + 1},2\n12,3\n")
    table, found = read(path)
    assert found["id"] == [str(LARGE), str(LARGE + 1), "12"]
    (doubt,) = table.notes
    assert isinstance(doubt, Doubt)
    assert "'id' is read as categories: it has integers beyond 2**53" in str(doubt)
    assert read(path, numeric=["id"])[1]["id"] == [2.0**53, 2.0**53 + 2, 12]
    # Beyond the rows that are inspected, and among large numbers that are no integers.
    many = "id,x\n" + "7,0.12345678901234567\n" * 200_000 + "1e300,1\n12345678901234567.5,2\n"
    path.write_text(many)
    assert read(path)[1]["id"][-2:] == [1e300, 12345678901234567.5]
    path.write_text(many + f"{LARGE},1\n")
    with pytest.raises(TableError, match=r"line 200004: column 'id' has integers beyond 2\*\*53"):
        read(path)


@pytest.mark.parametrize(
    "codes", [["-999", "-"], [-999, "-"], (-999.0, "-"), np.array(["-999", "-"])]
)
def test_codes_of_missing_values_are_numbers_and_strings(tmp_path, codes):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,c\n-999,x,1\n-999.0,-,2\n-9.99e2,y,3\n4,-999,4\n")
    columns = {"a": [-999, -999.0, -9.99e2, 4], "b": ["x", "-", "y", "-999"], "c": [1, 2, 3, 4]}
    for source in (path, columns):
        _, found = read(source, missing_codes=codes)
        assert found["a"] == [None, None, None, 4]
        assert found["b"] == ["x", None, "y", None]


def test_one_code_needs_no_list(tmp_path):
    for code in (-999, "-999", -999.0, np.float64(-999), np.int64(-999)):
        assert read({"a": [1.0, -999.0]}, missing_codes=code)[1] == {"a": [1.0, None]}
    for wrong in (None, b"-", {"a": 1}, [None], [True], 3j):
        with pytest.raises(ArgumentError, match="missing_codes must contain strings or numbers"):
            read({"a": [1.0]}, missing_codes=wrong)


def test_columns_may_be_any_iterable():
    pandas = pytest.importorskip("pandas")
    source = {"a": [1, 2], "b": [3, 4]}
    for given in ("a", 0, np.int64(0), ["a"], pandas.Series(["a"]), np.array(["a"]), iter(["a"])):
        kinds = [column.kind for column in open_table(source, categorical=given).columns]
        assert kinds == ["category", "numeric"]
    for wrong in (None, True, 1.5, [1.5], {"a": 1}, b"a"):
        with pytest.raises(ArgumentError, match="categorical must"):
            open_table(source, categorical=wrong)


def test_json_lines_with_values_of_two_types(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"u": 1}\n{"u": "x"}\n')
    with pytest.raises(TableError, match="column 'u' has a number in one line and a string in"):
        open_table(path)


def test_decimal_commas_of_strings_that_are_declared_numeric():
    words = ["377,19", "(396,31) €", "1.921,27"]
    table = open_table({"a": words})
    assert table.columns[0].kind == "category"
    assert "numeric=['a']" in str(table.notes[0])
    (block,) = open_table({"a": words}, numeric=["a"]).blocks()
    assert block.data["a"].to_pylist() == [377.19, -396.31, 1921.27]
