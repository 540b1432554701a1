"""The Gaussian kernel by sketches of its Taylor series."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from kernelmill import Fastfood, TaylorSketch
from kernelmill.maps.taylor_sketch import columns_of_degrees


def gaussian_rows(n_rows, dim, seed=0):
    return np.random.default_rng(seed).standard_normal((n_rows, dim))


class TestColumns:
    def test_all_are_used(self):
        for square in [1e-9, 0.1, 1.0, 4.0, 100.0]:
            for dim in [1, 2, 10, 500]:
                for n_columns in [1, 2, 3, 11, 100, 2048]:
                    columns = columns_of_degrees(square, dim, n_columns)
                    assert sum(columns) == n_columns
                    assert columns[0] == 1
                    assert min(columns) >= 1
                    for degree in (1, 2, 5):
                        given = columns_of_degrees(square, dim, n_columns, degree)
                        assert len(given) == min(degree, n_columns - 1) + 1
                        assert sum(given) == n_columns

    def test_terms_get_no_more_than_they_need(self):
        columns = columns_of_degrees(0.5, 3, 500)
        assert columns[:5] == [1, 3, 9, 27, 81]

    def test_the_linear_term_is_exact_where_that_pays(self):
        assert columns_of_degrees(0.25, 100, 1000)[1] == 100
        assert columns_of_degrees(0.25, 10_000, 1000)[1] < 1000

    def test_more_terms_for_larger_norms(self):
        degrees = [len(columns_of_degrees(square, 50, 1000)) for square in (0.01, 0.1, 0.5, 1, 2)]
        assert degrees == sorted(degrees)
        assert degrees[0] < degrees[-1]


@pytest.mark.parametrize("degree", [1, 2, 4])
def test_unbiased_for_the_truncated_series(degree):
    """Means over 800 seeds, at 4.9 standard errors: 1e-6 of normal variables are beyond.

    A mean that is off by 5 percent would be noticed.
    """
    X = 0.6 * gaussian_rows(2, 6)
    parameters = {"length_scale": 0.9, "center": None, "normalize": False, "radius": 1.5}
    sample = np.empty(800)
    for seed in range(sample.size):
        features = TaylorSketch(40, degree=degree, random_state=seed, **parameters).fit(X)
        a, b = features.transform(X)
        sample[seed] = a @ b
    inner, squares = X[0] @ X[1] / 0.81, (X**2).sum() / 0.81
    series = sum(inner**n / math.factorial(n) for n in range(degree + 1))
    error = max(sample.std() / np.sqrt(sample.size), 1e-15)
    expected = series * np.exp(-squares / 2)
    assert abs(sample.mean() - expected) < 4.9 * error
    assert abs(1.05 * sample.mean() - expected) > 4.9 * error


@pytest.mark.parametrize("normalize", [True, False])
def test_nearly_exact_with_few_coordinates(normalize):
    X = gaussian_rows(100, 3)
    features = TaylorSketch(2048, length_scale=6.0, normalize=normalize, random_state=0)
    Z = features.fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, features.exact_kernel(X), rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_have_length_one(dtype):
    X = gaussian_rows(50, 20).astype(dtype)
    Z = TaylorSketch(300, random_state=0).fit_transform(X)
    assert Z.dtype == dtype
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1, rtol=1e-6)


def test_the_origin_of_the_data_does_not_matter():
    X = gaussian_rows(200, 10)
    shift = np.linspace(-5, 5, 10)
    parameters = {"length_scale": 4.0, "n_components": 500, "random_state": 0, "radius": 3.0}
    Z = TaylorSketch(**parameters).fit_transform(X)
    np.testing.assert_allclose(TaylorSketch(**parameters).fit_transform(X + shift), Z, atol=1e-12)
    moved = TaylorSketch(center=None, **parameters).fit_transform(X + shift)
    exact = TaylorSketch(**parameters).fit(X).exact_kernel(X)
    errors = [np.abs(z @ z.T - exact).mean() for z in (Z, moved)]
    assert errors[0] < errors[1] / 5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_are_centered_too(dtype):
    X = gaussian_rows(60, 30).astype(dtype) + 1
    X[np.random.default_rng(1).uniform(size=X.shape) < 0.8] = 0
    features = TaylorSketch(257, random_state=0).fit(sp.csr_array(X))
    dense = TaylorSketch(257, random_state=0).fit(X)
    np.testing.assert_array_equal(features.center_, dense.center_)
    assert features.columns_of_degrees_ == dense.columns_of_degrees_
    tolerance = 1e4 * np.finfo(dtype).eps
    np.testing.assert_allclose(
        features.transform(sp.csr_array(X)), dense.transform(X), rtol=0, atol=tolerance
    )


def rms_error(features, X, n_seeds=3):
    squares = []
    for seed in range(n_seeds):
        Z = features.set_params(random_state=seed).fit_transform(X)
        squares.append(np.square(Z @ Z.T - features.exact_kernel(X)).mean())
    return np.sqrt(np.mean(squares))


@pytest.mark.parametrize("dim", [10, 100])
def test_against_fastfood(dim):
    """Better at a distance of up to one length scale from the mean, worse from two and a half on.

    The ratios seen are 0.01 and 0.10, 0.1 and 0.4, 1.6 and 1.4.
    """
    X = gaussian_rows(300, dim)
    for radius, low, high in [(0.5, 0, 0.2), (1.0, 0, 0.8), (2.5, 1.1, np.inf)]:
        length_scale = np.sqrt(dim) / radius
        taylor = TaylorSketch(1024, length_scale=length_scale)
        fastfood = Fastfood(n_components=1024, length_scale=length_scale)
        assert low < rms_error(taylor, X) / rms_error(fastfood, X) < high


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_rows(dtype):
    X = gaussian_rows(50, 8).astype(dtype)
    features = TaylorSketch(200, length_scale=2.0, random_state=0).fit(X)
    far = np.vstack([np.full(8, size, dtype) for size in (1e2, 1e5, 1e18, np.finfo(dtype).max)])
    Z = features.transform(far)
    assert np.isfinite(Z).all()
    assert (Z[1:] == 0).all()
    assert np.abs(features.transform(X) @ Z.T).max() < 0.1


def test_equal_rows():
    Z = TaylorSketch(random_state=0).fit_transform(np.full((5, 3), 7.0))
    np.testing.assert_allclose(Z @ Z.T, 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"degree": 0}, ValueError, "degree must be"),
        ({"degree": 1.5}, TypeError, "degree must be"),
        ({"center": "median"}, ValueError, "center must be 'mean' or None"),
        ({"radius": 0.0}, ValueError, "radius must be a positive"),
        ({"radius": "median"}, ValueError, "radius must be one of 'scale'"),
        ({"normalize": "yes"}, TypeError, "normalize must be True or False, got 'yes'"),
        ({"hashing": "xor"}, ValueError, "hashing must be one of"),
        ({"length_scale": 1.0, "gamma": 1.0}, ValueError, "only one of length_scale and gamma"),
    ],
)
def test_bad_parameters_of_taylor_sketch(params, error, message):
    with pytest.raises(error, match=message):
        TaylorSketch(**params).fit(np.eye(3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("degree", [171, 320])
def test_degrees_whose_factorial_overflows(degree, dtype):
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(dtype)
    X[0] *= 8
    features = TaylorSketch(n_components=1500, degree=degree, length_scale=1.0, random_state=0)
    Z = features.fit_transform(X)
    assert np.isfinite(Z).all()
    assert np.abs(np.linalg.norm(Z[1:], axis=1) - 1).max() < 0.3
