"""Random Maclaurin features against the kernel: means, exact variances, degrees, errors.

Scores are means over independent seeds, less what they should be, in units of their standard error;
by Bonferroni a correct library passes each test with probability 1 - 1e-6. The seeds are fixed.
"""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from kernelmill import RandomMaclaurin
from kernelmill.kernels import ExponentialDotProduct, Maclaurin, Polynomial
from kernelmill.maps.random_maclaurin import degree_terms, spread_degrees
from kernelmill.maps.scales import resolve_radius
from kernelmill.random import Stream

FALSE_ALARM = 1e-6
N_SEEDS = 400
RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 5)) / np.sqrt(5)
PAIR = np.array([[0.9, -0.3, 0.4, 0.1], [0.7, 0.2, 0.5, -0.6]])


def half_power(n):
    return 0.5**n


KERNELS = [
    Polynomial(2),
    Polynomial(3, gamma=0.7, coef0=1.0),
    ExponentialDotProduct(),
    Maclaurin([0.5, 0.0, 1.0, 0.3]),
    Maclaurin([0.01, 1.0, 1.0]),
    Maclaurin(half_power),
]
LAWS = [
    {"degrees": "proportional"},
    {"degrees": "proportional", "radius": 1.2},
    {"degrees": "geometric"},
    {"degrees": "proportional", "h01": True},
    {"degrees": "geometric", "h01": True},
]


def moments(kernel, count):
    """E and E of squares of products of projections, for each degree, of the pair of points."""
    x, y = PAIR
    n = np.arange(count)
    inner = x @ y
    second = (x @ x) * (y @ y) + 2 * inner**2 - 2 * np.sum(x**2 * y**2)
    return inner**n, second**n


def exact_variance(fitted):
    """Over signs and the uniform variable of systematic sampling, on a fine grid of the latter."""
    sketch = fitted.sketch_
    shares, terms, D = sketch.shares, sketch.terms, sketch.length
    means, squares = moments(fitted.kernel_, terms.size)
    scale = fitted.radius_ ** (2 * np.arange(terms.size))
    weight = np.divide(terms, shares, where=shares > 0, out=np.zeros_like(terms))
    weight *= shares.sum() / D / scale
    # Numbers of features of each degree as functions of U: differences of rounded-up tails.
    uniform = (np.arange(20_000) + 0.5) / 20_000
    tails = np.append(np.cumsum(shares[::-1])[::-1], 0) / shares.sum() * D
    counts = -np.diff(np.ceil(tails[:, None] - uniform), axis=0)
    conditional_mean = (weight * means) @ counts
    conditional_variance = (weight**2 * (squares - means**2)) @ counts
    return conditional_variance.mean() + conditional_mean.var()


# Every other pair: each kernel with half of the laws and each law with half of the kernels.
@pytest.mark.parametrize(("kernel", "law"), list(itertools.product(KERNELS, LAWS))[::2], ids=str)
def test_unbiased_and_of_the_variance_derived(kernel, law):
    """Means and variances over 400 seeds; the variance's error is estimated from the squares."""
    made = RandomMaclaurin(kernel, n_components=12, **law)
    estimates = np.empty(N_SEEDS)
    for seed in range(N_SEEDS):
        first, second = made.set_params(random_state=seed).fit_transform(PAIR)
        estimates[seed] = first @ second
    exact = float(kernel(PAIR[:1], PAIR[1:])[0, 0])
    assert made.exact_kernel(PAIR)[0, 1] == exact
    variance = exact_variance(made)
    limit = stats.norm.isf(FALSE_ALARM / 4)
    assert abs(estimates.mean() - exact) < limit * math.sqrt(variance / N_SEEDS)
    squares = (estimates - exact) ** 2
    # A rare high degree of a geometric law makes squares heavy-tailed, and their error unknown.
    if law["degrees"] == "proportional" or kernel.degree is not None:
        error = squares.std() / math.sqrt(N_SEEDS)
        assert abs(squares.mean() - variance) < limit * error
        assert abs(squares.mean() - 2 * variance) > limit * error or kernel.degree != 2


