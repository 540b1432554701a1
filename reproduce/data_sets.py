"""The papers' data sets, from their public files or from OpenML; what is missing is named.

The files are in folders of `$KERNELMILL_DATA`, or of shared/data beside the repository, under the
names that their sources give them, compressed or not. Python pickles are never read.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelmill.errors import KernelmillError
from kernelmill.io import open_table, read_svmlight

__all__ = ["DATA_SETS", "DataSet", "MissingDataError", "Rows", "find_data", "load_data"]

_COMPRESSED = ("", ".gz", ".bz2", ".zst")


class MissingDataError(KernelmillError):
    """A data set is neither in the data folders nor available from OpenML."""


@dataclass(frozen=True)
class Rows:
    """Rows and targets; the test rows are the last ones if the source has a split."""

    X: Any  # ndarray, or a CSR matrix for svmlight files
    y: NDArray[Any]
    n_test: int = 0

    @property
    def n_training(self) -> int:
        """How many rows come before the test rows."""
        return int(self.X.shape[0]) - self.n_test


@dataclass(frozen=True)
class DataSet:
    """How to read a data set.

    Parameters
    ----------
    title : str
    files : tuple of str
        In the folder of the data set's name, without the suffixes of compression.
    shape : (int, int)
        Rows and input columns of the whole data set.
    read : callable
        From paths, in the order of `files`, to rows.
    alternatives : tuple of (files, read)
        Other public formats of the same data.
    openml : int, optional
        The id of the data set at openml.org.
    """

    title: str
    files: tuple[str, ...]
    shape: tuple[int, int]
    read: Callable[..., Rows]
    alternatives: tuple[tuple[tuple[str, ...], Callable[..., Rows]], ...] = ()
    openml: int | None = None
    n_test: int = 0  # of the rows of OpenML, which come in the order of the source

    def formats(self) -> list[tuple[tuple[str, ...], Callable[..., Rows]]]:
        """Return the files that hold the data, and how each kind is read."""
        return [(self.files, self.read), *self.alternatives]


def read_numbers(path: Path, **options: Any) -> NDArray[np.float64]:
    """Return the columns of a text or matrix file as an array."""
    blocks = []
    for block in open_table(path, **options).blocks():
        if isinstance(block.data, np.ndarray):
            blocks.append(np.asarray(block.data, np.float64).reshape(block.n_rows, -1))
        else:
            columns = [column.to_numpy(zero_copy_only=False) for column in block.data.columns]
            blocks.append(np.column_stack(columns).astype(np.float64))
    return np.concatenate(blocks)


def _bytes_of(path: Path) -> bytes:
    if path.suffix == ".gz":
        import gzip  # noqa: PLC0415

        return gzip.decompress(path.read_bytes())
    if path.suffix == ".bz2":
        import bz2  # noqa: PLC0415

        return bz2.decompress(path.read_bytes())
    return path.read_bytes()


def _read_mnist(X: Path, _: Path, X_test: Path, __: Path) -> Rows:
    parts = []
    for path in (X, X_test):  # tables find the labels beside the images
        blocks = list(open_table(path).blocks())
        images = np.concatenate([np.asarray(block.data, np.float32) for block in blocks])
        labels = np.concatenate([np.asarray(block.labels, np.int64) for block in blocks])
        parts.append((images.reshape(len(images), -1) / np.float32(255), labels))
    (X_first, y_first), (X_last, y_last) = parts
    return Rows(np.concatenate([X_first, X_last]), np.concatenate([y_first, y_last]), len(y_last))


def _read_svmlight_pair(n_columns: int) -> Callable[[Path, Path], Rows]:
    def read(training: Path, test: Path) -> Rows:
        parts = [read_svmlight(path, n_features=n_columns) for path in (training, test)]
        X = scipy.sparse.vstack([X for X, _ in parts], format="csr")
        return Rows(X, np.concatenate([y for _, y in parts]), len(parts[1][1]))

    return read


def _read_covtype(path: Path) -> Rows:
    table = read_numbers(path, header=False)
    return Rows(table[:, :-1], table[:, -1].astype(np.int64))


def _read_last_column(path: Path) -> Rows:
    table = read_numbers(path)
    return Rows(table[:, :-1], table[:, -1])


def _read_wine(white: Path) -> Rows:
    return _read_last_column(white)


def _read_parkinsons(path: Path) -> Rows:
    # Columns: subject, age, sex, test_time, motor_UPDRS, total_UPDRS, 16 measures of the voice.
    table = read_numbers(path, header=True)
    return Rows(np.delete(table, 5, axis=1), table[:, 5])


def _read_coil(training: Path, test: Path, targets: Path) -> Rows:
    # Line endings are mixed and fields are separated by tabs: np.loadtxt takes both.
    first, second = (np.loadtxt(path) for path in (training, test))
    y = np.concatenate([first[:, -1], np.loadtxt(targets)])
    return Rows(np.concatenate([first[:, :-1], second]), y, len(second))


def _read_kegg(path: Path) -> Rows:
    table = read_numbers(path, header=False)
    return Rows(table[:, :-1], table[:, -1])


def _read_ct_slices(path: Path) -> Rows:
    # Columns: the patient, 384 values of histograms, the position along the axis.
    table = read_numbers(path, header=True)
    return Rows(table[:, 1:-1], table[:, -1])


def _read_year(path: Path) -> Rows:
    # The year comes first; its documentation names the last 51,630 rows as the test rows.
    table = read_numbers(path, header=False)
    n_test = min(51_630, len(table) // 10)
    return Rows(table[:, 1:], table[:, 0], n_test)


def _read_gisette_uci(X: Path, y: Path, X_test: Path, y_test: Path) -> Rows:
    parts = [np.loadtxt(path) for path in (X, X_test)]
    labels = [np.loadtxt(path).astype(np.int64) for path in (y, y_test)]
    return Rows(np.concatenate(parts) / 999.0, np.concatenate(labels), len(labels[1]))


_CIFAR_RECORD = 1 + 3072  # a label, then the red, green and blue planes


def _read_cifar(*batches: Path) -> Rows:
    rows = []
    for path in batches:
        content = np.frombuffer(_bytes_of(path), np.uint8)
        if content.size == 0 or content.size % _CIFAR_RECORD:
            raise MissingDataError(
                f"{path} is not a batch of CIFAR-10: {content.size} bytes are not a multiple of "
                f"{_CIFAR_RECORD}",
                "use the binary version of the data set",
            )
        rows.append(content.reshape(-1, _CIFAR_RECORD))
    images = np.concatenate([each[:, 1:] for each in rows]).astype(np.float32) / np.float32(255)
    labels = np.concatenate([each[:, 0] for each in rows]).astype(np.int64)
    return Rows(images, labels, len(rows[-1]))


def _read_cifar_npz(path: Path) -> Rows:
    with np.load(path, allow_pickle=False) as arrays:
        missing = {"X", "y", "X_test", "y_test"} - set(arrays)
        if missing:
            raise MissingDataError(
                f"{path} lacks the arrays {', '.join(sorted(missing))}",
                "save it with numpy.savez(path, X=X, y=y, X_test=X_test, y_test=y_test)",
            )
        images = [arrays[name].reshape(len(arrays[name]), -1) for name in ("X", "X_test")]
        labels = [arrays[name].ravel().astype(np.int64) for name in ("y", "y_test")]
    scale = np.float32(255 if images[0].dtype == np.uint8 else 1)
    X = np.concatenate([each.astype(np.float32) / scale for each in images])
    return Rows(X, np.concatenate(labels), len(labels[1]))


DATA_SETS: Mapping[str, DataSet] = {
    "mnist": DataSet(
        "MNIST",
        (
            "train-images-idx3-ubyte",
            "train-labels-idx1-ubyte",
            "t10k-images-idx3-ubyte",
            "t10k-labels-idx1-ubyte",
        ),
        (70_000, 784),
        _read_mnist,
        openml=554,
        n_test=10_000,
    ),
    "adult": DataSet(
        "Adult (a9a)",
        ("a9a", "a9a.t"),
        (48_842, 123),
        _read_svmlight_pair(123),
        openml=1430,
    ),
    "covtype": DataSet("Covertype", ("covtype.data",), (581_012, 54), _read_covtype, openml=1596),
    "gisette": DataSet(
        "Gisette",
        ("gisette_scale", "gisette_scale.t"),
        (7000, 5000),
        _read_svmlight_pair(5000),
        alternatives=(
            (
                (
                    "gisette_train.data",
                    "gisette_train.labels",
                    "gisette_valid.data",
                    "gisette_valid.labels",
                ),
                _read_gisette_uci,
            ),
        ),
        openml=41026,
    ),
    "wine_quality": DataSet(
        "Wine Quality (white)", ("winequality-white.csv",), (4898, 11), _read_wine
    ),
    "parkinsons": DataSet(
        "Parkinsons Telemonitoring", ("parkinsons_updrs.data",), (5875, 21), _read_parkinsons
    ),
    "cpu_act": DataSet("CPU", ("cpu_act.tsv",), (8192, 21), _read_last_column, openml=197),
    "coil2000": DataSet(
        "Insurance (COIL 2000)",
        ("ticdata2000.txt", "ticeval2000.txt", "tictgts2000.txt"),
        (9822, 85),
        _read_coil,
    ),
    "kegg": DataSet("KEGG Network (undirected)", ("data.csv",), (63_608, 27), _read_kegg),
    "ct_slices": DataSet(
        "CT slices", ("slice_localization_data.csv",), (53_500, 384), _read_ct_slices
    ),
    "year": DataSet(
        "YearPredictionMSD",
        ("YearPredictionMSD.txt",),
        (515_345, 90),
        _read_year,
    ),
    "cifar10": DataSet(
        "CIFAR-10",
        (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"),
        (60_000, 3072),
        _read_cifar,
        alternatives=((("cifar10.npz",), _read_cifar_npz),),
        openml=40927,
        n_test=10_000,
    ),
}


def data_folders() -> list[Path]:
    """Where data sets are looked for."""
    beside = Path(__file__).resolve().parents[4] / "shared" / "data"
    given = os.environ.get("KERNELMILL_DATA")
    return list(dict.fromkeys([Path(given), beside] if given else [beside]))


def find_data(name: str) -> tuple[list[Path], Callable[..., Rows]] | None:
    """The files of a data set and the function that reads them; None if they are not there."""
    for folder in data_folders():
        for files, read in DATA_SETS[name].formats():
            paths = [_find_file(folder / name, file) for file in files]
            found = [path for path in paths if path is not None]
            if len(found) == len(files):
                return found, read
    return None


def _find_file(folder: Path, file: str) -> Path | None:
    candidates = (folder / f"{file}{suffix}" for suffix in _COMPRESSED)
    return next((path for path in candidates if path.is_file()), None)


@lru_cache(maxsize=3)
def load_data(name: str) -> Rows:
    """Return the rows of a data set, from its files or from OpenML.

    Raises
    ------
    MissingDataError
        Neither is available, or the rows are not those of the data set.
    """
    found = find_data(name)
    if found is None:
        return _fetch(name)
    paths, read = found
    names = ", ".join(path.name for path in paths)
    try:
        rows = read(*paths)
    except (OSError, ValueError) as error:  # of NumPy and of tables, with the place in the file
        raise MissingDataError(
            f"{DATA_SETS[name].title} could not be read from {names}: {error}", "get the file again"
        ) from error
    _check_rows(name, rows, names)
    return rows


def _fetch(name: str) -> Rows:
    """Return the rows from OpenML by scikit-learn's loader, which keeps them in its own cache."""
    data_set = DATA_SETS[name]
    files = " or ".join(", ".join(files) for files, _ in data_set.formats())
    remedy = f"set KERNELMILL_DATA to a folder with {name}/ that holds {files}"
    missing = f"the files of {data_set.title} were not found"
    if data_set.openml is None:
        raise MissingDataError(missing, remedy)
    from sklearn.datasets import fetch_openml  # noqa: PLC0415

    try:
        with warnings.catch_warnings(action="ignore"):  # the error says more than its retries
            fetched = fetch_openml(data_id=data_set.openml, as_frame=False, parser="liac-arff")
    except (OSError, ValueError) as error:
        raise MissingDataError(
            f"{missing}, and OpenML's data set {data_set.openml} could not be loaded",
            remedy,
        ) from error
    X = fetched.data
    if name in ("mnist", "cifar10"):
        X = np.asarray(X, np.float32) / np.float32(255)
    y = np.asarray(fetched.target)
    y = y.astype(np.float64)
    rows = Rows(X, y.astype(np.int64) if np.array_equal(y, np.round(y)) else y, data_set.n_test)
    _check_rows(name, rows, f"OpenML's data set {data_set.openml}")
    return rows


def _check_rows(name: str, rows: Rows, source: str) -> None:
    data_set = DATA_SETS[name]
    if tuple(rows.X.shape) != data_set.shape or len(rows.y) != data_set.shape[0]:
        raise MissingDataError(
            f"{source} has {rows.X.shape[0]} rows of {rows.X.shape[1]} columns, but "
            f"{data_set.title} has {data_set.shape[0]} of {data_set.shape[1]}",
            "get the file again",
        )
    values = rows.X.data if scipy.sparse.issparse(rows.X) else rows.X
    if not math.isfinite(float(np.sum(values))):
        raise MissingDataError(f"{source} has missing or infinite values", "get the file again")
