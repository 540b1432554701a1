"""Random features and step functions of single columns: the steps, their kernel, their limits."""

import numpy as np
import pytest
import scipy.sparse as sp

from kernelmill import AdditiveFourier, Fastfood, KernelClassifier, RandomFourier
from kernelmill.kernels import Gaussian, Laplacian
from kernelmill.maps.additive_fourier import find_steps


def slow_steps(X, steps, weight):
    """The features of steps, one by one."""
    counts = {column: sum(step[0] == column for step in steps) for column, _ in steps}
    out = np.empty((len(X), len(steps)))
    for row, x in enumerate(X):
        for place, (column, value) in enumerate(steps):
            height = np.sqrt(weight / counts[column])
            out[row, place] = height if x[int(column)] > value else -height
    return out


class TestFeatures:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_random_features_then_steps(self, isa, points, dtype):
        X = points(50, 4).astype(dtype)
        fitted = AdditiveFourier(
            n_components=100, length_scale=2.0, weight=3.0, steps=7, random_state=0
        ).fit(X)
        Z = fitted.transform(X)
        assert Z.dtype == dtype
        assert Z.shape == (50, 100)
        assert len(fitted.steps_) == 28
        smooth = Fastfood(n_components=72, length_scale=2.0, structure="sorf", random_state=0)
        np.testing.assert_array_equal(Z[:, :72], smooth.fit_transform(X))
        expected = slow_steps(X.astype(np.float64), fitted.steps_, 3.0)
        np.testing.assert_allclose(Z[:, 72:], expected, rtol=1e-6)

    def test_kernels_that_are_not_radial_have_dense_features(self, points):
        X = points(20, 3)
        fitted = AdditiveFourier(Laplacian(), n_components=40, length_scale=1.0, random_state=0)
        Z = fitted.fit_transform(X)
        n_smooth = 40 - len(fitted.steps_)
        dense = RandomFourier(Laplacian(), n_components=n_smooth, length_scale=1.0, random_state=0)
        np.testing.assert_array_equal(Z[:, :n_smooth], dense.fit_transform(X))

    def test_inner_products_of_steps_are_the_kernel(self, points):
        """Exactly, so that the errors of the sum are those of the random features."""
        X, Y = points(30, 3), points(40, 3)[30:]
        fitted = AdditiveFourier(
            n_components=500, length_scale=1.5, weight=2.0, steps=6, random_state=1
        ).fit(X)
        n_steps = len(fitted.steps_)
        smooth = Gaussian()(X, Y, length_scale=1.5)
        steps = fitted.transform(X)[:, -n_steps:] @ fitted.transform(Y)[:, -n_steps:].T
        np.testing.assert_allclose(fitted.exact_kernel(X, Y), smooth + steps, atol=1e-12)

    def test_sparse_rows(self, points):
        X = points(30, 5) * (points(60, 5)[30:] > 0)
        made = AdditiveFourier(n_components=60, length_scale=1.0, steps=4, random_state=0)
        dense, sparse = made.fit_transform(X), made.fit_transform(sp.csr_array(X))
        np.testing.assert_allclose(sparse, dense, atol=1e-12)


class TestSteps:
    def test_few_values_have_a_step_between_any_two(self):
        X = np.array([[0.0, 1.0], [1.0, 1.0], [3.0, 1.0], [1.0, 1.0]])
        np.testing.assert_array_equal(find_steps(X, 10, 100), [[0, 0.5], [0, 2.0]])

    def test_many_values(self):
        rng = np.random.default_rng(0)
        rare = np.where(rng.random(5000) < 0.95, 0.0, rng.integers(1, 100, 5000))
        X = np.column_stack([rng.normal(size=5000), rare])
        steps = find_steps(X, 20, 1000)
        assert np.bincount(steps[:, 0].astype(int)).tolist() == [20, 20]
        assert (np.diff(steps[:20, 1]) > 0).all()
        assert (np.diff(steps[20:, 1]) > 0).all()
        # Quantiles alone would leave the values of 5 % of the rows to one step.
        assert len(np.unique(np.searchsorted(steps[20:, 1], np.arange(1, 100)))) >= 10

    def test_of_sparse_columns(self):
        X = sp.random(40, 30, density=0.3, random_state=0, format="lil")
        X[:, 3], X[:, 4], X[5, 6] = 1.0, 0.0, -2.0
        for most in (7, 100):
            found = find_steps(X.tocsr(), most, 90)
            np.testing.assert_array_equal(found, find_steps(X.toarray(), most, 90))

    def test_most_in_all(self, points):
        X = points(100, 6)
        assert len(find_steps(X, 50, 60)) == 60
        assert len(find_steps(X, 50, 3)) == 3
        assert find_steps(X[:1], 50, 60).shape == (0, 2)

    def test_ignored_columns_have_none(self, points):
        X = points(20, 3)
        fitted = AdditiveFourier(n_components=50, length_scale=[1.0, np.inf, 2.0]).fit(X)
        assert set(fitted.steps_[:, 0]) == {0.0, 2.0}

    def test_neighbouring_values_of_both_types_are_told_apart(self):
        for dtype in (np.float32, np.float64):
            for low in (1.0, 1.0 + np.finfo(dtype).eps):
                X = np.array([[low], [np.nextafter(dtype(low), dtype(2))]], dtype)
                Z = AdditiveFourier(n_components=3, length_scale=1.0).fit_transform(X)
                assert Z[0, -1] < 0 < Z[1, -1]

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"weight": 0.0}, "weight must be a number above 0"),
            ({"weight": "1"}, "weight must be a number above 0"),
            ({"steps": 0}, "steps"),
            (
                {"steps": [1.0, 2.0]},
                r"steps must be an array whose rows.*shape \(2,\)",
            ),
            ({"steps": [[0.5, 2.0]]}, "steps must be an array whose rows"),
            ({"steps": [[3, 2.0]]}, "steps must have column indices from 0 to 2, got 3 to 3"),
            ({"steps": [[0, 1 + 2j]]}, "steps must be an integer, or an array"),
            ({"steps": [[0, np.nan]]}, "steps must be an array whose rows"),
            ({"steps": [[1, 2.0], [0, 1.0]]}, "steps must be sorted by column"),
            ({"steps": [[0, each] for each in range(20)]}, "n_components must be greater than"),
        ],
    )
    def test_wrong_parameters(self, points, parameters, message):
        with pytest.raises(ValueError, match=message):
            AdditiveFourier(n_components=20, **parameters).fit(points(10, 3))


def test_a_threshold_is_learned_that_a_smooth_kernel_blurs():
    """Errors of 2,000 rows have a standard deviation of 0.6 %: they differ by eight times that."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 10))
    y = (X[:, 0] > 0.3).astype(int) ^ ((X[:, 0] > 0.5) & (X[:, 0] < 0.6))
    error = {}
    for family in (AdditiveFourier, Fastfood):
        features = family(n_components=512, length_scale=4.0, random_state=0)
        model = KernelClassifier(features, alpha=1e-6, solver="lbfgs", tol=1e-4)
        error[family] = 1 - model.fit(X[:4000], y[:4000]).score(X[4000:], y[4000:])
    assert error[AdditiveFourier] < error[Fastfood] / 2
