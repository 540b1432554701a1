"""Kernels of inner products and angles: values, series, equality and errors."""

import copy
import math
import pickle

import mpmath
import numpy as np
import pytest
import scipy.sparse
from scipy import integrate, stats
from sklearn.metrics.pairwise import polynomial_kernel

from kernelmill.kernels import (
    ArcCosine,
    DotProductKernel,
    ExponentialDotProduct,
    Gaussian,
    Maclaurin,
    Polynomial,
    RotationInvariantKernel,
    SpherePower,
    Zonal,
    resolve_dot_product,
)
from kernelmill.random import Stream


def inverse_factorial(n):
    return 1 / math.factorial(n)


def cosine_squared(cosine):
    return cosine**2


DOT_PRODUCTS = [
    Polynomial(),
    Polynomial(5, gamma=0.3, coef0=2.0),
    ExponentialDotProduct(1.7),
    Maclaurin([1.0, 0.0, 0.5]),
    Maclaurin(inverse_factorial),
    Maclaurin(inverse_factorial, value=np.exp),
]
KERNELS = [
    *DOT_PRODUCTS,
    SpherePower([0.5, 1.0, 0.0, 2.0]),
    Zonal(cosine_squared, power=0.5),
    ArcCosine(0),
    ArcCosine(1),
    ArcCosine(2),
]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
every_dot_product = pytest.mark.parametrize("kernel", DOT_PRODUCTS, ids=repr)


def points(n, dim, seed=0):
    return np.random.default_rng(seed).normal(size=(n, dim))


