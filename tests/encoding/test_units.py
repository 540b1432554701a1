"""Columns in one unit: which may have one, and how they are encoded."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from kernelmill.encoding.encoder import ColumnLearner
from kernelmill.encoding.matrix import MatrixLearner
from kernelmill.encoding.units import common_scale, may_share_unit


def pixels(n=300, d=12, seed=0):
    """Counts from 0 to 16: the first column is constant, the second hardly varies."""
    X = np.random.default_rng(seed).integers(0, 17, (n, d)).astype(float)
    X[:, 0] = 3
    X[:, 1] = X[:, 1] == 16
    return X


def fit_columns(X, missing="error", transform="auto"):
    names = [f"c{j}" for j in range(X.shape[1])]
    batch = pa.RecordBatch.from_arrays([pa.array(x) for x in X.T], names)
    learner = ColumnLearner([(name, "numeric") for name in names], missing, transform)
    half = len(X) // 2
    learner.update(batch.slice(0, half), file="t.csv", first_row=0)
    learner.update(batch.slice(half), file="t.csv", first_row=half)
    return learner, batch


@pytest.mark.representative
def test_columns_are_divided_by_one_number():
    X = pixels()
    learner, batch = fit_columns(X)
    encoder, summary = learner.finish_in_one_unit()
    scale = common_scale(X[:, 1:].std(axis=0))
    expected = (X[:, 1:] - np.r_[0, X[:, 2:].mean(axis=0)]) / scale  # a column of 0 and 1 stays
    np.testing.assert_allclose(encoder.encode(batch), expected, atol=1e-6)
    assert encoder.unused == {"c0"}
    assert [each.n_columns for each in summary] == [0] + 11 * [1]
    assert "constant" in summary[0].detail
    assert f"divided by {scale:.3g}" in summary[2].detail


def test_columns_of_a_matrix_are_divided_by_one_number():
    X = pixels().astype(np.float32)
    learner = MatrixLearner("error")
    learner.update(X[:100], file="t.npy", first_row=0)
    learner.update(X[100:], file="t.npy", first_row=100)
    encoder, summary = learner.finish_in_one_unit()
    scale = common_scale(X[:, 1:].std(axis=0, dtype=np.float64))
    expected = (X - X.mean(axis=0, dtype=np.float64)) / scale
    np.testing.assert_allclose(encoder.encode(X), expected, atol=1e-5)
    assert "divided by" in summary[0].detail


def with_missing(X):
    X = X.copy()
    X[5, 3] = np.nan
    return X


@pytest.mark.parametrize(
    ("X", "options"),
    [
        (pixels(d=8), {}),  # seven columns vary
        (pixels() * np.logspace(0, 4, 12), {}),
        (pixels() + 1000 * np.arange(12), {}),
        (with_missing(pixels()), {"missing": "impute"}),
        (pixels(), {"transform": "none"}),
        (pixels(), {"transform": "rank"}),
    ],
    ids=["few", "other ranges", "other places", "missing", "none", "rank"],
)
def test_columns_that_are_standardized(X, options):
    assert fit_columns(X, **options)[0].finish_in_one_unit() is None
    learner = MatrixLearner(options.get("missing", "error"), options.get("transform", "auto"))
    learner.update(X, file="t.npy", first_row=0)
    assert learner.finish_in_one_unit() is None


def test_columns_of_zero_and_one_and_categories_are_not_scaled():
    X = (pixels() > 8).astype(float)
    X[:, 0] = X[:, 2]
    assert fit_columns(X)[0].finish_in_one_unit() is None
    batch = pa.RecordBatch.from_pydict({f"c{j}": x for j, x in enumerate(pixels().T)})
    batch = batch.append_column("town", pa.array(["a", "b", "c"] * 100))
    kinds = [(name, "category" if name == "town" else "numeric") for name in batch.schema.names]
    learner = ColumnLearner(kinds, "error")
    learner.update(batch, file="t.csv", first_row=0)
    assert learner.finish_in_one_unit() is None


def test_images_and_sparse_rows_have_their_own_encoding():
    for X in (pixels().astype(np.uint8), csr_array(pixels())):
        learner = MatrixLearner("error")
        learner.update(X, file="t.npy", first_row=0)
        assert learner.finish_in_one_unit() is None


def test_extreme_ranges():
    assert not may_share_unit([-1.7e308] * 9, [1.7e308] * 9)
    assert not may_share_unit([np.inf] * 9, [-np.inf] * 9)
    assert not may_share_unit([], [])
    assert may_share_unit([0.0] * 8, [1.0] * 8)
