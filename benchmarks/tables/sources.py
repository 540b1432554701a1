"""The tables and their splits.

Tables come from the folder KERNELMILL_DATA (or shared/data beside the repository), from
scikit-learn, and from a folder that KERNELMILL_TABLES names. Such a folder holds NAME.parquet files
and an ``index.json``, a list of ``{"name": ..., "task": ..., "target": ...}``;
``python -m benchmarks.tables.collect FOLDER`` makes one from data in public packages.
"""

import gzip
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets

TEST_SHARE = 0.2
MAX_TRAIN_ROWS = 50_000
# Tables whose point is their size: all rows, and one split.
WHOLE = ("covtype_full",)

ADULT_COLUMNS = [
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation"),
    *("relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week"),
    *("native_country", "income"),
]


@dataclass(frozen=True)
class Table:
    """Rows with a target; categories are strings, missing values are None or NaN."""

    name: str
    task: str
    target: str
    frame: pd.DataFrame

    @property
    def categorical(self) -> list[str]:
        """The inputs that are categories: those that are not numbers."""
        inputs = self.frame.drop(columns=self.target)
        return [name for name in inputs if not pd.api.types.is_numeric_dtype(inputs[name])]


@dataclass(frozen=True)
class Split:
    """Training and test rows of a table, drawn with a seed."""

    task: str
    target: str
    categorical: list[str]
    train: pd.DataFrame
    test: pd.DataFrame
    seed: int


def split_table(table: Table, seed: int) -> Split:
    """Draw a fifth of the rows for the test, and at most 50,000 of the others for training."""
    n_rows = len(table.frame)
    order = np.random.default_rng(seed).permutation(n_rows)
    n_test = round(n_rows * TEST_SHARE)
    train = order[n_test:] if table.name in WHOLE else order[n_test:][:MAX_TRAIN_ROWS]
    return Split(
        task=table.task,
        target=table.target,
        categorical=table.categorical,
        train=table.frame.iloc[train].reset_index(drop=True),
        test=table.frame.iloc[order[:n_test]].reset_index(drop=True),
        seed=seed,
    )


def count_splits(name: str, n_splits: int) -> int:
    """Return the number of splits of a table: one of those that are taken whole."""
    return min(n_splits, 1) if name in WHOLE else n_splits


def find_tables() -> dict[str, Callable[[], Table]]:
    """Return a loader for each table that is available, by name."""
    found: dict[str, Callable[[], Table]] = {}
    folder = find_data()
    if folder is not None:
        for name, (task, path, load) in DATA.items():
            if (folder / path).exists():
                found[name] = partial(_load_frame, name, task, partial(load, folder / path))
    for name, (task, make) in SCIKIT_LEARN.items():
        found[name] = partial(_load_frame, name, task, make)
    if extra := os.environ.get("KERNELMILL_TABLES"):
        for entry in json.loads((Path(extra) / "index.json").read_text()):
            found[entry["name"]] = partial(_load_parquet, Path(extra), entry)
    return found