def reference(fitted, rows):
    """The features by their definition, one at a time."""
    sketch, out = fitted.sketch_, np.zeros((len(rows), fitted.n_components))
    column = 0
    if fitted._n_constant:
        out[:, 0] = math.sqrt(fitted.kernel_.coefficients(1)[0])
        column = 1
    if fitted._n_exact > column:
        out[:, column : fitted._n_exact] = math.sqrt(fitted.kernel_.coefficients(2)[1]) * rows
    for j, degree in enumerate(sketch.degrees):
        feature = np.full(len(rows), sketch.weights[j] / fitted.radius_**degree)
        for level in range(degree):
            signs = sketch.stream.substream("factor", level).signs((j + 1, rows.shape[1]))[j]
            feature *= rows @ signs
        out[:, fitted._n_exact + j] = feature
    return out


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_features_are_what_they_are_said_to_be(isa, kernel):
    for law in LAWS:
        for dtype in [np.float64, np.float32]:
            made = RandomMaclaurin(kernel, n_components=41, random_state=1, **law)
            Z = made.fit_transform(X.astype(dtype))
            expected = reference(made, X.astype(dtype).astype(np.float64))
            assert Z.dtype == dtype
            # Each of up to some 30 factors has an error of a few units times the sum of |x|.
            bound = 300 * np.finfo(dtype).eps * max(1, np.abs(expected).max())
            np.testing.assert_allclose(Z, expected, rtol=0, atol=bound)
            sparse = made.transform(sp.csr_array(X.astype(dtype)))
            np.testing.assert_allclose(sparse, Z, rtol=0, atol=bound)


def test_drawn_again_in_parts_is_the_same(monkeypatch, same_bits):
    options = {"n_components": 400, "random_state": 3}
    stored = RandomMaclaurin(Polynomial(3, coef0=1.0), **options).fit(X)
    Z = stored.transform(X)
    with monkeypatch.context() as patch:
        patch.setattr("kernelmill.maps.random_maclaurin._OUTPUT_BYTES", 1)
        same_bits(stored.transform(np.tile(X, (10, 1))), np.tile(Z, (10, 1)))
    monkeypatch.setattr("kernelmill.maps.random_maclaurin._BLOCK_ELEMENTS", 100)
    for store in (False, True):
        parts = RandomMaclaurin(Polynomial(3, coef0=1.0), store_matrix=store, **options).fit(X)
        assert len(list(parts.sketch_._parts())) > 6
        same_bits(parts.transform(X), Z)


