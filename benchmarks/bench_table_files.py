"""Tables in blocks compared with pyarrow's readers, and the cost of encoding and prediction."""

import gzip
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from benchmarks.extent import load
from benchmarks.timing import best_times, heading
from kernelmill import fit_table
from kernelmill.io import Table, open_table

N_ROWS, N_COLUMNS = 100_000, 30


def written(folder: Path) -> dict[str, Path]:
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


def peer(path: Path) -> int:
    """Pass over a file with pyarrow's own streaming readers, and count its rows."""
    return sum(batch.num_rows for batch in batches(path))


def batches(path: Path) -> Iterator[pa.RecordBatch]:
    """Give the batches of pyarrow's own streaming readers, of one thread."""
    if path.suffix == ".parquet":
        yield from pa.parquet.ParquetFile(path).iter_batches(use_threads=False)
    elif path.suffix == ".feather":
        with pa.memory_map(str(path)) as source:
            reader = pa.ipc.open_file(source)
            yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        options = pa.csv.ReadOptions(use_threads=False, block_size=8 << 20)
        yield from pa.csv.open_csv(path, read_options=options)


def main() -> None:
    """Time one pass over each format, and predictions from file to file."""
    heading(f"One pass over {N_ROWS:,} rows of {N_COLUMNS + 1} columns, files in the cache")
    print(f"peer: pyarrow's readers, one thread; read: of the bytes; {load()}")
    print(f"{'':10s} {'1000 rows/s':>12s} {'peer':>8s} {'x peer':>8s} {'x read':>8s}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = written(folder)
        for kind, path in paths.items():
            table = open_table(path)
            assert one_pass(table) == peer(path) == N_ROWS
            t = best_times(
                {
                    "ours": partial(one_pass, table),
                    "peer": partial(peer, path),
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
                "read only": lambda: peer(paths["parquet"]),
            },
            rounds=3,
        )
        rate, ratio = N_ROWS / t["file to file"], t["file to file"] / t["read only"]
        print("\npredict_table, 1024 features, from Parquet to Parquet:")
        print(f"{rate:,.0f} rows/s, {ratio:.1f}x the time of pyarrow reading the file")


if __name__ == "__main__":
    main()
