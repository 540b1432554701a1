"""Small files in the public formats of all data sets, so that every experiment runs anywhere."""

import gzip
from dataclasses import replace

import numpy as np
import pytest

from reproduce import Column, Experiment, Paper, data_sets
from reproduce.data_sets import DATA_SETS, load_data


def write_idx(path, array):
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    path.write_bytes(gzip.compress(head + array.astype(np.uint8).tobytes()))


def write_svmlight(path, X, y):
    lines = (
        " ".join([f"{label:+d}", *(f"{j + 1}:{row[j]:g}" for j in np.flatnonzero(row))])
        for row, label in zip(X, y, strict=True)
    )
    path.write_text("\n".join(lines) + "\n")


def write_table(path, table, delimiter=",", header=None):
    lines = [delimiter.join(f"{value:.6g}" for value in row) for row in table]
    path.write_text("\n".join([*([header] if header else []), *lines]) + "\n")


def write_mnist(folder, rng):
    # A bright square whose place is the digit: easy to learn, and no two pixels are alike.
    for prefix, n in (("train", 300), ("t10k", 100)):
        digits = rng.integers(0, 10, n)
        images = rng.integers(0, 60, (n, 28, 28))
        for image, digit in zip(images, digits, strict=True):
            image[2 * digit : 2 * digit + 8, 5:20] += 150
        write_idx(folder / f"{prefix}-images-idx3-ubyte.gz", images)
        write_idx(folder / f"{prefix}-labels-idx1-ubyte.gz", digits)
    return 400, 784


def write_adult(folder, rng):
    for name, n in (("a9a", 300), ("a9a.t", 100)):
        keys = rng.exponential(size=(n, 123)) * np.arange(1, 124)
        X = np.zeros((n, 123))
        np.put_along_axis(X, np.argsort(keys, axis=1)[:, :14], 1, axis=1)
        write_svmlight(folder / name, X, np.where(X[:, :20].sum(axis=1) > 7, 1, -1))
    return 400, 123


def write_gisette(folder, rng):
    for name, n in (("gisette_scale", 60), ("gisette_scale.t", 30)):
        X = rng.uniform(size=(n, 5000)) * (rng.uniform(size=(n, 5000)) < 0.02)
        write_svmlight(folder / name, X, np.where(X[:, :2500].sum(axis=1) > 25, 1, -1))
    return 90, 5000


def columns_with_target(rng, n, d):
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=n)