@every_kernel
class TestAll:
    def test_are_values(self, kernel):
        for again in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
            assert again == kernel
            assert hash(again) == hash(kernel)
            np.testing.assert_array_equal(again(points(3, 2)), kernel(points(3, 2)))
        assert [other == kernel for other in KERNELS].count(True) == 1
        assert kernel != "polynomial"
        assert type(kernel).__name__ in repr(kernel)
        assert isinstance(kernel, RotationInvariantKernel)
        with pytest.raises(AttributeError):
            setattr(kernel, next(iter(vars(kernel))), 1)

    @pytest.mark.parametrize("dim", [1, 2, 7])
    def test_matrices_are_symmetric_and_positive(self, kernel, dim):
        X = points(40, dim)
        X[3] = 0
        K = kernel(X)
        assert K.dtype == np.float64
        np.testing.assert_allclose(K, K.T, rtol=1e-13)
        assert np.linalg.eigvalsh(K)[0] >= -1e-12 * np.trace(K)
        bound = 1e-13 * np.abs(K).max()
        np.testing.assert_allclose(kernel(X[:9], X[9:]), K[:9, 9:], rtol=1e-12, atol=bound)

    def test_rotations_change_nothing(self, kernel):
        X, Y = points(6, 4), points(5, 4, seed=1)
        Q = Stream.from_seed(0).orthogonal(4)
        np.testing.assert_allclose(kernel(X @ Q, Y @ Q), kernel(X, Y), rtol=1e-10, atol=1e-10)

    def test_sparse_points_and_other_dtypes(self, kernel):
        X, Y = points(20, 6).round(1), points(15, 6, seed=1).round(1)
        X[np.abs(X) < 0.8] = 0
        X[3] = 0
        make = scipy.sparse.csr_array
        for left, right in ((make(X), make(Y)), (X, make(Y)), (make(X), Y)):
            np.testing.assert_allclose(kernel(left, right), kernel(X, Y), rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(kernel(make(X)), kernel(X), rtol=1e-11, atol=1e-12)
        small = X.astype(np.float32)
        np.testing.assert_array_equal(kernel(small), kernel(small.astype(np.float64)))

    def test_invalid_points(self, kernel):
        with pytest.raises(ValueError, match="same number of columns, got 3 and 4"):
            kernel(np.zeros((2, 3)), np.zeros((2, 4)))
        with pytest.raises(ValueError, match="X must hold finite numbers, got NaN"):
            kernel([[np.nan]])


@every_dot_product
class TestDotProducts:
    def test_coefficients_are_those_of_the_values(self, kernel):
        """The sum of the series at complex t on a circle, against the closed form at real ones."""
        coefficients = kernel.coefficients(80)
        assert coefficients.shape == (80,)
        assert (coefficients >= 0).all()
        t = np.linspace(-2, 2, 21)
        series = np.polynomial.polynomial.polyval(t, coefficients)
        scale = np.polynomial.polynomial.polyval(2.0, coefficients)
        np.testing.assert_allclose(kernel.value(t), series, atol=1e-14 * scale)
        if kernel.degree is not None:
            assert coefficients[kernel.degree] > 0
            assert not coefficients[kernel.degree + 1 :].any()

    def test_scale_and_terms(self, kernel):
        expected = kernel.coefficients(30) * 3.7 ** np.arange(30)
        np.testing.assert_allclose(kernel.coefficients(30, scale=3.7), expected, rtol=1e-13)
        terms = kernel.terms(3.7)
        assert terms.sum() == pytest.approx(float(kernel.value(3.7)), rel=1e-14)
        assert kernel.coefficients(0).shape == (0,)

    def test_is_a_function_of_the_inner_product(self, kernel):
        X, Y = points(4, 3), points(5, 3, seed=1)
        np.testing.assert_allclose(kernel(X, Y), kernel.value(X @ Y.T), rtol=1e-13)
        assert resolve_dot_product(kernel) is kernel
        assert isinstance(kernel, DotProductKernel)

    def test_counts_and_scales_that_are_none(self, kernel):
        with pytest.raises(ValueError, match="count must be at least 0"):
            kernel.coefficients(-1)
        with pytest.raises(ValueError, match="scale must be a positive"):
            kernel.coefficients(3, scale=0)


def test_polynomial_against_scikit_learn():
    X, Y = points(10, 4), points(9, 4, seed=1)
    expected = polynomial_kernel(X, Y, degree=3, gamma=0.7, coef0=1.5)
    np.testing.assert_allclose(Polynomial(3, gamma=0.7, coef0=1.5)(X, Y), expected, rtol=1e-12)


@pytest.mark.parametrize("degree", [1, 2, 30, 999, 1000, 1001, 5000])
@pytest.mark.parametrize(("gamma", "coef0"), [(1.0, 1.0), (1e-3, 0.7), (1.3, 1e-4), (2.0, 0.0)])
def test_polynomial_coefficients_against_mpmath(degree, gamma, coef0):
    """Large factors cancel; for degrees above 1000 through logarithms, of size up to 7000."""
    scale = 1 / (gamma + coef0)
    kernel = Polynomial(degree, gamma=gamma, coef0=coef0 * scale)
    found = kernel.coefficients(degree + 1, scale=scale)
    some = np.unique(np.linspace(0, degree, 40).astype(int))
    with mpmath.workdps(40):
        linear = mpmath.mpf(gamma) * mpmath.mpf(scale)
        constant = mpmath.mpf(coef0 * scale)
        exact = [
            float(mpmath.binomial(degree, int(n)) * linear ** int(n) * constant ** int(degree - n))
            for n in some
        ]
    tolerance = 1e-14 if degree <= 1000 else 1e-10
    np.testing.assert_allclose(found[some], exact, rtol=tolerance, atol=1e-300)
    assert Polynomial(2, coef0=1.0).coefficients(4).tolist() == [1, 2, 1, 0]


def test_exponential_at_large_scales():
    """exp(600): neither 600**n nor n! fits into a float."""
    assert ExponentialDotProduct().terms(600.0).sum() == pytest.approx(np.exp(600), rel=1e-12)
    with pytest.raises(ValueError, match="too large for float64 at degree"):
        ExponentialDotProduct(1e-4).coefficients(300)


class TestMaclaurin:
    def test_sums_what_it_is_not_told(self):
        t = np.linspace(-30, 60, 31)
        found = Maclaurin(inverse_factorial).value(t)
        # The error is relative to the largest term sum, exp(|t|).
        np.testing.assert_allclose(found / np.exp(np.abs(t)), np.exp(t - np.abs(t)), atol=1e-14)
        geometric = Maclaurin(lambda n: 0.5**n)
        np.testing.assert_allclose(geometric.value([1.9, -1.9]), 1 / (1 - np.array([0.95, -0.95])))
        assert geometric.value(0.0) == 1

    def test_series_that_do_not_converge(self):
        with pytest.raises(ValueError, match=r"must converge .* at t = 2 it does not"):
            Maclaurin(lambda n: 1.0).value(2.0)
        with pytest.raises(ValueError, match="must converge"):
            Maclaurin(lambda n: 1 / (n + 1)).value(1.0)
        with pytest.raises(ValueError, match="must converge"):
            Maclaurin(lambda n: 0.0).value(1.0)

    def test_coefficients_too_small_for_floats_are_noticed(self):
        """1 / n! is 0 as a float from n = 178 on, long before terms at t = 300 start to fall."""
        custom = Maclaurin(lambda n: math.exp(-math.lgamma(n + 1)))
        assert custom.value(60.0) == pytest.approx(np.exp(60.0), rel=1e-11)
        with pytest.raises(ValueError, match="must converge"):
            custom.value(300.0)

    @pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf, "one", None, 1j])
    def test_functions_are_checked(self, wrong):
        custom = Maclaurin(lambda n: wrong if n == 3 else 1.0)
        assert custom.coefficients(3).tolist() == [1, 1, 1]
        with pytest.raises(ValueError, match=r"not negative, got .* for n = 3"):
            custom.coefficients(4)

    @pytest.mark.parametrize(
        ("wrong", "error", "message"),
        [
            ([1.0, -2.0], ValueError, "not negative, got -2.0 at degree 1"),
            ([np.nan], ValueError, "finite and not negative, got nan at degree 0"),
            ([], ValueError, "at least one number"),
            ([[1.0]], ValueError, r"got shape \(1, 1\)"),
            ([0.0, 0.0], ValueError, "must not all be 0"),
            ("abc", TypeError, "coefficients must hold real numbers"),
            ([1j], TypeError, "coefficients must be real"),
        ],
    )
    def test_arrays_are_checked(self, wrong, error, message):
        with pytest.raises(error, match=message):
            Maclaurin(wrong)
        with pytest.raises(error, match=message):
            SpherePower(wrong)

    def test_arrays_are_copied_and_trimmed(self):
        array = np.array([1.0, 2.0, 0.0])
        custom = Maclaurin(array)
        array[:] = 7
        assert custom == Maclaurin([1, 2])
        assert custom.degree == 1
        assert repr(custom) == "Maclaurin([1.0, 2.0], value=None)"
        assert repr(Maclaurin(np.ones(20))) == "Maclaurin(<20 coefficients>, value=None)"

    def test_values_are_checked(self):
        with pytest.raises(TypeError, match="value must be a function of inner products"):
            Maclaurin(lambda n: 0.5**n, value=2.0)
        with pytest.raises(ValueError, match="one number for each inner product"):
            Maclaurin(lambda n: 0.5**n, value=lambda t: 1.0)([[1.0]])


