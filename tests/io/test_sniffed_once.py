"""Changing kinds or the block size derives a table from the opened one, without reading it."""

import bz2
import gzip
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from kernelmill.encoding.inputs import choose_inputs, open_like_training
from kernelmill.errors import ArgumentError
from kernelmill.io import TableError, compression, open_table
from kernelmill.workflows.training.survey import open_source

TEXT = "id,size,town\n" + "".join(f"{i},{i / 4},{'abc'[i % 3]}\n" for i in range(500))


@pytest.fixture
def opened(monkeypatch):
    """The files that were opened so far, each time they were."""
    paths = []

    def count(path, *arguments, _open, **options):
        paths.append(str(path))
        return _open(path, *arguments, **options)

    open_decompressed = compression._open
    monkeypatch.setattr(compression, "_open", lambda path: count(path, _open=open_decompressed))
    read = pa.parquet.ParquetFile
    monkeypatch.setattr(pa.parquet, "ParquetFile", lambda *a, **o: count(*a, _open=read, **o))
    memory_map = pa.memory_map
    monkeypatch.setattr(pa, "memory_map", lambda *a, **o: count(*a, _open=memory_map, **o))
    return paths


@contextmanager
def expect(opened, times):
    before = len(opened)
    yield
    assert len(opened) - before == times


