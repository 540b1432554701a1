"""Small files take bounded time and memory, whatever they hold."""

import gzip
import os
import re
import re._parser as sre
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import kernelmill.io.json_lines
import kernelmill.io.sources
import kernelmill.io.text.amounts
import kernelmill.io.text.records
import kernelmill.io.text.sniffing
from kernelmill.io import TableError, open_table
from kernelmill.io.columnar.parquet_pages import read_footer, scan_groups
from kernelmill.io.text import records

MODULES = [
    kernelmill.io.json_lines,
    kernelmill.io.sources,
    kernelmill.io.text.amounts,
    kernelmill.io.text.records,
    kernelmill.io.text.sniffing,
]


def patterns():
    """All patterns of the readers: compiled ones, and strings that RE2 gets, too."""
    found = {}
    for module in MODULES:
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern):
                found[name] = value.pattern
    found |= {name: getattr(records, name) for name in records.__all__ if name.endswith("PATTERN")}
    return {
        name: each.decode("latin-1") if isinstance(each, bytes) else each
        for name, each in found.items()
    }


class Backtracking:
    """The steps of a backtracking matcher: tests of one character, for a failing match."""

    def __init__(self, pattern, text):
        self.text, self.steps = text, 0
        for _ in self.match(list(sre.parse(pattern)), 0):
            raise AssertionError(f"{pattern} matches {text!r}")

    def match(self, items, at):
        """All ends of matches of a sequence, in the order in which they are tried."""
        if not items:
            yield at
            return
        (operation, argument), rest = items[0], items[1:]
        for end in self.one(str(operation), argument, at):
            yield from self.match(rest, end)

    def one(self, operation, argument, at):
        self.steps += 1
        if operation == "SUBPATTERN":
            yield from self.match(list(argument[-1]), at)
        elif operation == "BRANCH":
            for branch in argument[1]:
                yield from self.match(list(branch), at)
        elif operation in ("MAX_REPEAT", "MIN_REPEAT"):
            yield from self.repeat(*argument, at)
        elif operation == "AT":
            at_end = "END" in str(argument)
            if at == (len(self.text) if at_end else 0):
                yield at
        elif operation in ("ASSERT_NOT", "ASSERT"):
            found = next(self.match(list(argument[1]), at), None) is not None
            if found == (operation == "ASSERT"):
                yield at
        elif at < len(self.text) and self.fits(operation, argument, self.text[at]):
            yield at + 1

    def repeat(self, least, most, body, at):
        """Greedy: as often as possible first; iterative, since repeats are long."""
        stack, ends = [(at, 0)], []
        while stack:  # one way to repeat each time, as in all patterns here
            place, count = stack.pop()
            ends.append((place, count))
            if most is sre.MAXREPEAT or count < most:
                following = next(self.match(list(body), place), None)
                if following is not None and following > place:
                    stack.append((following, count + 1))
        for place, count in reversed(ends):
            if count >= least:
                yield place

    @staticmethod
    def fits(operation, argument, character):
        if operation == "IN":
            negated = str(argument[0][0]) == "NEGATE"
            return any(Backtracking.fits(str(o), a, character) for o, a in argument[negated:]) != (
                negated
            )
        code = ord(character)
        return {
            "LITERAL": lambda: code == argument,
            "NOT_LITERAL": lambda: code != argument,
            "ANY": lambda: character != "\n",
            "RANGE": lambda: argument[0] <= code <= argument[1],
            "CATEGORY": lambda: {
                "CATEGORY_DIGIT": character.isdigit(),
                "CATEGORY_SPACE": character.isspace(),
                "CATEGORY_NOT_SPACE": not character.isspace(),
            }[str(argument)],
        }[operation]()


PUMPS = ["9", "9.", ".999", ",999", " ", "1 ", '"', '""', "a", "-", "e1", ":", "\n", "}", "\t"]


