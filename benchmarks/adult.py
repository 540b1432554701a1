"""The Adult data as binary rows, or similar rows if the file is not available."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import normalize

N_COLUMNS = 123
ONES_A_ROW = 14


def find_adult() -> Path | None:
    """Return the path of a9a in $KERNELMILL_DATA or in ../shared/data."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    for folder in (os.environ.get("KERNELMILL_DATA"), beside):
        if folder and (path := Path(folder) / "adult" / "a9a").is_file():
            return path
    return None


def binary_rows(n: int) -> Any:
    """Draw n CSR rows with 14 ones, some columns more common than others, as in a9a."""
    rng = np.random.default_rng(0)
    keys = rng.exponential(size=(n, N_COLUMNS)) * np.arange(1, N_COLUMNS + 1)
    columns = np.sort(np.argpartition(keys, ONES_A_ROW, axis=1)[:, :ONES_A_ROW], axis=1)
    starts = np.arange(0, columns.size + 1, ONES_A_ROW)
    ones = np.ones(columns.size, np.float32)
    return scipy.sparse.csr_matrix((ones, columns.ravel(), starts), shape=(n, N_COLUMNS))


def adult_rows() -> tuple[Any, str]:
    """Return CSR rows of 123 columns, of length 1 each, in float32, and their description.

    Rows of a9a have up to 14 ones. Rows of length 1 have k(x, x) = 1, as in typical models; the
    relative error of homogeneous kernels does not depend on the scale.
    """
    path = find_adult()
    if path is None:
        return normalize(binary_rows(32561)), "synthetic rows with 14 ones (a9a was not found)"
    X, _ = load_svmlight_file(str(path), n_features=N_COLUMNS, dtype=np.float32)
    return normalize(X), "a9a"
