"""Which columns of text are numeric, with errors or with decimal commas among the values."""

import pickle
import re

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernelmill.errors import ArgumentError
from kernelmill.io import TableError, open_table
from kernelmill.io.errors import NotANumberError
from kernelmill.io.text import amounts


@pytest.fixture
def write(tmp_path):
    def write(content, name="rows.csv"):
        path = tmp_path / name
        path.write_text(content)
        return path

    return write


def kinds(table):
    return [column.kind for column in table.columns]


def columns(table):
    joined = {column.name: [] for column in table.columns}
    for block in table.blocks():
        for name, values in block.data.to_pydict().items():
            joined[name] += values
    return joined


def numbers_and(word, n_numbers):
    return "y,z\n" + "".join(f"{i % 2},{i}\n" for i in range(n_numbers)) + f"1,{word}\n"


def test_a_word_among_many_numbers_is_a_fault(write):
    path = write(numbers_and("1o5", 19))
    table = open_table(path)
    assert kinds(table) == ["numeric", "numeric"]
    with pytest.raises(NotANumberError) as caught:
        columns(table)
    message = caught.value.message
    assert message.problem == (f"{path}, line 21, column 'z' (index 1): '1o5' is not a number")
    assert [remedy.settings for remedy in message.remedies] == [{}, {"categorical": ["z"]}]
    assert columns(open_table(path, categorical=["z"]))["z"][-1] == "1o5"


def test_markers_of_pandas_are_missing(write):
    table = open_table(write("p,z\n12 %,1\nn/a,#N/A\n7 %,<NA>\n"))
    assert kinds(table) == ["numeric", "numeric"]
    assert columns(table) == {"p": [12.0, None, 7.0], "z": [1.0, None, None]}


def test_another_marker_among_numbers_is_suggested_as_a_code(write):
    path = write("p\n" + "".join(f"{i} %\n" for i in range(9)) + "unknown\n")
    (doubt,) = open_table(path).notes
    assert "most of its values are numbers, but 'unknown' is not" in str(doubt)
    assert doubt.remedies[0].settings == {"missing_codes": ["unknown"]}
    with pytest.raises(NotANumberError) as caught:
        columns(open_table(path, numeric=["p"]))
    assert caught.value.message.remedies[1].settings == {"missing_codes": ["unknown"]}
    assert kinds(open_table(path, missing_codes=["unknown"])) == ["numeric"]


@pytest.mark.parametrize(
    ("odd", "noted"), [("l2", True), ("3o", True), ("x", False), ("5+", False)]
)
def test_one_odd_word_among_few_numbers_is_noted(write, odd, noted):
    table = open_table(write("b\n" + "1\n2\n3\n4\n" * 50 + odd + "\n"))
    assert kinds(table) == ["category"]
    assert [f"but {odd!r} is not" in str(note) for note in table.notes] == [True] * noted


def test_the_error_of_a_number_can_be_sent(write):
    with pytest.raises(TableError) as caught:
        columns(open_table(write(numbers_and("x y", 30))))
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.message.problem == caught.value.message.problem


@pytest.mark.parametrize(("n_numbers", "kind"), [(18, "category"), (19, "numeric")])
def test_few_values_are_categories(write, n_numbers, kind):
    assert kinds(open_table(write(numbers_and("many", n_numbers))))[1] == kind


def test_several_words_are_categories(write):
    text = numbers_and("low", 37) + "1,high\n1,none\n"
    assert kinds(open_table(write(text)))[1] == "category"
    assert kinds(open_table(write(numbers_and("low", 38) + "1,high\n")))[1] == "numeric"


@pytest.mark.parametrize("separator", [";", "\t", "|"])
@pytest.mark.parametrize("block_bytes", [40, 1 << 20])
def test_decimal_commas(write, separator, block_bytes):
    lines = ["weight;n;town", "1,5;1;Rome", "-0,25;2;Oslo", ";3;Bonn", "7;4;Rome", "+1,e2;5;Oslo"]
    path = write("\n".join(lines).replace(";", separator))
    table = open_table(path, block_bytes=block_bytes)
    assert kinds(table) == ["numeric", "numeric", "category"]
    assert "Numbers have decimal commas." in table.notes
    assert columns(table) == {
        "weight": [1.5, -0.25, None, 7.0, 100.0],
        "n": [1.0, 2.0, 3.0, 4.0, 5.0],
        "town": ["Rome", "Oslo", "Bonn", "Rome", "Oslo"],
    }


