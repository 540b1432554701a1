"""Values of one kernel from those of another, exact and estimated."""

import numpy as np
import pytest

from kernelmill import Fastfood, TensorSketch
from kernelmill.kernels import (
    ArcCosine,
    ExponentialDotProduct,
    Gaussian,
    Maclaurin,
    Matern,
    Polynomial,
    convert,
    squared_norms,
)

DOT_PRODUCTS = [
    Polynomial(1),
    Polynomial(2),
    Polynomial(2, gamma=0.3, coef0=2.0),
    Polynomial(3, gamma=2.0, coef0=0.5),
    Polynomial(7),
    ExponentialDotProduct(),
    ExponentialDotProduct(1.7),
]


def points(n, d=5, seed=0):
    """Points without negative coordinates: even powers keep their inner products."""
    return np.random.default_rng([seed, n]).random((n, d))


def norms(X):
    return (X**2).sum(axis=1)


@pytest.mark.parametrize("kernel", DOT_PRODUCTS, ids=repr)
@pytest.mark.parametrize("length_scale", [0.7, 3.0])
def test_exact_values_give_exact_values(kernel, length_scale):
    X, Y = points(6), points(4, seed=1)
    gaussian = Gaussian()(X, Y, length_scale=length_scale)
    given = {
        "length_scale": length_scale,
        "squared_norms_X": norms(X),
        "squared_norms_Y": norms(Y),
    }
    forth = convert(kernel(X, Y), kernel, Gaussian(), **given)
    assert forth.dtype == np.float64
    np.testing.assert_allclose(forth, gaussian, rtol=1e-13)
    back = convert(gaussian, Gaussian(), kernel, **given)
    np.testing.assert_allclose(back, kernel(X, Y), rtol=1e-12)


@pytest.mark.parametrize("source", DOT_PRODUCTS, ids=repr)
@pytest.mark.parametrize("target", [*DOT_PRODUCTS, Maclaurin([1.0, 0.0, 2.0])], ids=repr)
def test_between_dot_product_kernels_no_lengths_are_needed(source, target):
    X, Y = points(6), points(4, seed=1)
    actual = convert(source(X, Y), source, target)
    np.testing.assert_allclose(actual, target(X, Y), rtol=1e-13)


def test_one_set_of_points_and_default_length_scale():
    X = points(6)
    kernel = Polynomial(3)
    expected = Gaussian()(X)
    actual = convert(kernel(X), kernel, Gaussian(), squared_norms_X=norms(X))
    np.testing.assert_allclose(actual, expected, rtol=1e-13)
    lists = convert(kernel(X).tolist(), kernel, Gaussian(), squared_norms_X=norms(X).tolist())
    np.testing.assert_array_equal(lists, actual)


def test_one_length_for_all():
    X, Y = points(6), points(4, seed=1)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Y *= 2 / np.linalg.norm(Y, axis=1, keepdims=True)
    kernel = Polynomial(2)
    same = convert(kernel(X), kernel, Gaussian(), squared_norms_X=1.0)
    np.testing.assert_allclose(same, Gaussian()(X), rtol=1e-13)
    other = convert(kernel(X, Y), kernel, Gaussian(), squared_norms_X=1, squared_norms_Y=4)
    np.testing.assert_allclose(other, Gaussian()(X, Y), rtol=1e-13)
    # A number stands for the points of Y as well, however many they are.
    twins = convert(kernel(X, Y / 2), kernel, Gaussian(), squared_norms_X=1)
    np.testing.assert_allclose(twins, Gaussian()(X, Y / 2), rtol=1e-13)


@pytest.mark.parametrize("kernel", DOT_PRODUCTS, ids=repr)
def test_lengths_from_the_diagonal(kernel):
    X = points(6)
    found = squared_norms(np.diag(kernel(X)), kernel)
    np.testing.assert_allclose(found, norms(X), rtol=1e-13)


def test_lengths_are_never_negative():
    kernel = Polynomial(2, coef0=2.0)
    assert squared_norms([4.0, 3.9, -1.0, 9.0], kernel).tolist() == [0, 0, 0, 1]
    exponential = squared_norms([1.0, 0.5, np.e, 0.0], ExponentialDotProduct())
    np.testing.assert_array_equal(exponential, [0, 0, 1, np.nan])