class TestDegrees:
    def test_each_has_its_share_up_to_rounding(self):
        shares = np.array([0.3, 0.0, 0.5, 0.15, 0.05])
        for seed in range(50):
            degrees = spread_degrees(Stream.from_seed(seed), shares, 37)
            counts = np.bincount(degrees, minlength=5)
            assert (np.abs(counts - 37 * shares) < 1 + 1e-9).all()
            assert (np.diff(degrees) <= 0).all()

    def test_rare_degrees_come_as_often_as_they_should(self):
        """A binomial count of seeds within its quantiles, at 1e-6 two-sided."""
        shares = 2.0 ** -np.arange(60.0)
        found = sum(
            int(spread_degrees(Stream.from_seed(seed), shares, 4)[0] >= 8) for seed in range(3000)
        )
        probability = 4 * 2.0**-8
        low, high = stats.binom.interval(1 - FALSE_ALARM, 3000, probability)
        assert low <= found <= high
        assert not low <= 3000 * 2.0**-8 <= high

    def test_far_tails_keep_their_digits(self):
        """A uniform variable of 1e-12 reaches the degree whose tail is 1e-12 / count of all."""

        class Given:
            @staticmethod
            def uniforms(n):
                return np.array([1e-12])

        shares = 2.0 ** -np.arange(1.0, 80.0)
        degree = spread_degrees(Given, shares, 1000)[0]
        assert 2.0 ** -(degree + 1) <= 1e-15 <= 2.0**-degree

    def test_no_homogeneous_kernel_wastes_columns(self):
        for law in ("proportional", "geometric"):
            made = RandomMaclaurin(Polynomial(4), degrees=law, n_components=9).fit(X)
            assert made.degrees_.tolist() == [4] * 9

    def test_geometric(self):
        made = RandomMaclaurin([1.0, 1.0, 0.0, 5.0], degrees="geometric", n_components=901)
        counts = np.bincount(made.fit(X).degrees_)
        # One column is the constant; then 2^-1 to 2^-3, that is 4 : 1.
        assert counts.tolist() == [1, 720, 0, 180]
        assert made.radius_ == 1

    def test_proportional(self):
        made = RandomMaclaurin([1.0, 1.0, 0.0, 0.5], radius=2.0, n_components=1001).fit(X)
        _, ones, _, threes = np.bincount(made.degrees_)
        assert ones == pytest.approx(1000 * 4 / (4 + 32), abs=1)
        assert threes == pytest.approx(1000 * 32 / (4 + 32), abs=1)

    def test_a_small_constant_gets_no_column_of_its_own(self):
        """0.001 of 1 + 0.001: expected in 0.012 of 12 columns."""
        made = RandomMaclaurin([0.001, 1.0], radius=1.0, n_components=12)
        found = [0 in made.set_params(random_state=seed).fit(X).degrees_ for seed in range(1200)]
        low, high = stats.binom.interval(1 - FALSE_ALARM, 1200, 12 * 0.001 / 1.001)
        assert low <= sum(found) <= high

    def test_the_constant_in_one_column_is_better(self):
        """Against columns for degree 0 in proportion, the variance of the paper's layout."""
        made = RandomMaclaurin(Polynomial(2, coef0=1.0), n_components=40, radius=1.0).fit(PAIR)
        one = exact_variance(made)
        terms, shares = degree_terms(made.kernel_, "proportional", 1.0)
        made.sketch_.terms, made.sketch_.shares, made.sketch_.length = terms, shares, 40
        assert one < 0.9 * exact_variance(made)


class TestExactTerms:
    def test_columns(self):
        kernel = Polynomial(3, coef0=2.0)
        made = RandomMaclaurin(kernel, h01=True, n_components=20, random_state=0)
        for rows in (X, sp.csr_array(X), X.astype(np.float32)):
            Z = made.fit_transform(rows)
            np.testing.assert_allclose(Z[:, 0], math.sqrt(8), rtol=1e-6)
            np.testing.assert_allclose(Z[:, 1:6], math.sqrt(12) * X, rtol=1e-6)
        assert made.degrees_[:6].tolist() == [0, 1, 1, 1, 1, 1]
        assert (made.degrees_[6:] >= 2).all()

    def test_terms_that_are_not_there_take_no_columns(self):
        made = RandomMaclaurin([0.0, 1.0, 1.0], h01=True, n_components=6).fit(X)
        assert made.degrees_.tolist() == [1] * 5 + [2]
        made = RandomMaclaurin([1.0, 0.0, 1.0], h01=True, n_components=2).fit(X)
        assert made.degrees_.tolist() == [0, 2]
        made = RandomMaclaurin(Polynomial(2), h01=True, n_components=2).fit(X)
        assert made.degrees_.tolist() == [2, 2]

    @pytest.mark.parametrize("h01", [True, False])
    def test_nothing_left_to_draw(self, h01):
        """Columns of zeros, so that n_components is exact and so is the kernel."""
        made = RandomMaclaurin([3.0], h01=h01, n_components=4)
        Z = made.fit_transform(X)
        np.testing.assert_allclose(Z, np.tile([math.sqrt(3), 0, 0, 0], (30, 1)))
        assert made.degrees_.tolist() == [0, -1, -1, -1]
        if h01:
            made = RandomMaclaurin([3.0, 2.0], h01=True, n_components=8)
            Z = made.fit_transform(X)
            np.testing.assert_allclose(Z @ Z.T, made.exact_kernel(X), atol=1e-14)
            assert made.degrees_.tolist() == [0, 1, 1, 1, 1, 1, -1, -1]

    def test_room(self):
        for kernel, least in [
            (Polynomial(2, coef0=1.0), 7),
            ([0.0, 1.0, 1.0], 6),
            ([1.0, 0.0, 1.0], 2),
            ([1.0, 1.0], 6),
        ]:
            made = RandomMaclaurin(kernel, h01=True, n_components=least).fit(X)
            assert made.transform(X).shape == (30, least)
            with pytest.raises(ValueError, match=f"n_components must be at least {least} with h01"):
                made.set_params(n_components=least - 1).fit(X)