def most_steps(pattern, n):
    """The most steps of failing matches of strings of about n characters."""
    most = 0
    for begin in ("", "1", '"', "1:"):
        for pump in PUMPS:
            text = begin + pump * (n // len(pump)) + "!\0"
            if re.compile(rf"(?:{pattern})\Z").match(text) is None:
                most = max(most, Backtracking(rf"(?:{pattern})\Z", text).steps)
    return most


@pytest.mark.parametrize("name", sorted(patterns()))
def test_patterns_are_linear(name):
    pattern = patterns()[name].replace(r"\x{00a0}", "\u00a0").replace(r"\x{202f}", "\u202f")
    few, many = most_steps(pattern, 60), most_steps(pattern, 240)
    assert many <= 4.5 * few + 200  # a quadratic one takes 16 times the steps


def test_the_counter_of_steps_knows_a_quadratic_pattern():
    pattern = r"^[+-]?([0-9]+\.?[0-9]*([eE][+-]?[0-9]+)?)$"
    assert most_steps(pattern, 240) > 10 * most_steps(pattern, 60)


def test_many_digits_in_a_cell(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "9" * 60_000 + "x,1\n2,2\n")
    assert open_table(path).columns[0].kind == "category"


MEASURED = """
import resource, sys
import kernelmill.io
from kernelmill.io import open_table
import pyarrow.csv, pyarrow.parquet
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    for block in open_table(sys.argv[1], **eval(sys.argv[2])).blocks():
        pass
    said = ""
except ValueError as error:
    said = str(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
print(said)
"""


def measure(path, options=None):
    """The memory in kB that reading a table takes, and the error."""
    arguments = [sys.executable, "-c", MEASURED, str(path), repr(options or {})]
    out = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    size, said = out.split("\n", 1)
    return int(size), said


def test_memory_of_wide_text(tmp_path):
    path = tmp_path / "wide.csv"
    names = ",".join(f"c{i}" for i in range(6000))
    path.write_text(names + "\n" + ",".join("1" for _ in range(6000)) + "\n")
    size, said = measure(path)
    assert said.strip() == ""
    assert size < 20 * 6000  # it was 40 kB a column


@pytest.mark.parametrize(
    ("name", "begin", "piece"),
    [
        ("digits.csv.gz", b"a,b\n1,", b"9"),
        ("quote.csv.gz", b'a,b\n1,"', b"x"),
        ("string.jsonl.gz", b'{"a": "', b"x"),
        ("digits.svm.gz", b"1 1:", b"9"),
    ],
)
def test_memory_of_an_endless_value(tmp_path, name, begin, piece):
    """A value of 300 MB, compressed to 300 kB."""
    path = tmp_path / name
    path.write_bytes(gzip.compress(begin) + 30 * gzip.compress(piece * 10_000_000, 1))
    size, said = measure(path)
    assert "16 MiB" in said
    assert size < 300_000  # it was 1.1 GB for digits, and 1.6 GB for quotes


def bomb(path, **settings):
    """2000 rows with the same string of 2 MB."""
    indices = pa.array(np.zeros(2000, np.int32))
    strings = pa.DictionaryArray.from_arrays(indices, pa.array(["a" * 2_000_000]))
    table = pa.table({"s": strings, "b": np.zeros(2000)})
    pa.parquet.write_table(table, path, compression="zstd", **settings)


@pytest.mark.parametrize(
    ("options", "problem"), [({}, ""), ({"dates": ["s"]}, "'s' of 2000 rows would take 4.0 GB")]
)
def test_repeated_strings_of_parquet(tmp_path, options, problem):
    path = tmp_path / "rows.parquet"
    bomb(path, store_schema=False)
    assert path.stat().st_size < 1000
    size, said = measure(path, options)
    assert size < 300_000
    assert problem in said


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("rows.arrow", "row 1, column 's': a string of 150000000 bytes is longer than"),
        ("rows.parquet", "the strings of row group 0 would take 150 MB in memory"),
        ("row.arrow", "row 1: its strings have 150000010 bytes, more than"),
    ],
)
def test_memory_of_long_strings(tmp_path, name, problem):
    """Files of about 10 kB, of one string of 150 MB, or of a row of ten of 15 MB."""
    path = tmp_path / name
    many = ["a" * 15_000_000 + str(i) for i in range(10)]
    row = {f"c{i}": [each] for i, each in enumerate(many)}
    table = pa.table(row if name == "row.arrow" else {"s": ["a" * 150_000_000]})
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path, compression="zstd", use_dictionary=False)
    else:
        pa.feather.write_feather(table, path, compression="zstd")
    del table, row, many
    assert path.stat().st_size < 20_000
    size, said = measure(path)
    assert size < 450_000  # it was 1.2 GB for one string
    assert problem in said


def test_compressed_batches_of_arrow(tmp_path):
    path = tmp_path / "rows.arrow"
    table = pa.table({"a": np.zeros(80_000_000)})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(path, table.schema, options=options) as writer:
        writer.write_table(table)
    del table
    with pytest.raises(TableError, match="a compressed batch would take 640 MB in memory"):
        open_table(path)