class TestNames:
    def test_names(self):
        assert resolve_dot_product("poly") == resolve_dot_product("polynomial") == Polynomial()
        assert resolve_dot_product("exponential") == ExponentialDotProduct()
        assert resolve_dot_product("poly:degree=3,coef0=1") == Polynomial(3, coef0=1.0)
        assert resolve_dot_product("exponential:length_scale=2") == ExponentialDotProduct(2.0)
        assert resolve_dot_product((1.0, 2.0)) == Maclaurin([1.0, 2.0])
        assert resolve_dot_product(np.ones(2)) == Maclaurin([1.0, 1.0])
        assert resolve_dot_product(inverse_factorial) == Maclaurin(inverse_factorial)

    @pytest.mark.parametrize(
        ("wrong", "error", "message"),
        [
            ("polynomal", ValueError, "kernel='polynomial'"),
            ("rbf", ValueError, "shift-invariant kernel, for the maps random_fourier"),
            ("sigmoid", ValueError, r"one of 'exponential', .* got 'sigmoid'\."),
            (Polynomial, TypeError, r"write Polynomial\(\)"),
            (Gaussian(), TypeError, r"got Gaussian\(\)"),
            (ArcCosine(1), TypeError, r"got ArcCosine\(order=1\)"),
            (Gaussian, TypeError, "kernel must be one of"),
            (3, TypeError, r"got 3 \(int\)"),
            (None, TypeError, "got None"),
            ([-1.0], ValueError, "coefficients must be finite and not negative"),
        ],
    )
    def test_errors(self, wrong, error, message):
        with pytest.raises(error, match=message):
            resolve_dot_product(wrong)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Polynomial(0), "degree must be at least 1, got 0"),
        (lambda: Polynomial(2.5), "degree must be an integer"),
        (lambda: Polynomial(gamma=0), "gamma must be a positive"),
        (lambda: Polynomial(coef0=-1.0), "coef0 must be a finite number that is not negative"),
        (lambda: Polynomial(coef0="a"), "coef0 must be a finite number that is not negative"),
        (lambda: Polynomial(coef0=np.inf), "coef0 must be a finite number that is not negative"),
        (lambda: ExponentialDotProduct(-1), "length_scale must be a positive"),
        (lambda: ArcCosine(3), "order must be between 0 and 2, got 3"),
        (lambda: Zonal(3), "profile must be a function of cosines"),
        (lambda: Zonal(np.cos, power=-1), "power must be a positive"),
        (lambda: Zonal(np.cos, maclaurin=3), "maclaurin must be a function"),
        (lambda: SpherePower(inverse_factorial), "must be an array, since the sum is finite"),
        (lambda: Zonal(lambda t: 1.0)([[1.0]]), "one number for each cosine"),
    ],
)
def test_parameters_that_are_none(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


# ------------------------------------------------------------------- mean powers of projections


def sphere_power(p):
    return SpherePower([0.0] * p + [1.0])


@pytest.mark.parametrize("p", [0, 1, 2, 3, 6, 11])
@pytest.mark.parametrize("cosine", [-1.0, -0.3, 0.0, 0.8, 1.0])
class TestSpherePower:
    def test_on_the_circle_by_quadrature(self, p, cosine):
        angle = np.arccos(cosine)
        around = np.arange(64) * 2 * np.pi / 64  # exact for trigonometric polynomials
        expected = np.mean((np.cos(around) * np.cos(around - angle)) ** p)
        assert sphere_power(p).value(cosine, 1.0, 2) == pytest.approx(expected, abs=1e-15)

    def test_on_the_sphere_by_quadrature(self, p, cosine):
        sine = np.sqrt(1 - cosine**2)
        heights, weights = np.polynomial.legendre.leggauss(20)
        around = np.arange(64) * 2 * np.pi / 64
        across = np.sqrt(1 - heights**2)[:, None] * np.cos(around)
        other = cosine * heights[:, None] + sine * across
        expected = weights / 2 @ ((heights[:, None] * other) ** p).mean(axis=1)
        assert sphere_power(p).value(cosine, 1.0, 3) == pytest.approx(expected, abs=1e-14)

    @pytest.mark.parametrize("dim", [3, 5, 100, 100_000])
    def test_against_the_paper_corrected(self, p, cosine, dim):
        """Eqs. (29) to (32) of Le, Sarlós & Smola, with their slips put right, in 50 digits."""

        def beta_mean(a, b, d):
            """E[v_1^a (1 - v_1^2)^(b/2)] of a coordinate of a uniform direction, a even."""
            half = mpmath.mpf(1) / 2
            return mpmath.beta((a + 1) * half, (d + b - 1) * half) / mpmath.beta(
                half, (d - 1) * half
            )

        with mpmath.workdps(50):
            c = mpmath.mpf(cosine)
            sine = mpmath.sqrt(1 - c * c)
            total = sum(
                mpmath.binomial(p, i)
                * c ** (p - i)
                * sine**i
                * beta_mean(2 * p - i, i, dim)
                * beta_mean(i, 0, dim - 1)
                for i in range(0, p + 1, 2)
            )
            expected = float(total)
        found = float(sphere_power(p).value(cosine, 1.0, dim))
        assert found == pytest.approx(expected, rel=1e-13, abs=1e-300)


def test_sphere_power_on_a_line_and_off_the_sphere():
    for p in (1, 2, 30):
        K = sphere_power(p)([[2.0], [-0.5]])
        np.testing.assert_allclose(K, np.outer([2, -0.5], [2, -0.5]) ** p, rtol=1e-13)
    assert SpherePower([3.0, 1.0])([[0.0, 0.0]], [[1.0, 0.0]]) == 3


def test_sphere_power_against_random_directions():
    """z-scores of 10^5 directions; a false alarm has probability 1e-6 by Bonferroni."""
    directions = Stream.from_seed(3).sphere(100_000, 5)
    X = points(4, 5)
    kernel = SpherePower([1.0, 2.0, 0.0, 0.5])
    projected = directions @ X.T
    for i, j in [(0, 1), (2, 3), (1, 1)]:
        product = projected[:, i] * projected[:, j]
        draws = 1 + 2 * product + 0.5 * product**3
        z = (draws.mean() - kernel(X)[i, j]) / (draws.std() / np.sqrt(draws.size))
        assert abs(z) < stats.norm.isf(1e-6 / 6)


# ------------------------------------------------------------------------------- arc-cosines


@pytest.mark.parametrize("order", [0, 1, 2])
def test_arc_cosine_is_twice_the_mean_product_of_ramps(order):
    """By quadrature over the plane of x and y: w = r (cos a, sin a) with r Rayleigh."""
    x, y = np.array([1.5, 0.0]), 0.7 * np.array([np.cos(2.0), np.sin(2.0)])

    def ramps(angle):
        w = np.array([np.cos(angle), np.sin(angle)])
        return float((w @ x > 0) * (w @ y > 0) * (w @ x) ** order * (w @ y) ** order)

    ends = [2.0 - np.pi / 2, np.pi / 2]  # where both are positive
    mean = integrate.quad(ramps, *ends)[0] / (2 * np.pi)
    moment = {0: 1, 1: 2, 2: 8}[order]  # E r^(2 order)
    assert ArcCosine(order)([x], [y])[0, 0] == pytest.approx(2 * mean * moment, rel=1e-12)
    assert ArcCosine(order)([x])[0, 0] == pytest.approx((1.5**2) ** order * [1, 1, 3][order])


@pytest.mark.parametrize("order", [0, 1, 2])
def test_arc_cosine_series(order):
    kernel = ArcCosine(order)
    t = np.linspace(-0.8, 0.8, 17)
    series = np.polynomial.polynomial.polyval(t, kernel.maclaurin(200))
    np.testing.assert_allclose(series, kernel.value(t), rtol=0, atol=1e-14)
    assert (kernel.maclaurin(200) >= 0).all()
    for count in range(5):
        assert kernel.maclaurin(count).tolist() == kernel.maclaurin(200)[:count].tolist()


def test_zero_vectors_have_no_angle():
    X = np.array([[0.0, 0.0], [3.0, 4.0]])
    for kernel in (ArcCosine(0), ArcCosine(1), Zonal(np.exp)):
        assert kernel(X)[0].tolist() == [0, 0]
    assert ArcCosine(1)(X)[1, 1] == pytest.approx(25)


def test_norms_do_not_overflow():
    X = 1e200 * np.array([[3.0, 4.0], [0.0, 1.0]])
    np.testing.assert_allclose(ArcCosine(0)(X), ArcCosine(0)(X / 1e200), rtol=1e-15)
    tiny = ArcCosine(0)(X * 1e-200 * 1e-200)
    np.testing.assert_allclose(tiny, ArcCosine(0)(X / 1e200), rtol=1e-15)