class TestRadius:
    def test_is_the_root_mean_square_norm(self):
        expected = np.sqrt((X**2).sum(axis=1).mean())
        for rows in (X, sp.csr_array(X), np.asfortranarray(X), X.astype(np.float32)):
            radius = RandomMaclaurin().fit(rows).radius_
            assert radius == pytest.approx(expected, rel=2.0**-10)
            assert radius == RandomMaclaurin().fit(X).radius_
        assert RandomMaclaurin(radius=3.3).fit(X).radius_ == 3.3
        assert RandomMaclaurin().fit(np.zeros((2, 3))).radius_ == 1

    def test_blocks_make_no_difference(self, monkeypatch):
        expected = resolve_radius("scale", X)
        monkeypatch.setattr("kernelmill.maps.scales._BLOCK_ELEMENTS", 7)
        assert resolve_radius("scale", X) == expected
        assert resolve_radius("scale", sp.csr_array(X)) == expected

    def test_extreme_data(self):
        for size in (1e-60, 1e60):
            Z = RandomMaclaurin(Polynomial(2), n_components=3000, random_state=0).fit_transform(
                size * X
            )
            error = Z @ Z.T / size**4 - (X @ X.T) ** 2
            assert np.sqrt((error**2).mean()) < 0.1
        with pytest.raises(ValueError, match="too large for float64"):
            RandomMaclaurin(Polynomial(3)).fit(1e120 * X)
        with pytest.raises(ValueError, match="square that is finite in float64"):
            RandomMaclaurin().fit(1e-300 * X)
        with pytest.raises(ValueError, match="vanish at inner products"):
            RandomMaclaurin(Polynomial(3)).fit(1e-120 * X)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"kernel": "polynomal"}, ValueError, "kernel='polynomial'"),
        ({"kernel": [1.0, -1.0]}, ValueError, "not negative, got -1.0"),
        ({"kernel": 3}, TypeError, "kernel must be one of"),
        ({"degrees": "uniform"}, ValueError, "degrees must be one of 'proportional', 'geometric'"),
        ({"h01": 1}, TypeError, "h01 must be True or False, got 1"),
        ({"store_matrix": None}, TypeError, "store_matrix must be True or False"),
        ({"radius": 0}, ValueError, "radius must be a positive"),
        ({"radius": "median"}, ValueError, "radius must be a positive number or 'scale'"),
        ({"radius": None}, TypeError, "radius must be a positive"),
        ({"n_components": 0}, ValueError, "n_components must be between 1 and"),
        ({"kernel": lambda n: 1.0, "radius": 2.0}, ValueError, "must converge"),
        ({"kernel": lambda n: -1.0}, ValueError, "got -1.0 for n = 0"),
        ({"kernel": lambda n: 0.0, "degrees": "geometric"}, ValueError, "vanish"),
    ],
)
def test_parameters_that_are_none(parameters, error, message):
    with pytest.raises(error, match=message):
        RandomMaclaurin(**parameters).fit(X)


def test_a_sparse_series_is_found():
    made = RandomMaclaurin(lambda n: float(n == 100), degrees="geometric", n_components=3).fit(X)
    assert made.degrees_.tolist() == [100] * 3


def test_errors_fall_with_columns():
    """As 1 / sqrt(D): 16 times as many columns, a quarter of the error, within a factor 1.5."""

    def error(n_components):
        made = RandomMaclaurin(Polynomial(2, coef0=1.0), n_components=n_components)
        runs = []
        for seed in range(20):
            Z = made.set_params(random_state=seed).fit_transform(X)
            runs.append(((Z @ Z.T - made.exact_kernel(X)) ** 2).mean())
        return math.sqrt(np.mean(runs))

    assert 4 / 1.5 < error(128) / error(2048) < 4 * 1.5