def lying_pages(path):
    """Five columns whose pages declare 134 MB each; a page has 1.2 MB, compressed to nothing."""
    table = pa.table({name: ["a" * 1_200_000] for name in "abcde"})
    pa.parquet.write_table(table, path, compression="zstd", use_dictionary=False)
    content, n_changed = path.read_bytes(), 0
    size = 2 * (1_200_000 + 4 + 6)  # with its length and the levels; in zigzag
    for spelled in (size, size + 2, size + 4):
        old, new = (
            b"\x15\x00\x15" + bytes([(n >> s & 0x7F) | 0x80 for s in (0, 7, 14)] + [n >> 21])
            for n in (spelled, 2**28 - 2)
        )
        n_changed += content.count(old)
        content = content.replace(old, new)
    assert n_changed == 5
    path.write_bytes(content)


def test_pages_of_parquet_that_lie(tmp_path):
    path = tmp_path / "rows.parquet"
    lying_pages(path)
    assert path.stat().st_size < 10_000
    with pytest.raises(TableError, match="row group 0 would take 671 MB in memory"):
        open_table(path)


def test_pages_of_other_writers_are_counted(tmp_path):
    """All values are seen in the headers, so that nothing after the last page is parsed."""
    polars = pytest.importorskip("polars")
    path = tmp_path / "rows.parquet"
    frame = polars.DataFrame({"a": np.arange(900.0), "s": [f"t{i % 7}" for i in range(900)]})
    for compression in ("uncompressed", "snappy", "gzip", "zstd"):
        frame.write_parquet(path, compression=compression, row_group_size=400, data_page_size=500)
        with path.open("rb") as file:
            groups = list(scan_groups(read_footer(file), file))
        assert len(groups) >= 2
        assert all(group.stored > 0 and group.held < 20_000 for group in groups)
        assert sum(block.n_rows for block in open_table(path).blocks()) == 900


def shared_strings(kind):
    """2000 rows that share a string of 2 MB, in the ways of Arrow."""
    text = "a" * 2_000_000
    if kind == "runs":
        return pa.RunEndEncodedArray.from_arrays(pa.array([2000], pa.int64()), pa.array([text]))
    views = np.zeros((2000, 4), np.int32)
    views[:, 0], views[:, 1] = len(text), int.from_bytes(b"aaaa", "little")
    buffers = [None, pa.py_buffer(views.tobytes()), pa.py_buffer(text.encode())]
    return pa.Array.from_buffers(pa.string_view(), 2000, buffers)


@pytest.mark.parametrize("kind", ["runs", "views"])
def test_shared_strings_of_arrow(tmp_path, kind):
    """pyarrow crashed: an array of strings holds 2 GiB."""
    path = tmp_path / "rows.arrow"
    batch = pa.record_batch({"s": shared_strings(kind), "b": np.zeros(2000)})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(path, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    with pytest.raises(TableError, match=r"'s' of 2000 rows would take 4\.0 GB in memory"):
        list(open_table(path).blocks())
    few = pa.record_batch({"s": batch.column(0).slice(1990, 5), "b": np.zeros(5)})
    with pa.ipc.new_file(path, few.schema, options=options) as writer:
        writer.write_batch(few)
    [block] = open_table(path).blocks()
    assert len(block.data.column("s").dictionary[0].as_py()) == 2_000_000


def test_bytes_and_lists_of_parquet_are_not_read(tmp_path):
    """A row of few bytes in the file may be a list of any length, or bytes that rows share."""
    path = tmp_path / "rows.parquet"
    shared = pa.array(np.zeros(2000, np.int32)), pa.array([b"a" * 2_000_000])
    columns = {"s": pa.DictionaryArray.from_arrays(*shared), "b": np.zeros(2000)}
    columns["l"] = pa.array([[1.0, 2.0]] * 2000)
    pa.parquet.write_table(pa.table(columns), path, compression="zstd", store_schema=False)
    [block] = open_table(path).blocks()
    assert block.data.column("b").to_pylist() == [0.0] * 2000
    assert [block.data.column(name).null_count for name in "sbl"] == [2000, 0, 2000]


def test_a_named_pipe_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TableError, match="must be a regular file"):
        open_table(tmp_path / "pipe")


def test_objects_over_several_lines_of_json(tmp_path):
    path = tmp_path / "rows.jsonl"
    for text in ('{"a": 1}\n{"a":\n2}\n', '{"a": 1} {"a": 2}\n', '{"a": 1}\nnull{"a": 2}\n'):
        path.write_text(text)
        with pytest.raises(TableError, match="one JSON object per line"):
            list(open_table(path).blocks())
    path.write_bytes(b'{"a": "\xff"}\n')
    with pytest.raises(TableError, match="is not UTF-8"):
        open_table(path)
