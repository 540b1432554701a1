"""Real data files, if they are available."""

import os
from pathlib import Path

import numpy as np
import pytest

from kernelmill.io import open_table


def shared(name):
    beside = Path(__file__).parents[3] / "shared" / "data"
    folders = [Path(folder) for folder in (os.environ.get("KERNELMILL_DATA"), beside) if folder]
    found = [folder / name for folder in folders if (folder / name).is_file()]
    if not found:
        pytest.skip(f"{name} is not in the folder that KERNELMILL_DATA names")
    return found[0]


def test_adult():
    table = open_table(shared("adult/adult.data"), block_bytes=1 << 20)
    numeric = {0, 2, 4, 10, 11, 12}
    assert [column.kind == "numeric" for column in table.columns] == [
        i in numeric for i in range(15)
    ]
    missing, classes = np.zeros(15, int), set()
    for block in table.blocks():
        missing += [column.null_count for column in block.data.columns]
        classes |= set(block.data["14"].dictionary.to_pylist())
    assert table.n_rows == 32561
    assert {i: int(n) for i, n in enumerate(missing) if n} == {1: 1836, 6: 1843, 13: 583}
    assert classes == {"<=50K", ">50K"}


def test_two_files_of_adult():
    table = open_table([shared("adult/adult.data"), shared("adult/adult.test")])
    assert sum(block.n_rows for block in table.blocks()) == 32561 + 16281


@pytest.mark.parametrize(
    ("name", "n_rows", "n_columns", "first"),
    [
        ("coil2000/ticdata2000.txt", 5822, 86, "0"),
        ("wine_quality/winequality-white.csv", 4898, 12, "fixed acidity"),
        ("cpu_act/cpu_act.tsv.gz", 8192, 22, "lread"),
        ("parkinsons/parkinsons_updrs.data", 5875, 22, "subject#"),
    ],
)
def test_numbers(name, n_rows, n_columns, first):
    table = open_table(shared(name))
    assert [column.kind for column in table.columns] == ["numeric"] * n_columns
    assert table.columns[0].name == first
    assert all(column.null_count == 0 for block in table.blocks() for column in block.data.columns)
    assert table.n_rows == n_rows


def test_mnist():
    table = open_table(shared("mnist/t10k-images-idx3-ubyte.gz"))
    assert (table.n_rows, table.n_features, table.carries_labels) == (10000, 784, True)
    labels = np.concatenate([block.labels for block in table.blocks()])
    assert np.bincount(labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
