"""`features="projection"`: the frequencies times the rows, for all constructions."""

import numpy as np
import pytest
from scipy import sparse

from kernelmill import Fastfood, KernelRegressor, RandomFourier
from kernelmill.errors import ArgumentError
from kernelmill.learners.loading import load_learner

MAPS = [
    RandomFourier(features="projection"),
    RandomFourier("laplacian", features="projection", store_matrix=False),
    RandomFourier(features="projection", sampling="orthogonal"),
    Fastfood(features="projection"),
    Fastfood(features="projection", blocks="independent"),
    *(Fastfood(features="projection", structure=each) for each in ("sorf", "dct", "fft")),
]


def rows(n=7, dim=5):
    return np.random.default_rng(0).normal(size=(n, dim))


@pytest.mark.parametrize("feature_map", MAPS, ids=str)
def test_projection_is_linear_and_its_cosines_are_the_features(feature_map):
    X = rows()
    fitted = feature_map.set_params(n_components=130, length_scale=1.5, random_state=3).fit(X)
    Z = fitted.transform(X)
    assert Z.shape == (7, 130)
    V = fitted.transform(np.eye(5))
    np.testing.assert_allclose(Z, X @ V, atol=1e-12)
    np.testing.assert_allclose(fitted.transform(sparse.csr_array(X)), Z, atol=1e-12)
    assert fitted.transform(X.astype(np.float32)).dtype == np.float32
    cosines = feature_map.set_params(features="cos_sin", n_components=260).fit_transform(X)
    np.testing.assert_allclose(cosines[:, :130], np.cos(Z) / np.sqrt(130), atol=1e-12)
    feature_map.set_params(features="projection")


def test_lengths_of_frequencies():
    """Squares of the Gaussian kernel have the mean d / scale^2: 4.9 standard errors."""
    V = Fastfood(n_components=20_000, length_scale=2.0, features="projection", random_state=0)
    squares = np.square(V.fit(rows()).transform(np.eye(5))).sum(axis=0)
    error = squares.std(ddof=1) / np.sqrt(squares.size)
    assert abs(squares.mean() - 5 / 4) < 4.9 * error


def test_has_no_kernel():
    fitted = Fastfood(features="projection").fit(rows())
    with pytest.raises(ArgumentError, match="which have no kernel"):
        fitted.exact_kernel(rows())


def test_learner_in_a_file(tmp_path):
    X = rows(60)
    features = RandomFourier(n_components=20, features="projection", random_state=0)
    model = KernelRegressor(features, alpha=1e-6).fit(X, X[:, 0])
    np.testing.assert_allclose(model.predict(X), X[:, 0], atol=1e-2)
    model.save(tmp_path / "m.kmill", weights="float64")
    loaded = load_learner(tmp_path / "m.kmill")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