def find_data() -> Path | None:
    """Return the folder KERNELMILL_DATA, or shared/data beside the repository if there is one."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    for folder in (os.environ.get("KERNELMILL_DATA"), beside):
        if folder and Path(folder).is_dir():
            return Path(folder)
    return None


def _load_frame(name: str, task: str, load: Callable[[], pd.DataFrame]) -> Table:
    """Load a table whose target is its last column."""
    frame = load()
    return Table(name, task, str(frame.columns[-1]), frame)


def _load_parquet(folder: Path, entry: dict[str, Any]) -> Table:
    frame = pd.read_parquet(folder / f"{entry['name']}.parquet")
    return Table(entry["name"], entry["task"], entry["target"], frame)


def _parkinsons(path: Path) -> pd.DataFrame:
    """The severity of the disease by voice; the subject and the other score would give it away."""
    frame = pd.read_csv(path, sep=None, engine="python")
    return _target_last(frame.drop(columns=["subject#", "motor_UPDRS"]), "total_UPDRS")


def _kegg(path: Path) -> pd.DataFrame:
    return _numbered(pd.read_csv(path, header=None), "target")


def _adult(folder: Path) -> pd.DataFrame:
    """Training and test rows joined, with '?' as missing; labels of the test file end in a dot."""
    parts = [
        pd.read_csv(
            folder / name,
            header=None,
            names=ADULT_COLUMNS,
            skipinitialspace=True,
            na_values="?",
            comment="|",
        )
        for name in ("adult.data", "adult.test")
    ]
    frame = pd.concat(parts).dropna(subset="income").reset_index(drop=True)
    return frame.assign(income=frame["income"].str.rstrip("."))


def _covtype(path: Path) -> pd.DataFrame:
    return _numbered(pd.read_csv(path, header=None), "cover")


def _covtype20k(path: Path) -> pd.DataFrame:
    return _covtype(path).sample(20_000, random_state=0).reset_index(drop=True)


def _coil2000(folder: Path) -> pd.DataFrame:
    """Training and evaluation rows joined."""
    train, evaluation = (
        pd.read_csv(folder / name, sep=r"\s+", header=None)
        for name in ("ticdata2000.txt", "ticeval2000.txt")
    )
    labels = pd.read_csv(folder / "tictgts2000.txt", header=None)[0]
    frame = pd.concat([train, evaluation.assign(**{"85": labels}).set_axis(train.columns, axis=1)])
    return _numbered(frame.reset_index(drop=True), "caravan")


def _mnist10k(folder: Path) -> pd.DataFrame:
    """10,000 of the training images, a column for each pixel."""
    pixels, digits = (
        np.frombuffer(gzip.decompress((folder / name).read_bytes()), np.uint8, offset=offset)
        for name, offset in (
            ("train-images-idx3-ubyte.gz", 16),
            ("train-labels-idx1-ubyte.gz", 8),
        )
    )
    chosen = np.random.default_rng(0).choice(len(digits), 10_000, replace=False)
    X = pixels.reshape(len(digits), -1)[chosen]
    frame = pd.DataFrame(X, columns=[f"p{i}" for i in range(X.shape[1])])
    return frame.assign(digit=digits[chosen].astype(np.int64))


def _friedman1() -> pd.DataFrame:
    """Ten columns, five of which matter, and noise of variance 1."""
    X, y = datasets.make_friedman1(5000, noise=1.0, random_state=0)
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(y=y)


def _numbered(frame: pd.DataFrame, target: str) -> pd.DataFrame:
    return frame.set_axis([*(f"c{i}" for i in range(frame.shape[1] - 1)), target], axis=1)


def _target_last(frame: pd.DataFrame, target: str) -> pd.DataFrame:
    return frame[[*frame.columns.drop(target), target]]


# The task, where to look in the folder of data, and how to load it; the target comes last.
DATA: dict[str, tuple[str, str, Callable[[Path], pd.DataFrame]]] = {
    "parkinsons": ("regression", "parkinsons/parkinsons_updrs.data", _parkinsons),
    "cpu_act": ("regression", "cpu_act/cpu_act.tsv.gz", partial(pd.read_csv, sep="\t")),
    "wine_white": (
        "regression",
        "wine_quality/winequality-white.csv",
        partial(pd.read_csv, sep=";"),
    ),
    "wine_red": ("regression", "wine_quality/winequality-red.csv", partial(pd.read_csv, sep=";")),
    "kegg": ("regression", "kegg/data.csv.gz", _kegg),
    "adult": ("classification", "adult", _adult),
    "covtype20k": ("classification", "covtype/covtype.data.gz", _covtype20k),
    "covtype_full": ("classification", "covtype/covtype.data.gz", _covtype),
    "coil2000": ("classification", "coil2000", _coil2000),
    "mnist10k": ("classification", "mnist", _mnist10k),
}

SCIKIT_LEARN: dict[str, tuple[str, Callable[[], pd.DataFrame]]] = {
    "digits": ("classification", lambda: datasets.load_digits(as_frame=True).frame),
    "breast_cancer": ("classification", lambda: datasets.load_breast_cancer(as_frame=True).frame),
    "diabetes": ("regression", lambda: datasets.load_diabetes(as_frame=True).frame),
    "friedman1": ("regression", _friedman1),
}