def write_covtype(folder, rng):
    X = rng.integers(0, 200, (500, 54))
    classes = 1 + (X[:, :2].sum(axis=1) > 200) + (X[:, 2] > 150)
    table = np.column_stack([X, classes])
    path = folder / "covtype.data"
    write_table(path, table)
    path.with_suffix(".data.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    return 500, 54


def write_wine(folder, rng):
    X, y = columns_with_target(rng, 300, 11)
    header = ";".join([*(f"x{j}" for j in range(11)), "quality"])
    write_table(folder / "winequality-white.csv", np.column_stack([X, y]), ";", header)
    return 300, 11


def write_parkinsons(folder, rng):
    X, y = columns_with_target(rng, 300, 21)
    table = np.insert(X, 5, y, axis=1)
    header = ",".join(f"x{j}" for j in range(22))
    write_table(folder / "parkinsons_updrs.data", table, ",", header)
    return 300, 21


def write_cpu(folder, rng):
    X, y = columns_with_target(rng, 300, 21)
    header = "\t".join([*(f"x{j}" for j in range(21)), "target"])
    write_table(folder / "cpu_act.tsv", np.column_stack([X, y]), "\t", header)
    return 300, 21


def write_coil(folder, rng):
    X, y = columns_with_target(rng, 400, 85)
    y = (y > 0.5).astype(float)
    first = np.column_stack([X, y])[:250]
    write_table(folder / "ticdata2000.txt", first, "\t")
    write_table(folder / "ticeval2000.txt", X[250:], "\t")
    write_table(folder / "tictgts2000.txt", y[250:, None])
    text = (folder / "ticeval2000.txt").read_text()
    (folder / "ticeval2000.txt").write_bytes(text.replace("\n", "\r\n", 90).encode())
    return 400, 85


def write_kegg(folder, rng):
    X, y = columns_with_target(rng, 300, 27)
    write_table(folder / "data.csv", np.column_stack([X, y]))
    return 300, 27


def write_ct_slices(folder, rng):
    X, y = columns_with_target(rng, 200, 384)
    table = np.column_stack([np.arange(200), X, y])
    header = ",".join(["patientId", *(f"value{j}" for j in range(384)), "reference"])
    write_table(folder / "slice_localization_data.csv", table, ",", header)
    return 200, 384


def write_year(folder, rng):
    X, y = columns_with_target(rng, 300, 90)
    write_table(folder / "YearPredictionMSD.txt", np.column_stack([1950 + y.round(), X]))
    return 300, 90


def write_cifar(folder, rng):
    for name in (*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"):
        records = rng.integers(0, 100, (20, 3073)).astype(np.uint8)
        records[:, 0] = rng.integers(0, 10, 20)
        records[np.arange(20), 1 + records[:, 0].astype(int)] = 255
        (folder / name).write_bytes(records.tobytes())
    return 120, 3072


WRITERS = {
    "mnist": write_mnist,
    "adult": write_adult,
    "covtype": write_covtype,
    "gisette": write_gisette,
    "wine_quality": write_wine,
    "parkinsons": write_parkinsons,
    "cpu_act": write_cpu,
    "coil2000": write_coil,
    "kegg": write_kegg,
    "ct_slices": write_ct_slices,
    "year": write_year,
    "cifar10": write_cifar,
}


@pytest.fixture(scope="session")
def small_files(tmp_path_factory):
    """A folder with all data sets, and their shapes."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    shapes = {}
    for name, write in WRITERS.items():
        (folder / name).mkdir()
        shapes[name] = write(folder / name, rng)
    return folder, shapes


@pytest.fixture
def no_network(monkeypatch):
    """Loading from OpenML fails as it does without a network."""

    def fail(**_):
        raise OSError("no network")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fail)


@pytest.fixture
def small_data(small_files, monkeypatch, no_network):
    """All data sets are those of `small_files`."""
    folder, shapes = small_files
    monkeypatch.setattr(data_sets, "data_folders", lambda: [folder])
    for name, shape in shapes.items():
        monkeypatch.setitem(DATA_SETS, name, replace(DATA_SETS[name], shape=shape))
    load_data.cache_clear()
    yield folder
    load_data.cache_clear()


@pytest.fixture
def no_data(tmp_path, monkeypatch, no_network):
    """There are no data sets at all."""
    monkeypatch.setattr(data_sets, "data_folders", lambda: [tmp_path / "nothing"])
    load_data.cache_clear()
    yield tmp_path
    load_data.cache_clear()


PAPER = Paper("paper", "Author (2000)", "Title", "Introduction.")

TABLE = Experiment(
    name="paper-table-1",
    paper=PAPER,
    place="Table 1",
    title="Errors",
    settings="As in the paper.",
    row="data",
    columns=(Column("error"), Column("accuracy", better="higher"), Column("time", better="")),
    parts={"all": ()},
    measure=lambda part, scale, seed: [],
    value="error",
    published={
        ("a", "error"): "0.50",
        ("a", "accuracy"): "80.0±0.5",
        ("a", "time"): "3.1",
        ("b", "error"): "n.a.",
        ("c", "error"): "7.0",
    },
    published_runs=5,
    reasons={"a": "Because of a."},
    not_comparable={"c": "Another unit."},
)


@pytest.fixture
def make_experiment():
    """A table of an imaginary paper, with some fields changed."""
    return lambda **changes: replace(TABLE, **changes)
