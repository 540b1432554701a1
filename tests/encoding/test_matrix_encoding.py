"""The encoding of matrix files, against scikit-learn's scalers."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from kernelmill.encoding.encoder import RowScaling
from kernelmill.encoding.matrix import MatrixEncoder, MatrixLearner
from kernelmill.files import ModelFileError
from kernelmill.io import TableError


def fit_encoder(blocks, missing="error"):
    learner = MatrixLearner(missing)
    first = 0
    for block in blocks:
        learner.update(block, file="t.npy", first_row=first)
        first += block.shape[0]
    return learner.finish()[:2]


@pytest.mark.representative
def test_dense_columns_are_standardized_in_blocks():
    X = np.random.default_rng(0).normal(3, 5, (200, 4))
    encoder, summary = fit_encoder([X[:70], X[70:71], X[71:]])
    np.testing.assert_allclose(encoder.encode(X), StandardScaler().fit_transform(X), atol=1e-5)
    assert summary[0].n_columns == 4
    assert encoder.groups().tolist() == [0, 1, 2, 3]
    assert encoder.group_names() == ["0", "1", "2", "3"]


def test_constant_columns_become_zeros():
    X = np.c_[np.full(5, 7.0), np.arange(5.0)]
    encoder, _ = fit_encoder([X])
    np.testing.assert_array_equal(encoder.encode(X)[:, 0], 0)


def test_bytes_are_divided_by_255():
    X = np.array([[0, 51, 255]], np.uint8)
    np.testing.assert_allclose(fit_encoder([X])[0].encode(X), [[0, 0.2, 1]])


def test_sparse_columns_are_divided_by_their_largest_value():
    X = csr_array(np.array([[0, 2.0, -4.0], [1.0, 0, 2.0]]))
    encoder, _ = fit_encoder([X])
    encoded = encoder.encode(X)
    np.testing.assert_allclose(encoded.toarray(), MaxAbsScaler().fit_transform(X).toarray())
    assert encoded.dtype == np.float32


def test_sparse_files_may_be_narrower_later():
    X = csr_array(np.array([[0, 2.0, -4.0]]))
    encoder, _ = fit_encoder([X])
    assert encoder.encode(csr_array(np.array([[1.0]]))).shape == (1, 3)
    with pytest.raises(TableError, match="must have 3 columns"):
        encoder.encode(csr_array(np.ones((1, 4))))


@pytest.mark.parametrize("width", [2, 4])
def test_other_widths_are_rejected(width):
    encoder, _ = fit_encoder([np.eye(3)])
    with pytest.raises(TableError, match="must have 3 columns"):
        encoder.encode(np.ones((1, width)))


def test_nan_is_an_error_or_the_mean():
    X = np.array([[1.0, 2.0], [np.nan, 4.0], [3.0, 6.0]])
    with pytest.raises(TableError, match="row 2 has a value that is not finite"):
        fit_encoder([X])
    encoder, summary = fit_encoder([X], "impute")
    assert encoder.encode(X)[1, 0] == 0
    np.testing.assert_allclose(encoder.mean, [2, 4])
    np.testing.assert_allclose(encoder.scale, [1, np.std([2, 4, 6])])
    assert summary[0].missing == 1


def test_infinite_values_are_rejected_always():
    with pytest.raises(TableError, match="not finite"):
        fit_encoder([np.array([[np.inf]])], "impute")


def test_comes_back_from_a_record():
    encoder, _ = fit_encoder([np.arange(6.0).reshape(3, 2)])
    tensors = {}
    again = MatrixEncoder.from_record(encoder.to_record(tensors), tensors)
    np.testing.assert_array_equal(again.encode(np.eye(2)), encoder.encode(np.eye(2)))


@pytest.mark.parametrize("scale", [[1.0, 0.0], [1.0, np.nan], [1.0]], ids=str)
def test_wrong_records_are_rejected(scale):
    arrays = {"mean": np.zeros(2), "scale": np.array(scale)}
    with pytest.raises(ModelFileError, match=r"^scale must be a finite array"):
        MatrixEncoder.from_record({"missing": "error"}, arrays)


def test_scaled_rows_are_the_same_dense_and_sparse():
    X = np.random.default_rng(0).normal(size=(50, 6)) * np.geomspace(1e-3, 1e3, 50)[:, np.newaxis]
    X[3] = 0.0
    X[np.abs(X) < 0.01] = 0.0
    scaling = RowScaling.of_rows(X)
    norms = np.linalg.norm(X, axis=1)
    assert scaling.radius == pytest.approx(np.sqrt(np.mean(norms**2)))
    assert RowScaling.of_rows(csr_array(X)).radius == pytest.approx(scaling.radius)
    expected = X / np.sqrt(scaling.radius**2 + norms**2 / 9)[:, np.newaxis]
    np.testing.assert_allclose(scaling.apply(X), expected, rtol=1e-12)
    sparse = scaling.apply(csr_array(X.astype(np.float32)))
    assert sparse.dtype == np.float32
    np.testing.assert_allclose(sparse.toarray(), expected, rtol=1e-5)
    assert RowScaling.of_rows(np.zeros((2, 3))).apply(np.zeros((2, 3))).tolist() == [[0.0] * 3] * 2


def test_encoders_scale_rows_last():
    X = np.random.default_rng(0).normal(3, 5, (30, 4))
    plain, _ = fit_encoder([X])
    scaled = replace(plain, rows=RowScaling(2.0))
    np.testing.assert_array_equal(scaled.encode(X), RowScaling(2.0).apply(plain.encode(X)))
    tensors = {}
    record = scaled.to_record(tensors)
    assert record["rows"] == {"radius": 2.0}
    assert "rows" not in plain.to_record({})
    assert MatrixEncoder.from_record(record, tensors).rows == RowScaling(2.0)
    with pytest.raises(ModelFileError, match="radius must be a number above 0"):
        MatrixEncoder.from_record({**record, "rows": {"radius": 0.0}}, tensors)
