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
    encoder, summary = learner.in_one_unit(*learner.finish(batch)[:2])
    scale = common_scale(X[:, 1:].std(axis=0))
    expected = (X[:, 1:] - np.r_[0, X[:, 2:].mean(axis=0)]) / scale  # 0 and 1 are not centered
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
    encoder, summary = learner.in_one_unit(*learner.finish(X)[:2])
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
        (pixels(d=9), {}),  # seven columns have more values than 0 and 1
        (pixels() * np.logspace(0, 4, 12), {}),
        (pixels() + 1000 * np.arange(12), {}),
        (pixels(), {"transform": "none"}),
        (pixels(), {"transform": "rank"}),
    ],
    ids=["few", "other ranges", "other places", "none", "rank"],
)
def test_columns_that_are_standardized(X, options):
    learner, batch = fit_columns(X, **options)
    assert learner.in_one_unit(*learner.finish(batch)[:2]) is None
    matrix = MatrixLearner("error", options.get("transform", "auto"))
    matrix.update(X[:, 2:], file="t.npy", first_row=0)
    assert matrix.in_one_unit(*matrix.finish(X[:, 2:])[:2]) is None


def test_other_columns_keep_their_encoding():
    X = with_missing(pixels(d=11))
    X[:, :2] = X[:, 2:4] > 8  # many columns of 0 and 1
    X[5, 1] = 0
    columns = {f"c{j}": pa.array(x, from_pandas=True) for j, x in enumerate(X.T)}
    batch = pa.RecordBatch.from_pydict({"town": pa.array(["a", "b", "c"] * 100), **columns})
    kinds = [(name, "category" if name == "town" else "numeric") for name in batch.schema.names]
    learner = ColumnLearner(kinds, "impute")
    learner.update(batch, file="t.csv", first_row=0)
    standard, summary = learner.finish(batch)[:2]
    encoder, others = learner.in_one_unit(standard, summary)
    before, after = standard.encode(batch), encoder.encode(batch)
    assert encoder.input_names() == standard.input_names()
    assert "c3 is missing" in encoder.input_names()
    np.testing.assert_array_equal(after[:, :5], before[:, :5])  # towns, and 0 and 1
    factors = [each.scale for each in standard.columns[3:]]
    assert len(set(factors)) > 1
    scale = encoder.columns[-1].scale
    np.testing.assert_allclose(after[:, 5] * scale, before[:, 5] * factors[0], atol=1e-5)
    assert after[5, 6] == 0  # missing
    assert [each.missing for each in others] == [each.missing for each in summary]


def test_columns_of_zero_and_one_are_not_scaled():
    X = (pixels() > 8).astype(float)
    X[:, 0] = X[:, 2]
    learner, batch = fit_columns(X)
    assert learner.in_one_unit(*learner.finish(batch)[:2]) is None


def test_images_and_sparse_rows_have_their_own_encoding():
    for X in (pixels().astype(np.uint8), csr_array(pixels())):
        learner = MatrixLearner("error")
        learner.update(X, file="t.npy", first_row=0)
        assert learner.in_one_unit(*learner.finish()[:2]) is None


def test_extreme_ranges():
    assert not may_share_unit([-1.7e308] * 9, [1.7e308] * 9)
    assert not may_share_unit([np.inf] * 9, [-np.inf] * 9)
    assert not may_share_unit([], [])
    assert not may_share_unit([0.0] * 8, [1e-165] * 8)
    assert may_share_unit([0.0] * 8, [1.0] * 8)
    for size in (1e-90, 1e200):
        assert common_scale([3 * size, 4 * size]) == pytest.approx(12.5**0.5 * size)