def test_odd_powers_keep_the_sign_and_even_ones_lose_it():
    x, y = np.array([[1.0, 0.0]]), np.array([[-2.0, 1.0]])
    given = {"squared_norms_X": norms(x), "squared_norms_Y": norms(y)}
    for kernel, right in (
        (Polynomial(3), True),
        (Polynomial(3, coef0=1.0), True),
        (Polynomial(2, coef0=2.0), True),  # just no less than 0
        (Polynomial(2, coef0=1.9), False),
        (Polynomial(2), False),
    ):
        actual = convert(kernel(x, y), kernel, Gaussian(), **given)
        assert (np.abs(actual - Gaussian()(x, y)) < 1e-12).all() == right
    # The mirrored point would have given the same value of the even power.
    actual = convert([[4.0]], Polynomial(2), Gaussian(), **given)
    np.testing.assert_allclose(actual, Gaussian()(x, -y), rtol=1e-14)


def test_estimates_that_no_points_have():
    nan = np.nan
    exponential, cube, square = ExponentialDotProduct(), Polynomial(3), Polynomial(2)
    linear = Polynomial(1)

    def run(values, source, target):
        return convert([values], source, target, squared_norms_X=2.0).tolist()[0]

    assert run([1.0, 1.5, 0.0, -0.1, nan], Gaussian(), linear) == pytest.approx(
        [2.0, 2.0, nan, nan, nan], nan_ok=True
    )
    # Root 0 is inner product 0, squared distance 4; an inner product above 2 is distance 0.
    far = np.exp(-2)
    assert run([0.0, -3.0, 4.0, 25.0, nan], square, Gaussian()) == pytest.approx(
        [far, far, 1, 1, nan], nan_ok=True
    )
    assert run([-8.0, 0.0, 64.0], cube, Gaussian()) == pytest.approx([np.exp(-4), far, 1])
    assert run([1.0, 0.0, -1.0, np.e**9, nan], exponential, Gaussian()) == pytest.approx(
        [far, nan, nan, 1, nan], nan_ok=True
    )
    assert convert([[-4.0, nan]], square, linear).tolist()[0] == pytest.approx(
        [0, nan], nan_ok=True
    )


def test_extremes_pass_without_warnings():
    tiny, huge = np.finfo(float).tiny, np.finfo(float).max
    kernel = Polynomial(2)
    values = convert([[tiny, 1.0]], Gaussian(), kernel, length_scale=1e200, squared_norms_X=1.0)
    assert values.tolist() == [[np.inf, 1.0]]
    values = convert([[tiny, huge]], kernel, Gaussian(), length_scale=1e-200, squared_norms_X=1.0)
    assert values.tolist() == [[0.0, 1.0]]
    assert convert([[huge]], kernel, ExponentialDotProduct()) == np.inf


@pytest.mark.parametrize("kernel", [Polynomial(2), ExponentialDotProduct()], ids=repr)
def test_empty_matrices(kernel):
    values = np.empty((0, 3))
    actual = convert(values, kernel, Gaussian(), squared_norms_X=[], squared_norms_Y=[1, 2, 3])
    assert actual.shape == (0, 3)


@pytest.mark.parametrize(
    ("values", "source", "target", "given", "error", "message"),
    [
        ([[1.0]], Gaussian(), Polynomial(), {}, ValueError, "squared_norms_X must be given"),
        ([[1.0]], Polynomial(), Gaussian(), {}, ValueError, r"1\.0 for points on the unit sphere"),
        (
            [[1.0, 2.0]],
            Polynomial(),
            Gaussian(),
            {"squared_norms_X": [1.0]},
            ValueError,
            r"squared_norms_Y must be given, since values of shape \(1, 2\)",
        ),
        (
            [[1.0, 2.0]],
            Polynomial(),
            Gaussian(),
            {"squared_norms_X": [1.0, 2.0]},
            ValueError,
            r"squared_norms_X must be a number or have shape \(1,\), got \(2,\)",
        ),
        (
            [[1.0]],
            Polynomial(),
            Gaussian(),
            {"squared_norms_X": 1.0, "squared_norms_Y": [[1.0]]},
            ValueError,
            r"squared_norms_Y must be a number or have shape \(1,\), got \(1, 1\)",
        ),
        (
            [[1.0]],
            Gaussian(),
            Polynomial(),
            {"squared_norms_X": [-2.0]},
            ValueError,
            "squared_norms_X must not be negative, got -2",
        ),
        (
            [[1.0]],
            Gaussian(),
            Polynomial(),
            {"squared_norms_X": 1.0, "length_scale": 0},
            ValueError,
            "length_scale must be a positive",
        ),
        (
            [[1.0]],
            Polynomial(),
            ExponentialDotProduct(),
            {"length_scale": 2.0},
            ValueError,
            "length_scale must be left out, got 2.0: it belongs to the Gaussian",
        ),
        ([[1.0]], Gaussian(), Gaussian(), {}, ValueError, r"values \*\* \(s / t\) \*\* 2"),
        ([1.0], Polynomial(), Polynomial(3), {}, ValueError, r"two dimensions.*got shape \(1,\)"),
        ([[1j]], Polynomial(), Polynomial(3), {}, TypeError, "values must be real.*real part"),
        ([[1.0]], Matern(), Polynomial(), {}, TypeError, r"source must be Gaussian\(\), Poly"),
        ([[1.0]], Maclaurin([1, 2]), Gaussian(), {}, TypeError, "source must be.*got Maclaurin"),
        ([[1.0]], "gaussian", Polynomial(), {}, TypeError, "source must be.*got 'gaussian'"),
        ([[1.0]], Polynomial(), ArcCosine(1), {}, TypeError, "target must be Gaussian"),
        ([[1.0]], Gaussian(), Matern(), {}, TypeError, "target must be Gaussian"),
    ],
)
def test_what_cannot_be_converted(values, source, target, given, error, message):
    with pytest.raises(error, match=message):
        convert(values, source, target, **given)


