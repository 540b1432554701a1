"""Reading svmlight files and tables in blocks compared with other readers, and predicting files."""

import gzip
import io
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from benchmarks.adult import binary_rows, find_adult
from benchmarks.timing import best_times, heading, load
from kernelmill import fit_table
from kernelmill.io import Table, open_table, read_svmlight


def binary_text() -> tuple[str, bytes]:
    """Return about 300,000 rows of a9a or similar rows, and their name."""
    path = find_adult()
    if path is not None:
        return "a9a, ten times", path.read_bytes() * 10
    text = io.BytesIO()
    dump_svmlight_file(binary_rows(30_000), np.ones(30_000), text, zero_based=False)
    return "rows like a9a", text.getvalue() * 10


def dense_text(digits: str) -> bytes:
    """Return 20,000 rows of 100 normal values in a format such as ".6g"."""
    rng = np.random.default_rng(0)
    pair = f"{{}}:{{:{digits}}}".format
    lines = [
        " ".join([str(i % 2), *map(pair, range(1, 101), row)])
        for i, row in enumerate(rng.standard_normal((20_000, 100)).tolist())
    ]
    return "\n".join(lines).encode() + b"\n"


def compare_readers(name: str, text: bytes, path: Path) -> None:
    """Check that both readers agree on a file, and time them."""
    path.write_bytes(text)
    X, labels = read_svmlight(path, dtype=np.float64)
    X_peer, labels_peer = load_svmlight_file(str(path))
    assert np.array_equal(labels, labels_peer)
    assert np.array_equal(X.indptr, X_peer.indptr)
    assert np.array_equal(X.indices, X_peer.indices)
    assert np.array_equal(X.data, X_peer.data)
    table = open_table(path, format="svmlight")
    t = best_times(
        {
            "float32": lambda: read_svmlight(path),
            "float64": lambda: read_svmlight(path, dtype=np.float64),
            "blocks": lambda: sum(block.n_rows for block in table.blocks()),
            "peer": lambda: load_svmlight_file(str(path)),
            "copy": lambda: bytearray(text),
        },
        rounds=3,
    )
    n = X.shape[0]
    for reader in ("float32", "float64", "blocks", "peer", "copy"):
        rows = "" if reader == "copy" else f"{n / t[reader] / 1e3:11.0f}"
        ratio = "" if reader == "copy" else f"{t['peer'] / t[reader]:7.1f}"
        print(f"{name:18s} {reader:8s} {rows:>11s} {len(text) / t[reader] / 1e6:9.1f} {ratio:>7s}")


def bench_svmlight() -> None:
    """Time short rows of ones, and long rows of numbers with few and with all digits."""
    heading("svmlight files to CSR, one thread: read as a whole, or in blocks of float64")
    print(f"peer: sklearn.datasets.load_svmlight_file; copy: of the text in memory; {load()}")
    print(f"{'':18s} {'':8s} {'1000 rows/s':>11s} {'MB/s':>9s} {'x peer':>7s}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.svm"
        name, text = binary_text()
        compare_readers(name, text, path)
        compare_readers("100 x 6 digits", dense_text(".6g"), path)
        compare_readers("100 x 17 digits", dense_text(".17g"), path)


N_ROWS, N_COLUMNS = 100_000, 30


def write_tables(folder: Path) -> dict[str, Path]:
    """Write one table in every format: 29 numbers of six digits, a category, a label."""
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((N_ROWS, N_COLUMNS)), 6)
    columns = {f"x{i}": X[:, i] for i in range(N_COLUMNS - 1)}
    columns["town"] = rng.choice(["Rome", "Oslo", "Lima"], N_ROWS)
    columns["y"] = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    table = pa.table(columns)
    paths = {kind: folder / f"rows.{kind}" for kind in ("csv", "csv.gz", "parquet", "feather")}
    pa.csv.write_csv(table, paths["csv"])
    paths["csv.gz"].write_bytes(gzip.compress(paths["csv"].read_bytes(), 1))
    pa.parquet.write_table(table, paths["parquet"], row_group_size=20_000)
    pa.feather.write_feather(table, paths["feather"], compression="uncompressed")
    return paths


def one_pass(table: Table) -> int:
    """Pass over a table, and count its rows."""
    return sum(block.n_rows for block in table.blocks())


def peer_pass(path: Path) -> int:
    """Pass over a file with pyarrow's own streaming readers, and count its rows."""
    return sum(batch.num_rows for batch in batches(path))


def batches(path: Path) -> Iterator[pa.RecordBatch]:
    """Yield the batches of pyarrow's own streaming readers, of one thread."""
    if path.suffix == ".parquet":
        yield from pa.parquet.ParquetFile(path).iter_batches(use_threads=False)
    elif path.suffix == ".feather":
        with pa.memory_map(str(path)) as source:
            reader = pa.ipc.open_file(source)
            yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        options = pa.csv.ReadOptions(use_threads=False, block_size=8 << 20)
        yield from pa.csv.open_csv(path, read_options=options)


def bench_table_files() -> None:
    """Time one pass over each format, and predictions from file to file."""
    heading(f"One pass over {N_ROWS:,} rows of {N_COLUMNS + 1} columns, files in the cache")
    print(f"peer: pyarrow's readers, one thread; read: of the bytes; {load()}")
    print(f"{'':10s} {'1000 rows/s':>12s} {'peer':>8s} {'x peer':>8s} {'x read':>8s}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = write_tables(folder)
        for kind, path in paths.items():
            table = open_table(path)
            assert one_pass(table) == peer_pass(path) == N_ROWS
            t = best_times(
                {
                    "ours": partial(one_pass, table),
                    "peer": partial(peer_pass, path),
                    "read": path.read_bytes,
                },
                rounds=5,
            )
            rate, peers = (N_ROWS / t[who] / 1e3 for who in ("ours", "peer"))
            ratios = f"{t['peer'] / t['ours']:8.2f} {t['read'] / t['ours']:8.3f}"
            print(f"{kind:10s} {rate:12.0f} {peers:8.0f} {ratios}")
        model = fit_table(paths["parquet"], "y", n_components=1024, tune=False, epochs=1)
        out = folder / "predictions.parquet"
        t = best_times(
            {
                "file to file": lambda: model.predict_table(paths["parquet"], out=out),
                "read only": lambda: peer_pass(paths["parquet"]),
            },
            rounds=3,
        )
        rate, ratio = N_ROWS / t["file to file"], t["file to file"] / t["read only"]
        print("\npredict_table, 1024 features, from Parquet to Parquet:")
        print(f"{rate:,.0f} rows/s, {ratio:.1f}x the time of pyarrow reading the file")
