"""Random features of principal components: the directions, their features, their limits."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA

from kernelmill import Fastfood, KernelClassifier, KernelRegressor, PrincipalFourier
from kernelmill.diagnostics import estimate_variance
from kernelmill.kernels import Gaussian
from kernelmill.learners import load_learner
from kernelmill.maps.principal_fourier import principal_directions


def correlated_rows(n_rows, n_columns, rank=6, dtype=np.float64):
    """Rows near a space of `rank` dimensions, whose variances differ by factors of four."""
    rng = np.random.default_rng([n_rows, n_columns])
    spread = 2.0 ** -np.arange(rank)
    rows = (rng.standard_normal((n_rows, rank)) * spread) @ rng.standard_normal((rank, n_columns))
    return (rows + 0.01 * rng.standard_normal(rows.shape) + 3).astype(dtype)


class TestDirections:
    @pytest.mark.parametrize("shape", [(300, 20), (40, 50), (300, 1), (2, 5)])
    def test_those_of_scikit_learn(self, shape):
        X = correlated_rows(*shape)
        found = principal_directions(X, 5)
        expected = PCA(min(5, shape[1], shape[0] - 1)).fit(X).components_
        signs = np.sign((found * expected).sum(axis=1, keepdims=True))
        np.testing.assert_allclose(found, signs * expected, atol=1e-8)

    def test_more_columns_than_are_decomposed(self):
        X = correlated_rows(100, 3000)
        found = principal_directions(X, 5)
        expected = PCA(5).fit(X).components_
        signs = np.sign((found * expected).sum(axis=1, keepdims=True))
        np.testing.assert_allclose(found, signs * expected, atol=1e-8)
        sparse = principal_directions(sp.csr_array(X), 5)
        np.testing.assert_allclose(sparse, found, atol=1e-8)

    def test_sparse_rows(self):
        X = correlated_rows(200, 30) * (np.arange(30) % 2)
        sparse = principal_directions(sp.csr_array(X), 4)
        np.testing.assert_allclose(sparse, principal_directions(X, 4), atol=1e-8)

    def test_the_largest_entry_is_positive(self):
        found = principal_directions(correlated_rows(200, 30), 6)
        assert (found[np.arange(6), np.abs(found).argmax(axis=1)] > 0).all()

    @pytest.mark.parametrize("shape", [(10, 4), (1, 4), (10, 3000), (1, 3000)])
    def test_rows_that_do_not_vary(self, shape):
        found = principal_directions(np.full(shape, 2.5), 3)
        assert found.shape[1] == shape[1]
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1)

    def test_no_more_than_rows_vary_in(self):
        X = np.outer(np.arange(10.0), [1.0, 2.0, 2.0])
        np.testing.assert_allclose(principal_directions(X, 3)[:1], [[1 / 3, 2 / 3, 2 / 3]])
        assert len(principal_directions(X, 3)) == 1

    def test_rows_in_order(self):
        """Some of many rows are drawn: every other one would be blind to what alternates."""
        X = np.zeros((20_000, 3))
        X[:, 0] = 0.1 * np.random.default_rng(0).standard_normal(20_000)
        X[1::2, 1] = 10 * np.random.default_rng(1).standard_normal(10_000)
        found = principal_directions(X, 1)
        assert abs(found[0, 1]) > 0.999
        np.testing.assert_array_equal(principal_directions(X, 1), found)

    @pytest.mark.parametrize("n_columns", [20, 3000])
    def test_large_offsets(self, n_columns):
        X = correlated_rows(200, n_columns)
        near, far = principal_directions(X, 4), principal_directions(X + 1e7, 4)
        assert np.linalg.svd(near @ far.T, compute_uv=False).min() > 0.999


class TestFeatures:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_those_of_fastfood_of_the_components(self, isa, dtype):
        X = correlated_rows(50, 70, dtype=dtype)
        fitted = PrincipalFourier(n_components=101, directions=5, length_scale=2.0, random_state=3)
        Z = fitted.fit_transform(X)
        assert Z.dtype == dtype
        components = fitted._components(X)
        expected = X.astype(np.float64) @ fitted.directions_.T
        tolerance = 70 * np.finfo(dtype).eps * np.abs(X).max() * 70**0.5
        np.testing.assert_allclose(components, expected, rtol=0, atol=tolerance)
        fastfood = Fastfood(n_components=101, structure="sorf", length_scale=2.0, random_state=3)
        np.testing.assert_array_equal(Z, fastfood.fit_transform(components))

    def test_kernels_that_are_no_mixtures(self):
        X = correlated_rows(20, 10)
        options = {"n_components": 64, "length_scale": 2.0, "random_state": 0}
        fitted = PrincipalFourier("ball_convolution", directions=4, **options).fit(X)
        fastfood = Fastfood("ball_convolution", **options).fit(fitted._components(X))
        expected = fastfood.transform(fitted._components(X))
        np.testing.assert_array_equal(fitted.transform(X), expected)

    def test_a_row_depends_on_itself_alone(self, isa):
        X = correlated_rows(5000, 33, dtype=np.float32)  # more than are reduced at once
        fitted = PrincipalFourier(n_components=16, directions=7, random_state=0).fit(X)
        Z = fitted.transform(X)
        for rows in (slice(0, 1), slice(4090, 4100), slice(4999, 5000)):
            np.testing.assert_array_equal(fitted.transform(X[rows]), Z[rows])
        np.testing.assert_array_equal(fitted.set_params(n_threads=2).transform(X), Z)
        np.testing.assert_array_equal(fitted.transform(sp.csr_array(X)), Z)
        np.testing.assert_array_equal(fitted.transform(np.asfortranarray(X)), Z)

    def test_inner_products_estimate_the_kernel(self):
        """By less than 6 standard deviations: a false alarm in 1e-6 of all seeds, for 900 pairs."""
        X = correlated_rows(30, 40)
        fitted = PrincipalFourier(n_components=20_000, directions=6, length_scale=3.0)
        Z = fitted.set_params(random_state=5).fit_transform(X)
        expected = Gaussian()(X @ fitted.directions_.T, length_scale=3.0)
        np.testing.assert_allclose(fitted.exact_kernel(X), expected, atol=1e-12)
        left, right = np.repeat(X, 30, axis=0), np.tile(X, (30, 1))
        variance = estimate_variance(fitted, left, right).values.reshape(30, 30)
        assert (np.abs(Z @ Z.T - expected) <= 6 * np.sqrt(variance) + 1e-9).all()

    def test_given_directions(self):
        X = correlated_rows(20, 3)
        P = np.asfortranarray([[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
        fitted = PrincipalFourier(n_components=10, directions=P, length_scale=1.0, random_state=0)
        np.testing.assert_array_equal(fitted.fit(X).directions_, P)
        np.testing.assert_allclose(fitted._components(X), X @ P.T, rtol=1e-14)

    def test_fewer_columns_than_directions(self):
        fitted = PrincipalFourier(n_components=10, random_state=0).fit(correlated_rows(100, 3))
        assert fitted.directions_.shape == (3, 3)

    def test_the_scale_is_that_of_the_components(self):
        X = correlated_rows(100, 30)
        fitted = PrincipalFourier(n_components=10, directions=4, length_scale="median").fit(X)
        fastfood = Fastfood(n_components=10, length_scale="median").fit(fitted._components(X))
        assert fitted.length_scale_ == fastfood.length_scale_


class TestErrors:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"directions": 0}, "directions must be"),
            ({"directions": "all"}, "directions must be"),
            ({"directions": [1.0, 2.0]}, r"shape \(n_directions, 3\).*got shape \(2,\)"),
            ({"directions": [[1.0, 2.0]]}, r"got shape \(1, 2\)"),
            ({"directions": [[1.0, 2.0, np.nan]]}, "must be finite"),
            ({"directions": [[1.0, 2.0, 1j]]}, "real numbers"),
            ({"directions": [["a", "b", "c"]]}, "real numbers"),
            ({"directions": np.zeros((0, 3))}, "1 to 16384 rows"),
            ({"kernel": "laplacian"}, "must be radial"),
            ({"length_scale": [1.0, 2.0, 3.0]}, "one number"),
        ],
    )
    def test_parameters(self, parameters, message):
        with pytest.raises((ValueError, TypeError), match=message):
            PrincipalFourier(**parameters).fit(correlated_rows(10, 3))

    def test_huge_numbers(self):
        with pytest.raises(ValueError, match="too large for float64"):
            PrincipalFourier().fit(np.array([[1e200, 0.0], [-1e200, 1.0]]))


class TestLearners:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_batches_have_the_features_of_transform(self, dtype):
        """Learners write features to memory that they use again, and score them there."""
        X = correlated_rows(3000, 80, dtype=dtype)
        y = X[:, 0] > X[:, 1]
        options = {"n_components": 256, "length_scale": 4.0, "random_state": 0}
        model = KernelClassifier(PrincipalFourier(directions=6, **options), random_state=0)
        model.fit(X, y)
        components = model.feature_map_._components(X)
        other = KernelClassifier(Fastfood(structure="sorf", **options), random_state=0)
        np.testing.assert_array_equal(other.fit(components, y).coef_, model.coef_)
        assert model.score(X, y) > 0.9

    def test_model_files(self, tmp_path):
        X = correlated_rows(200, 30)
        for directions in (4, principal_directions(X, 3)):
            features = PrincipalFourier(n_components=64, directions=directions, random_state=0)
            model = KernelRegressor(features).fit(X, X[:, 0])
            model.save(tmp_path / "model.kmill", weights="float64")
            found = load_learner(tmp_path / "model.kmill")
            np.testing.assert_array_equal(found.predict(X), model.predict(X))
            stored = found.feature_map_.directions_
            np.testing.assert_array_equal(stored, model.feature_map_.directions_)