def write_text(path):
    compress = {".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, bytes)
    path.write_bytes(compress(TEXT.encode()))


def write_columns(path):
    columns = {
        "id": [float(i) for i in range(500)],
        "size": [i / 4 for i in range(500)],
        "town": ["abc"[i % 3] for i in range(500)],
    }
    write = pa.parquet.write_table if path.suffix == ".parquet" else pa.feather.write_feather
    write(pa.table(columns), path)


NAMES = ["rows.csv", "rows.csv.gz", "rows.csv.bz2", "rows.parquet", "rows.feather"]


def write(path):
    (write_text if ".csv" in path.name else write_columns)(path)
    return path


def contents(table, seed=None):
    return [(block.first_row, block.data.to_pydict()) for block in table.blocks(seed)]


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("name", NAMES)
def test_derived_tables_are_those_opened_with_the_options(tmp_path, opened, name, seed):
    path = write(tmp_path / name)
    table = open_table(path)
    with expect(opened, 0):
        kinds = table.with_kinds(categorical=["id"])
        small = table.with_block_bytes(1000)
        both = kinds.with_block_bytes(1000)
    expected = {
        kinds: open_table(path, categorical=["id"]),
        small: open_table(path, block_bytes=1000),
        both: open_table(path, categorical=["id"], block_bytes=1000),
        table: open_table(path),
    }
    for derived, direct in expected.items():
        assert derived.columns == direct.columns
        assert contents(derived, seed) == contents(direct, seed)
        assert [str(note) for note in derived.notes] == [str(note) for note in direct.notes]


@pytest.mark.parametrize(("name", "times"), [*zip(NAMES, [1, 1, 1, 2, 3], strict=True)])
def test_a_file_is_opened_once_to_sniff_it(tmp_path, opened, name, times):
    path = write(tmp_path / name)
    # Arrow files: the first bytes; Parquet files too: the schema, and the first strings.
    with expect(opened, times):
        open_table(path)


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
def test_training_and_prediction_sniff_once(tmp_path, opened, name):
    path = write(tmp_path / name)
    with expect(opened, 1):
        table, _ = open_source(path, "town", "regression", {})
    assert table.columns[2].kind == "numeric"
    with expect(opened, 1):
        inputs = choose_inputs(*open_source(path, "town", "auto", {}), ["id"])
    with expect(opened, 1):
        table, names, has_target = open_like_training(path, inputs, {}, 0)
        table = inputs.ignore_others(table, names=names)
    assert (names, has_target) == ({"size": "size"}, True)
    assert [column.kind for column in table.columns] == ["other", "numeric", "other"]


def test_models_of_files_without_a_header_sniff_once(tmp_path, opened):
    path = tmp_path / "rows.csv"
    path.write_text("1,a\n2,b\n" * 20)
    inputs = choose_inputs(*open_source(path, 0, "auto", {}), [])
    path.write_text("3,x\n4,y\n")
    with expect(opened, 1):
        table, _, _ = open_like_training(path, inputs, {}, 0)
    path.write_text("x,y\nx,z\nz,z\n")  # looks like a header
    table, _, _ = open_like_training(path, inputs, {}, 0)
    assert sum(len(columns["0"]) for _, columns in contents(table)) == 3


def test_rows_counted_before_are_known(tmp_path):
    table = open_table(write(tmp_path / "rows.csv"))
    assert table.with_block_bytes(100).n_rows is None
    list(table.blocks())
    assert table.with_block_bytes(100).n_rows == 500
    assert table.with_kinds(categorical=["id"]).n_rows == 500


def test_svmlight_files_are_not_scanned_again(tmp_path, opened):
    paths = [tmp_path / "a.svm", tmp_path / "b.svm.gz"]
    paths[0].write_text("".join(f"{i} 1:{i} 3:1\n" for i in range(200)))
    paths[1].write_bytes(gzip.compress(b"1 0:2 7:1\n" * 100))
    table = open_table(paths)
    with expect(opened, 0):
        small = table.with_block_bytes(200)
    direct = open_table(paths, block_bytes=200)
    assert (small.n_rows, small.n_features, small.zero_based) == (300, 8, True)
    for seed in (None, 1):
        for one, other in zip(small.blocks(seed), direct.blocks(seed), strict=True):
            assert one.first_row == other.first_row
            assert (one.data != other.data).nnz == 0


def test_matrices_in_other_blocks(tmp_path, opened):
    path = tmp_path / "rows.npz"
    np.savez_compressed(path, X=np.arange(40.0).reshape(20, 2), y=np.arange(20))
    table = open_table(path)
    next(table.blocks(seed=0))  # makes a copy, which is shared
    with expect(opened, 0):
        small = table.with_block_bytes(48)
        del table
        blocks = list(small.blocks(seed=0))
    assert sorted(block.n_rows for block in blocks) == [2] + [3] * 6
    with pytest.raises(TableError, match="categorical is for tables with named columns"):
        small.with_kinds(categorical=[0])


def test_decompressed_copies_are_shared(tmp_path, opened):
    table = open_table(write(tmp_path / "rows.csv.gz"))
    list(table.blocks(seed=0))
    small = table.with_block_bytes(1000)
    del table
    with expect(opened, 0):
        assert sum(block.n_rows for block in small.blocks(seed=0)) == 500


def test_decimal_commas_depend_on_the_kinds(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a;b\n1;2,5\n2;3,5\n")
    table = open_table(path)
    assert [column.kind for column in table.columns] == ["numeric", "numeric"]
    derived = table.with_kinds(categorical=["b"])
    assert contents(derived) == contents(open_table(path, categorical=["b"]))
    assert [str(note) for note in derived.notes] == ["The delimiter is a semicolon."]


def test_files_after_the_first_follow_it(tmp_path):
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text("a;b\n1,5;x\n")
    two.write_text("b;a\ny;2,25\n")
    table = open_table([one, two])
    for derived in (table.with_block_bytes(10), table.with_kinds(categorical=["b"])):
        assert contents(derived) == contents(table)
    assert contents(table.with_kinds(categorical=["a"])) == [
        (0, {"a": ["1,5"], "b": ["x"]}),
        (1, {"a": ["2,25"], "b": ["y"]}),
    ]


def test_wrong_changes(tmp_path):
    table = open_table(write(tmp_path / "rows.csv"), numeric=["id"])
    with pytest.raises(TableError, match="has no column 'x'"):
        table.with_kinds(categorical=["x"])
    with pytest.raises(
        TableError, match="'id' must be declared as only one of categorical, numeric and date"
    ):
        table.with_kinds(categorical=["id"])
    with pytest.raises(ArgumentError, match="block_bytes must be at least 1, got 0"):
        table.with_block_bytes(0)


def test_changed_files_are_noticed_by_derived_tables(tmp_path):
    path = write(tmp_path / "rows.csv")
    table = open_table(path)
    path.write_text(TEXT + "501,1,a\n")
    with pytest.raises(TableError, match="changed while it was being read"):
        list(table.with_block_bytes(1000).blocks())
