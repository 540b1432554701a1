"""Reading svmlight files beside scikit-learn's reader and a copy of the file in memory."""

import io
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from benchmarks.adult import binary_rows, find_adult
from benchmarks.extent import load
from benchmarks.timing import best_times, heading
from kernelmill.io import open_table, read_svmlight


def binary_text() -> tuple[str, bytes]:
    """Return some 300,000 rows of a9a, or of rows like them, and what they are."""
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


def compare(name: str, text: bytes, path: Path) -> None:
    """Time one file, after a check that both readers agree on it."""
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


def main() -> None:
    """Time short rows of ones, and long rows of numbers with few and with all digits."""
    heading("svmlight files to CSR, one thread: read as a whole, or in blocks of float64")
    print(f"peer: sklearn.datasets.load_svmlight_file; copy: of the text in memory; {load()}")
    print(f"{'':18s} {'':8s} {'1000 rows/s':>11s} {'MB/s':>9s} {'x peer':>7s}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.svm"
        name, text = binary_text()
        compare(name, text, path)
        compare("100 x 6 digits", dense_text(".6g"), path)
        compare("100 x 17 digits", dense_text(".17g"), path)


if __name__ == "__main__":
    main()
