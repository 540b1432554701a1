"""Streams, JSON lines, encodings, codes of missing values, negative positions, images."""

import gzip
import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from kernelmill.errors import ArgumentError
from kernelmill.io import TableError, open_table, open_writer

ROWS = [{"x": 1, "town": "Rome"}, {"x": 2.5, "town": None}, {"town": "Oslo", "x": None}]


def read(table, seed=None):
    rows = {}
    for block in table.blocks(seed):
        for place, row in enumerate(block.data.to_pylist()):
            rows[block.first_row + place] = row
    return [rows[place] for place in sorted(rows)]


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.representative
def test_json_lines(tmp_path):
    path = write_lines(tmp_path / "rows.jsonl", ROWS)
    compressed = tmp_path / "rows.ndjson.gz"
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    plain = tmp_path / "rows"
    plain.write_bytes(path.read_bytes().rstrip())
    for each in (path, compressed, plain):
        table = open_table(each)
        assert table.format == "jsonl"
        assert [(c.name, c.kind) for c in table.columns] == [("x", "numeric"), ("town", "category")]
        assert read(table) == [{"town": None, "x": None} | row for row in ROWS]


def test_json_lines_in_many_blocks(tmp_path):
    rows = [{"i": i, "word": f"w{i % 7}", "late": 0.5 if i == 700 else None} for i in range(900)]
    table = open_table(write_lines(tmp_path / "rows.jsonl", rows), block_bytes=1)
    assert len(list(table.blocks())) > 10
    for seed in (None, 3):
        assert [row["i"] for row in read(table, seed)] == list(range(900))


def test_types_that_change_later_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("kernelmill.io.json_lines._PIECE_BYTES", 64)
    path = write_lines(tmp_path / "rows.jsonl", [{"x": 1}] * 20 + [{"x": "one"}])
    with pytest.raises(TableError, match="a number in one line and a string in another"):
        list(open_table(path).blocks())
    path.write_text('[{"x": 1}]\n')
    with pytest.raises(TableError, match="must have one JSON object per line"):
        open_table(path)
    path.write_text("")
    with pytest.raises(TableError, match="has no lines"):
        open_table(path)


def test_json_lines_are_written(tmp_path):
    path = tmp_path / "rows.jsonl"
    with open_writer(path, {"label": "string", "p": "float64", "n": "int64"}) as writer:
        writer.write({"label": ["Köln", None], "p": [0.5, np.nan], "n": [1, 2]})
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"label": "Köln", "p": 0.5, "n": 1},
        {"label": None, "p": None, "n": 2},
    ]


def test_streams_and_stdin(monkeypatch):
    text = b"x,town\n1,Rome\n2,Oslo\n"
    expected = [{"x": 1, "town": "Rome"}, {"x": 2, "town": "Oslo"}]
    assert read(open_table(io.BytesIO(text))) == expected
    assert read(open_table(io.StringIO(text.decode()))) == expected
    for content in (text, gzip.compress(text)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert read(open_table("-")) == expected
        assert read(open_table("-")) == expected  # read once, and kept


def test_encodings(tmp_path):
    path = tmp_path / "rows.csv"
    text = "straße,n\nKöln,1\nBüdelsdorf,2\n"
    for encoding in ("latin-1", "utf-16", "cp1252"):
        path.write_bytes(text.encode(encoding))
        table = open_table(path, encoding=encoding)
        for seed in (None, 0):
            assert read(table, seed)[0] == {"straße": "Köln", "n": 1}
    path.write_bytes(gzip.compress(text.encode("latin-1")))
    assert read(open_table(path, encoding="iso-8859-1"))[1]["straße"] == "Büdelsdorf"
    path.write_text(text)
    assert open_table(path, encoding="utf8").columns[0].name == "straße"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(TableError, match=r"is not UTF-8; set its encoding \(encoding='latin-1'\)"):
        open_table(path)
    with pytest.raises(TableError, match="is not encoded as ascii"):
        open_table(path, encoding="ascii")
    with pytest.raises(ArgumentError, match="must be the name of an encoding such as latin-1"):
        open_table(path, encoding="latin-one")


def test_codes_of_missing_values(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,town\n1,Rome\n-999, -\n2,-999\n")
    (a, b, c) = read(open_table(path, missing_codes=["-", "-999"]))
    assert (a, b, c) == (
        {"x": 1, "town": "Rome"},
        {"x": None, "town": None},
        {"x": 2, "town": None},
    )
    path.write_text("x,town\n" + "1,Rome\n" * 50 + "oops,-\n")
    with pytest.raises(TableError, match="'oops' is not a number"):  # by the slow parser
        list(open_table(path, missing_codes="-", numeric=["x"]).blocks())
    frame = pd.DataFrame({"x": [1, -999], "t": pd.Categorical(["-", "b"]), "b": [True, False]})
    for source in (frame, pa.table({"x": [1.0, -999.0], "t": ["-", "b"], "b": [True, False]})):
        rows = read(open_table(source, missing_codes=("-", "-999")))
        assert rows == [{"x": 1, "t": None, "b": "true"}, {"x": None, "t": "b", "b": "false"}]
    with pytest.raises(TableError, match="missing_codes is for tables with named columns"):
        open_table(np.eye(2), missing_codes=["1"])


def test_positions_from_the_end(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,c\n1,2,3\n")
    table = open_table(path, categorical=[-2])
    assert [c.kind for c in table.columns] == ["numeric", "category", "numeric"]
    assert (table.column_index(-1), table.column_index("-3")) == (2, 0)
    assert open_table(np.eye(4)).column_index(-1) == 3
    with pytest.raises(TableError, match="column -4 must be between 0 and 2"):
        table.column_index(-4)


@pytest.mark.parametrize("order", ["C", "F"])
def test_images_are_flattened(tmp_path, order):
    images = np.asarray(np.arange(5 * 2 * 3 * 4).reshape(5, 2, 3, 4), np.uint8, order=order)
    np.save(tmp_path / "images.npy", images)
    np.savez(tmp_path / "images.npz", X=images, y=np.arange(5))
    np.savez_compressed(tmp_path / "small.npz", X=images, y=np.arange(5))
    for name in ("images.npy", "images.npz", "small.npz"):
        table = open_table(tmp_path / name, block_bytes=50)
        assert table.n_features == 24
        rows = np.concatenate([block.data for block in table.blocks()])
        np.testing.assert_array_equal(rows, images.reshape(5, 24))


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_words_that_are_not_missing(tmp_path, kind):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "y": ["n/a", "yes", "None"]})
    source = {"csv": tmp_path / "rows.csv", "parquet": tmp_path / "rows.parquet", "frame": frame}
    frame.to_csv(source["csv"], index=False)
    frame.to_parquet(source["parquet"])
    (block,) = open_table(source[kind]).blocks()
    assert block.data["y"].to_pylist() == [None, "yes", None]
    (block,) = open_table(source[kind], not_missing="n/a").blocks()
    assert block.data["y"].to_pylist() == ["n/a", "yes", None]