def test_lengths_that_are_forgotten():
    with pytest.raises(TypeError, match=r"got Gaussian\(\), for which k\(x, x\) is 1"):
        squared_norms([1.0], Gaussian())
    with pytest.raises(TypeError, match=r"kernel must be Polynomial.*got Matern"):
        squared_norms([1.0], Matern())


# Sivertsen (2014), Figures 4.8 and D.1: d = 16, p = 2, sigma = 2, points uniform on [0, 1]^16.
# Relative errors, averaged over pairs of 60 points, of 30 seeds each. Their mean is within 6 of its
# standard errors with probability 1 - 1e-6 or more, and it is that far that bounds have to hold.

SIGMA = 2.0
SQUARE = Polynomial(2)
N_COMPONENTS = 1024


def relative_errors(estimates_of_seed, exact):
    off_diagonal = ~np.eye(len(exact), dtype=bool)
    errors = [
        np.abs(estimates_of_seed(seed) / exact - 1)[off_diagonal].mean() for seed in range(30)
    ]
    spread = 6 * np.std(errors, ddof=1) / np.sqrt(len(errors))
    return np.mean(errors) - spread, np.mean(errors) + spread


def test_sketches_of_the_polynomial_kernel_hold_lengths():
    X = points(60, 16)

    def converted(seed):
        # Collision-free hashing would be exact, with 16**2 columns of the tensor product.
        sketch = TensorSketch(
            2, n_components=N_COMPONENTS, hashing="independent", random_state=seed
        )
        Z = sketch.fit_transform(X)
        lengths = squared_norms((Z * Z).sum(axis=1), SQUARE)
        given = {"length_scale": SIGMA, "squared_norms_X": lengths}
        return convert(Z @ Z.T, SQUARE, Gaussian(), **given)

    _, high = relative_errors(converted, Gaussian()(X, length_scale=SIGMA))
    assert high < 0.05  # measured 0.017


def test_features_of_the_gaussian_kernel_need_lengths():
    X = points(60, 16)
    exact = SQUARE(X)
    mean = norms(X).mean()

    def converted(seed, lengths):
        fastfood = Fastfood(n_components=N_COMPONENTS, length_scale=SIGMA, random_state=seed)
        Z = fastfood.fit_transform(X)
        given = {"length_scale": SIGMA, "squared_norms_X": lengths}
        return convert(Z @ Z.T, Gaussian(), SQUARE, **given)

    _, high = relative_errors(lambda seed: converted(seed, norms(X)), exact)
    assert high < 0.05  # measured 0.031
    # Features say of all points that their length is 1; the mean length would not do, either. Not
    # for want of features: the exact Gaussian kernel is no better.
    for lengths, least in ((1.0, 0.9), (mean, 0.3)):
        low, _ = relative_errors(lambda seed, lengths=lengths: converted(seed, lengths), exact)
        given = {"length_scale": SIGMA, "squared_norms_X": lengths}
        limit = convert(Gaussian()(X, length_scale=SIGMA), Gaussian(), SQUARE, **given)
        floor, _ = relative_errors(lambda seed, limit=limit: limit, exact)
        assert floor > least
        assert low > 0.9 * floor
