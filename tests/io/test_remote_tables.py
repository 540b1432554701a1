"""Tables, predictions and models at URLs, in a store in memory and by file://."""

import gzip
import json
import pickle
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse

import kernelmill
from kernelmill.errors import ArgumentError
from kernelmill.files.remote_path import RemotePath
from kernelmill.formatting import plain
from kernelmill.io import TableError, open_table, open_writer
from kernelmill.io.pieces import cut_table

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def store():
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()


def write_tables(folder):
    table = pa.table({"a": np.arange(40) / 8, "b": [f"w{i % 3}" for i in range(40)]})
    pa.parquet.write_table(table, folder / "t.parquet", row_group_size=7)
    pa.feather.write_feather(table, folder / "t.arrow", chunksize=7)
    text = "a,b\n" + "".join(f"{i / 8},w{i % 3}\n" for i in range(40))
    (folder / "t.csv").write_text(text)
    (folder / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    with pa.CompressedOutputStream(str(folder / "t.csv.zst"), "zstd") as stream:
        stream.write(text.encode())
    (folder / "t.jsonl").write_text("".join(f'{{"a": {i / 8}, "b": "w"}}\n' for i in range(40)))
    X = np.arange(120.0).reshape(40, 3)
    np.save(folder / "t.npy", X)
    np.save(folder / "fortran.npy", np.asfortranarray(X))
    np.savez(folder / "t.npz", X=X, y=np.arange(40) % 2)
    np.savez_compressed(folder / "small.npz", X=X, y=np.arange(40) % 2)
    (folder / "t.svm").write_text("".join(f"{i % 2} 1:{i} 3:1\n" for i in range(40)))
    for name, array in (("images-idx2-ubyte", X), ("labels-idx1-ubyte", X[:, 0])):
        sizes = np.array(array.shape, ">u4").tobytes()
        content = bytes([0, 0, 8, array.ndim]) + sizes + array.astype("u1").tobytes()
        (folder / f"{name}").write_bytes(content)


NAMES = ["t.parquet", "t.arrow", "t.csv", "t.csv.gz", "t.csv.zst", "t.jsonl", "t.npy"]
NAMES += ["fortran.npy", "t.npz", "small.npz", "t.svm", "images-idx2-ubyte"]


def contents(blocks):
    found = []
    for block in blocks:
        data = block.data
        if isinstance(data, pa.RecordBatch):
            rows = data.to_pylist()
        else:
            rows = (data.toarray() if scipy.sparse.issparse(data) else data).tolist()
        labels = [None] * len(rows) if block.labels is None else block.labels.tolist()
        found += list(zip(rows, labels, strict=True))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_those_of_a_local_file(tmp_path, store, name):
    write_tables(tmp_path)
    for path in tmp_path.iterdir():
        store.pipe_file(f"/data/{path.name}", path.read_bytes())
    here = open_table(tmp_path / name, block_bytes=100)
    remote = open_table(f"memory://data/{name}", block_bytes=100)
    expected = contents(here.blocks())
    assert len(expected) == 40
    assert contents(remote.blocks()) == expected
    assert contents(remote.blocks(3)) == contents(here.blocks(3))
    pieces = [pickle.loads(pickle.dumps(piece)) for piece in cut_table(remote, 60)]
    assert contents(block for piece in pieces for block in piece.blocks()) == expected
    by_url = open_table(f"file://{tmp_path / name}")
    assert contents(by_url.blocks()) == expected
    assert by_url.files == (tmp_path / name,)


def test_patterns_and_wrong_names(store):
    for name in ("b", "a"):
        store.pipe_file(f"/data/{name}.csv", f"x\n{ord(name)}\n".encode())
    table = open_table("memory://data/*.csv")
    assert [path.name for path in table.files] == ["a.csv", "b.csv"]
    assert [row["x"] for row, _ in contents(table.blocks())] == [97.0, 98.0]
    for url, words in (
        ("memory://data/c.csv", "does not exist"),
        ("memory://data/*.tsv", "no file matches the pattern memory://data"),
        ("memory://data", "is a folder; use a pattern such as 'memory://data/"),
    ):
        with pytest.raises(TableError, match=words):
            open_table(url)
    with pytest.raises(TableError, match="is given twice"):
        open_table(["memory://data/a.csv", "memory://data/a.csv"])


def test_change_while_reading(store):
    store.pipe_file("/rows.csv", b"x\n1\n2\n")
    table = open_table("memory://rows.csv")
    store.pipe_file("/rows.csv", b"x\n1\n2\n3\n")
    with pytest.raises(TableError, match="changed while it was being read"):
        list(table.blocks())


@pytest.mark.parametrize("read", [open_table, kernelmill.load])
def test_protocols_whose_packages_are_missing(monkeypatch, read):
    with pytest.raises(ArgumentError, match=r"Protocol not known: nosuch; use a URL .* s3://"):
        read("nosuch://bucket/rows.csv")
    for name in ("s3fs", "aiohttp"):
        monkeypatch.setitem(sys.modules, name, None)
    for module in [name for name in sys.modules if name.startswith("fsspec.implementations.http")]:
        monkeypatch.delitem(sys.modules, module)
    for url, packages in (("s3://bucket/rows", "s3fs"), ("https://a.b/rows", "aiohttp requests")):
        with pytest.raises(
            ArgumentError, match="needs a package that is not installed: "
        ) as caught:
            read(url)
        assert f"; install it: pip install fsspec {packages}, or download" in str(caught.value)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ArgumentError, match="install it: pip install fsspec gcsfs"):
        read("gs://bucket/rows.csv")