@pytest.mark.parametrize("block_bytes", [40, 1 << 20])
def test_decimal_commas_with_groups_of_digits(write, block_bytes):
    rows = [f"{i}.234,5;{i};x" for i in range(1, 60)]
    table = open_table(write("\n".join(["a;b;c", *rows, "1.000;2; y"])), block_bytes=block_bytes)
    found = columns(table)
    assert found["a"] == [1000.0 * i + 234.5 for i in range(1, 60)] + [1000.0]
    assert found["c"] == ["x"] * 59 + ["y"]


def test_decimal_commas_without_a_header(write):
    table = open_table(write("1,5;2,5\n3,5;4,5\n"))
    assert columns(table) == {"0": [1.5, 3.5], "1": [2.5, 4.5]}
    assert "No header was detected: columns are numbered from 0." in table.notes


def test_decimal_commas_below_a_header(write):
    table = open_table(write("a;b\n3,5;4,5\n"))
    assert columns(table) == {"a": [3.5], "b": [4.5]}


def test_points_and_commas_in_one_file(write):
    table = open_table(write("a;b\n1.5;2,5\n2.5;3,5\n"))
    assert kinds(table) == ["numeric", "category"]
    assert any(
        "'b' is read as categories" in note and "'2,5'" in note for note in map(str, table.notes)
    )
    assert columns(table) == {"a": [1.5, 2.5], "b": ["2,5", "3,5"]}


def test_columns_given_as_categories_do_not_make_commas(write):
    table = open_table(write("a;b\n1;2,5\n2;3,5\n"), categorical=["b"])
    assert not any("commas" in str(note) for note in table.notes)
    assert columns(table)["b"] == ["2,5", "3,5"]


def test_given_decimal_points(write):
    path = write("a;b\n1;2,5\n2;3,5\n")
    assert kinds(open_table(path, decimal=".")) == ["numeric", "category"]
    whitespace = write("1,5 2,5\n3,5 4,5\n", "rows.txt")
    assert columns(open_table(whitespace, decimal=",")) == {"0": [1.5, 3.5], "1": [2.5, 4.5]}
    quoted = write('a,b\n"1,5",2\n"2,5",3\n', "quoted.csv")
    assert columns(open_table(quoted, decimal=",", delimiter=","))["a"] == [1.5, 2.5]
    with pytest.raises(ArgumentError, match=r"decimal must be one of '\.', ',', got ';'"):
        open_table(path, decimal=";")


def test_faults_among_decimal_commas(write):
    rows = "".join(f"{i},5;x\n" for i in range(30))
    path = write("a;b\n" + rows + "1.5;x\n")
    with pytest.raises(NotANumberError, match=r"line 32.* '1\.5' is not a number with a decimal"):
        columns(open_table(path))


def test_decimal_commas_hold_for_all_files(write):
    one, two = write("a;b\n1,5;x\n", "one.csv"), write("b;a\ny;2,25\n", "two.csv")
    assert columns(open_table([one, two])) == {"a": [1.5, 2.25], "b": ["x", "y"]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("red,blue\n", {"0": ["red"], "1": ["blue"]}),
        (
            "red,blue\ngreen,red\nblack,red\n",
            {"0": ["red", "green", "black"], "1": ["blue", "red", "red"]},
        ),
        ("1,2\n", {"0": [1.0], "1": [2.0]}),
        ("alone\n", {"0": ["alone"]}),
    ],
)
def test_without_a_header_every_line_is_a_row(write, text, expected):
    found = columns(open_table(write(text), header=False))
    assert found == expected


@pytest.mark.parametrize("n_titles", [1, 3])
def test_titles_on_top_can_be_skipped(write, n_titles):
    path = write("Report, 2024\n" * n_titles + "a,b,c\n" + "1,2,3\n" * 9)
    with pytest.raises(TableError) as caught:
        open_table(path)
    message = caught.value.message
    assert message.problem.endswith("line 1: expected 3 values, got 2")
    assert message.remedies[-1].settings == {"skip_rows": n_titles}
    assert columns(open_table(path, skip_rows=n_titles))["c"] == [3.0] * 9


def test_a_title_taken_for_the_header(write):
    path = write("Report\na,b,c\n" + "1,2,3\n" * 9)
    with pytest.raises(TableError, match=r"line 2: expected 1 value,.*skip_rows=1"):
        open_table(path, header=True)


def test_a_short_line_after_good_ones_is_no_title(write):
    with pytest.raises(TableError) as caught:
        open_table(write("a,b,c\n1,2,3\n1,2\n1,2,3\n"))
    assert "skip" not in str(caught.value)


def test_leading_zeros_mean_text(tmp_path):
    path = tmp_path / "agents.csv"
    path.write_text("age,agent,zip\n31,007,10115\n40,008,00184\n29,12,20095\n")
    table = open_table(path)
    assert [c.kind for c in table.columns] == ["numeric", "category", "category"]
    assert "leading zeros, as in '007'" in str(table.notes[0])
    (block,) = table.blocks()
    assert block.data.column("agent").to_pylist() == ["007", "008", "12"]
    given = open_table(path, numeric=["agent"], categorical=["zip"])
    assert [c.kind for c in given.columns] == ["numeric", "numeric", "category"]
    assert given.notes == []
    path.write_text("x\n0\n0.5\n00.25\n")  # numbers
    assert open_table(path).columns[0].kind == "numeric"


def test_header_with_an_empty_cell(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,y,\n1,2,u,\n3,4,v,\n")
    table = open_table(path)
    assert [c.name for c in table.columns] == ["a", "b", "y"]
    assert table.notes == ["Lines end with a delimiter: the empty last column is left out."]
    (block,) = table.blocks()
    assert block.data.to_pydict() == {"a": [1, 3], "b": [2, 4], "y": ["u", "v"]}
    path.write_text("a,,y\n1,2,u\n3,4,v\n")
    assert [c.name for c in open_table(path).columns] == ["a", "1", "y"]
    path.write_text("red,,blue\ngreen,3,blue\nred,4,blue\n")  # the first row lacks a value
    assert [c.name for c in open_table(path).columns] == ["0", "1", "2"]
    path.write_text("a,b,y,\n1,2,u,\n3,4,v\n")
    with pytest.raises(TableError, match="line 3: expected 4 values, got 3"):
        list(open_table(path).blocks())


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["$1.20", "-$3", "$0.5"], [1.2, -3.0, 0.5]),
        (["3.1%", "4 %", "0"], [3.1, 4.0, 0.0]),
        (["1,257.30", "12.5", "1,234,567"], [1257.3, 12.5, 1234567.0]),
        (["£1,257", "£3"], [1257.0, 3.0]),
        (["1 257.5", "12"], [1257.5, 12.0]),
        (["12 EUR", "3.5 EUR"], [12.0, 3.5]),
        (["(1,234.50)", "2,000.00", "(3)"], [-1234.5, 2000.0, -3.0]),
        (["($5)", "$7", "$(1.50)"], [-5.0, 7.0, -1.5]),
        (["5.25-", "3", "1e3"], [-5.25, 3.0, 1000.0]),
        (["\u22125", "3.5"], [-5.0, 3.5]),
        (["(3)%", "4%"], [-3.0, 4.0]),
    ],
)
def test_amounts_are_numbers(tmp_path, values, numbers):
    path = tmp_path / "rows.csv"
    path.write_text("n,v\n" + "".join(f'{i},"{value}"\n' for i, value in enumerate(values)))
    for block_bytes in (1, 1 << 20):
        table = open_table(path, block_bytes=block_bytes)
        assert table.columns[1].kind == "numeric"
        assert f"as in {values[0]!r}" in str(table.notes[-1])
        found = [n for block in table.blocks() for n in block.data.column("v").to_pylist()]
        assert found == numbers
    assert open_table(path, categorical=["v"]).columns[1].kind == "category"