@pytest.mark.parametrize("read", [open_table, kernelmill.load])
def test_file_systems_that_cannot_be_opened(monkeypatch, read):
    """Each raises its own errors, some of several lines."""

    def fail(url):
        raise OSError("Unable to load libjvm\ndlopen() failed")

    monkeypatch.setattr(fsspec.core, "url_to_fs", fail)
    with pytest.raises(ArgumentError) as caught:
        read("hdfs://host/rows.csv")
    said = str(caught.value)
    assert (
        "hdfs://host/rows.csv cannot be opened: OSError: Unable to load libjvm; use a URL" in said
    )


def test_models_and_predictions(store, tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{x:.4f},{np.sin(x):.4f}" for x in rng.uniform(-3, 3, 300)]
    store.pipe_file("/data/rows.csv", ("x,y\n" + "\n".join(lines)).encode())
    url = "memory://data/rows.csv"
    model = kernelmill.fit_table(url, "y", n_components=32, tune=False, alpha=1e-3)
    assert model.summary.source == url
    model.save("memory://models/m.kmill")
    loaded = kernelmill.load("memory://models/m.kmill")
    loaded.predict_table(url, out="memory://out/p.csv")
    found = np.loadtxt(store.open("/out/p.csv"), skiprows=1)
    np.testing.assert_array_equal(found, loaded.predict(url))
    with pytest.raises(ArgumentError, match="is read, got"):
        loaded.predict_table(url, out=url)
    before = store.cat_file("/out/p.csv")
    with (
        pytest.raises(TableError, match="values must have the columns a"),
        open_writer("memory://out/p.csv", {"a": float}) as writer,
    ):
        writer.write({"b": np.ones(3)})
    assert store.cat_file("/out/p.csv") == before
    model.save(f"file://{tmp_path / 'm.kmill'}")
    assert (tmp_path / "m.kmill").read_bytes() == store.cat_file("/models/m.kmill")
    with pytest.raises(FileNotFoundError, match="there is no model file"):
        kernelmill.load("memory://models/other.kmill")


def test_commands_write_models_to_urls(store, tmp_path, monkeypatch, capfd):
    from kernelmill.cli import main

    monkeypatch.chdir(tmp_path)
    store.pipe_file(
        "/data/rows.csv", b"x,y\n" + b"".join(b"%d,%d\n" % (i, i % 5) for i in range(99))
    )
    fit = ["fit", "memory://data/rows.csv", "-t", "y", "-n", "16", "--no-tune", "--epochs", "2"]
    assert main([*fit, "--out", "memory://models/a.kmill"]) == 0
    assert "Model: memory://models/a.kmill (" in capfd.readouterr().out
    predict = ["predict", "memory://models/a.kmill", "memory://data/rows.csv"]
    assert main([*predict, "--out", "memory://out/a.csv"]) == 0
    assert store.exists("/out/a.csv")
    capfd.readouterr()
    assert main(["inspect", "memory://models/a.kmill"]) == 0
    size = store.size("/models/a.kmill")
    assert f"memory://models/a.kmill ({plain.size(size)})" in capfd.readouterr().out
    store.get_file("/models/a.kmill", tmp_path / "a.kmill")
    assert main(["inspect", f"file://{tmp_path}/a.kmill", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["bytes"] == size
    (tmp_path / "a.kmill").unlink()
    assert main(["inspect", "nowhere://a.kmill"]) == 1
    assert "error: nowhere://a.kmill cannot be opened: Protocol not known" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []  # neither a checkpoint nor its lock
    capfd.readouterr()
    assert main([*fit, "--out", "memory://models"]) == 1
    assert "--out must be a file, got 'memory://models'" in capfd.readouterr().err
    assert main([*fit, "--out", "nowhere://a.kmill"]) == 1
    assert "nowhere://a.kmill cannot be opened" in capfd.readouterr().err


def test_parts_of_paths():
    path = RemotePath("s3://bucket/folder/rows.csv.gz")
    assert (path.name, path.suffix, str(path.parent)) == (
        "rows.csv.gz",
        ".gz",
        "s3://bucket/folder",
    )
    assert pickle.loads(pickle.dumps(path)) == path