def test_amounts_with_decimal_commas(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("n;preis;anteil\n1;1.257,30 €;3,1 %\n2;3 €;4 %\n")
    (block,) = open_table(path).blocks()
    assert block.data.to_pydict() == {"n": [1, 2], "preis": [1257.3, 3], "anteil": [3.1, 4]}


def test_a_negative_amount_among_many_numbers(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("n,v\n" + "".join(f"x,{i}.5\n" for i in range(60)) + "x,(7)\n")
    for options in ({}, {"numeric": ["v"]}):
        (block,) = open_table(path, **options).blocks()
        assert block.data["v"].to_pylist()[-2:] == [59.5, -7.0]


def test_labels_in_parentheses_are_categories(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("n,v\nx,(1)\ny,(2)\nx,(3)\n")
    assert open_table(path).columns[1].kind == "category"
    (block,) = open_table(path, numeric=["v"]).blocks()
    assert block.data["v"].to_pylist() == [-1.0, -2.0, -3.0]


def test_different_symbols_cannot_be_declared_numbers(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("n,v\nx,$1.20\ny,3%\nx,4%\n")
    table = open_table(path)
    assert table.columns[1].kind == "category"
    assert "numeric" not in str(table.notes[-1])


def test_amounts_that_disagree_are_categories_with_a_note(tmp_path):
    path = tmp_path / "rows.csv"
    for values in (["$1.20", "€3", "$2"], ["$1.20", "3", "4"], ["1,257", "1258", "2,000"]):
        path.write_text("n,v\n" + "".join(f'x,"{value}"\n' for value in values))
        table = open_table(path)
        assert table.columns[1].kind == "category"
        assert "write all values in the same format to use them as numbers" in str(table.notes[-1])
    path.write_text("n,v\n" + 'x,"$1,257"\n' * 9)
    other = tmp_path / "second.csv"
    other.write_text("n,v\nx,$3\nx,3\n")
    with pytest.raises(TableError, match=r"line 3, column 'v' \(index 1\): '3' is not a number"):
        list(open_table([path, other]).blocks())


def test_values_with_and_without_a_sign_are_to_be_written_alike(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("u,v\n1,8.1%\n2,12\n")
    table = open_table(path)
    assert table.columns[1].kind == "category"
    assert "write all values in the same format" in str(table.notes[-1])
    (block,) = open_table(path, numeric=["v"]).blocks()  # by somebody who knows
    assert block.data["v"].to_pylist() == [8.1, 12.0]
    lines = [f"{i},{i}" for i in range(40)]
    path.write_text("\n".join(["u,v", *lines, "41,8.1%"]))
    with pytest.raises(NotANumberError, match=r"'8\.1%' is not a number: other values of the") as e:
        list(open_table(path).blocks())
    assert "write all values of the column in the same format" in str(e.value)


@pytest.mark.parametrize("negative", ["({})", "({} €)", "{}-", "\N{MINUS SIGN}{}", "-€ {}"])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_suggestion_for_amounts_with_decimal_commas_works(tmp_path, negative, delimiter):
    path = tmp_path / "rows.csv"
    values = ["377,19", negative.format("1.396,31"), "1.921,27", negative.format("2,5")]
    for other, is_last in (("0.5", False), ("x", True)):
        lines = [f'"{value}"{delimiter}{other}' for value in values]
        path.write_text("\n".join([f"v{delimiter}w", *lines]))
        (note,) = [each for each in open_table(path).notes if getattr(each, "column", "") == "v"]
        settings = [name for remedy in note.remedies for name in remedy.settings]
        for name in settings:
            given = {"numeric": ["v"]} | ({"decimal": ","} if name == "decimal" else {})
            (block,) = open_table(path, **given).blocks()
            assert block.data["v"].to_pylist() == [377.19, -1396.31, 1921.27, -2.5]
        assert settings
        assert is_last or "numeric" not in settings


PARTS = (
    "1",
    "1.5",
    "234",
    ",",
    ".",
    "'",
    " ",
    "\u00a0",
    "(",
    ")",
    "-",
    "\u2212",
    "+",
    "e5",
    "inf",
    "NaN",
)


@settings(max_examples=150, deadline=None)
@given(
    parts=st.lists(st.sampled_from([*PARTS, "%", "$", "US$", "EUR", "a"]), min_size=1, max_size=6),
    decimal=st.sampled_from([".", ","]),
)
@example(["US$", "(", "1", ",", "234", ")"], ".")
@example(["EUR", " ", "1", "e5", "-"], ".")
def test_no_style_is_overlooked(parts, decimal):
    """The first look at a word, which most strings do not pass, lets all numbers pass."""
    words = pa.array(["".join(parts).strip()])
    found = amounts.detect_style(words, decimal)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(amounts, "_DIGITS", re.compile(".*", re.DOTALL))
        assert amounts.detect_style(words, decimal) == found


def test_strings_are_looked_at_once(tmp_path, monkeypatch):
    """A table of 12,000 columns of strings such as a1 took a minute to open."""
    path, tried = tmp_path / "rows.csv", []
    path.write_text(
        ",".join(f"c{i}" for i in range(50)) + 3 * ("\n" + ",".join("a1" for _ in range(50)))
    )
    monkeypatch.setattr(amounts.NumberStyle, "to_numbers", lambda self, _: tried.append(self))
    assert kinds(open_table(path)) == ["category"] * 50
    assert tried == []
