"""Estimates of sketches: bias, theoretical variance, and the lemmas of Pham & Pagh (2013).

Means are compared at 4.9 standard errors, which a normal variable passes with probability 1e-6;
seeds are fixed. Variances are compared at as many standard errors of a sample variance, which are
estimated from the fourth moments of the sample.
"""

import itertools
import math

import numpy as np
import pytest

from kernelmill import CountSketch, TensorSketch
from kernelmill.maps.hashing import lattice_multipliers
from kernelmill.maps.tensor_sketch import PolynomialSketch
from kernelmill.random import Stream

SEEDS = 4000
STANDARD_ERRORS = 4.9


def estimates(x, y, degree, length, hashing, n_seeds=SEEDS, constant=0.0):
    """Inner products of the sketches of x and y under so many seeds."""
    rows = np.vstack([x, y])
    out = np.empty((2, length))
    result = np.empty(n_seeds)
    for seed in range(n_seeds):
        sketch = PolynomialSketch(
            degree=degree,
            dim=rows.shape[1],
            length=length,
            stream=Stream.from_seed(seed),
            hashing=hashing,
            constant=constant,
        )
        sketch.write(rows, out, n_threads=1)
        result[seed] = out[0] @ out[1]
    return result


def difference_laws(dim, length, degree, hashing):
    """The distribution of the difference of two buckets, modulo length, for each factor."""
    if hashing == "independent":
        return [np.full(length, 1 / length)] * degree
    laws = []
    for multiplier in lattice_multipliers(dim, length, degree):
        law = np.zeros(length)
        if dim > length:  # every bucket c times among c * length places
            copies = -(-dim // length)
            law[:] = copies / (copies * length - 1)
            law[0] = (copies - 1) / (copies * length - 1)
        else:
            for u, v in itertools.permutations(range(dim), 2):
                law[multiplier * (u - v) % length] += 1 / (dim * (dim - 1))
        laws.append(law)
    return laws


def exact_variance(x, y, degree, length, hashing):
    r"""The variance of an estimate, by cases.

    The square of the estimate is a sum over four indices i, j, k, l of the tensor product, i and j
    in one bucket, k and l in one. Signs leave those of which, at each place, (same) i = j and
    k = l, (straight) i = k and j = l are different, or (crossed) i = l and j = k are. The same ones
    contribute a = <x, y>^2, the others b = sum x_i^2 y_j^2 and g = sum x_i y_i x_j y_j over i != j.
    Differences of buckets have to vanish in both pairs: straight places add to both, crossed ones
    with opposite signs.
    """
    a, s = (x @ y) ** 2, (x**2) @ (y**2)
    b, g = (x @ x) * (y @ y) - s, a - s
    spectra = [np.fft.fft(law) for law in difference_laws(len(x), length, degree, hashing)]
    total = 0.0
    for kinds in itertools.product("=bg", repeat=degree):
        straight = [spectra[k] for k in range(degree) if kinds[k] == "b"]
        crossed = [spectra[k] for k in range(degree) if kinds[k] == "g"]
        if not straight and not crossed:
            continue
        laws = [np.fft.ifft(np.prod(part, axis=0)).real for part in (straight, crossed) if part]
        # Sums u and v of the two kinds have u + v = u - v = 0: u = v is 0, or half the length.
        roots = [0] if length % 2 or len(laws) == 1 else [0, length // 2]
        chance = sum(math.prod(law[w] for law in laws) for w in roots)
        total += (
            chance
            * a ** (degree - len(straight) - len(crossed))
            * (b ** len(straight) * g ** len(crossed))
        )
    return total


def close_points(dim):
    rng = np.random.default_rng(dim)
    x = rng.uniform(0.2, 1.0, dim)
    return x, x + rng.normal(0, 0.2, dim)


CASES = [
    (1, 6, 4, "collision_free"),  # more columns than buckets
    (1, 6, 8, "independent"),
    (2, 6, 8, "collision_free"),
    (2, 6, 9, "independent"),
    (2, 9, 4, "collision_free"),
    (3, 5, 16, "collision_free"),
    (3, 5, 7, "independent"),
    (4, 4, 30, "collision_free"),
]


class TestMoments:
    @pytest.mark.parametrize(("degree", "dim", "length", "hashing"), CASES)
    def test_mean_and_variance(self, degree, dim, length, hashing):
        x, y = close_points(dim)
        sample = estimates(x, y, degree, length, hashing)
        variance = exact_variance(x, y, degree, length, hashing)
        mean_error = np.sqrt(variance / SEEDS)
        assert abs(sample.mean() - (x @ y) ** degree) < STANDARD_ERRORS * mean_error
        squares = (sample - (x @ y) ** degree) ** 2
        assert abs(squares.mean() - variance) < STANDARD_ERRORS * squares.std() / np.sqrt(SEEDS)

    def test_formula_by_all_hash_functions(self):
        """The exact mean over all buckets and signs of two columns, for a product of two."""
        x, y, length = np.array([0.7, -1.3]), np.array([0.4, 2.0]), 3
        values = []
        buckets = list(itertools.product(range(length), repeat=2))
        signs = list(itertools.product([-1, 1], repeat=2))
        for h1, h2, s1, s2 in itertools.product(buckets, buckets, signs, signs):
            sketches = np.zeros((2, length))
            for row, point in enumerate((x, y)):
                for i, j in itertools.product(range(2), repeat=2):
                    entry = s1[i] * s2[j] * point[i] * point[j]
                    sketches[row, (h1[i] + h2[j]) % length] += entry
            values.append(sketches[0] @ sketches[1])
        assert np.mean(values) == pytest.approx((x @ y) ** 2, rel=1e-12)
        variance = exact_variance(x, y, 2, length, "independent")
        assert np.var(values) == pytest.approx(variance, rel=1e-12)

    @pytest.mark.parametrize("hashing", ["collision_free", "independent"])
    def test_inhomogeneous(self, hashing):
        x, y = close_points(5)
        sample = estimates(x, y, 2, 16, hashing, constant=0.8)
        longer = (np.append(x, 0.8), np.append(y, 0.8))
        variance = exact_variance(*longer, 2, 16, hashing)
        error = np.sqrt(variance / SEEDS)
        assert abs(sample.mean() - (x @ y + 0.64) ** 2) < STANDARD_ERRORS * error


class TestExact:
    @pytest.mark.parametrize("dim", [1, 2, 7, 30])
    def test_count_sketch_with_a_column_for_each(self, dim):
        X = np.random.default_rng(0).standard_normal((6, dim))
        features = CountSketch(n_components=max(dim, 5), random_state=0)
        Z = features.fit_transform(X)
        np.testing.assert_allclose(Z @ Z.T, X @ X.T, rtol=1e-13, atol=1e-13)

    @pytest.mark.parametrize(
        ("degree", "dim", "coef0", "length"),
        [(2, 7, 0.0, 49), (2, 7, 0.0, 64), (2, 6, 1.5, 50), (3, 5, 0.0, 127), (3, 4, 0.5, 128)],
    )
    def test_tensor_sketch_with_a_column_for_each(self, degree, dim, coef0, length):
        X = np.random.default_rng(1).standard_normal((6, dim))
        features = TensorSketch(degree, coef0=coef0, n_components=length, random_state=0)
        Z = features.fit_transform(X)
        np.testing.assert_allclose(Z @ Z.T, features.exact_kernel(X), rtol=1e-12, atol=1e-12)


class TestLemmas:
    @pytest.mark.parametrize("dim", [2, 10])
    def test_2_and_3(self, dim):
        """The variance of a count sketch is that of lemma 2, and below the bound of lemma 3."""
        x, y = close_points(dim)
        length = 8
        terms = np.outer(x**2, y**2) + np.outer(x * y, x * y)
        lemma_2 = (terms.sum() - np.trace(terms)) / length
        assert exact_variance(x, y, 1, length, "independent") == pytest.approx(lemma_2, rel=1e-12)
        assert lemma_2 <= ((x @ y) ** 2 + (x @ x) * (y @ y)) / length

    def test_6(self):
        """Its bound does not hold for independent hashing; without collisions it does (p = 2)."""
        x, y = close_points(6)
        bound = ((x @ y) ** 4 + ((x @ x) * (y @ y)) ** 2) / 8
        assert exact_variance(x, y, 2, 8, "independent") > 1.5 * bound
        assert exact_variance(x, y, 2, 8, "collision_free") < bound
        sample = estimates(x, y, 2, 8, "independent")
        squares = (sample - (x @ y) ** 2) ** 2
        assert squares.mean() - STANDARD_ERRORS * squares.std() / np.sqrt(SEEDS) > bound

    @pytest.mark.parametrize("hashing", ["collision_free", "independent"])
    @pytest.mark.parametrize("degree", [2, 3])
    def test_7(self, degree, hashing):
        """Relative errors above epsilon are as rare as lemma 7 says.

        The bound is 2 / (D epsilon^2 cos^2p); twice that much would be seen with 1000 seeds.
        """
        x, y = close_points(20)
        cosine = x @ y / np.sqrt((x @ x) * (y @ y))
        length, epsilon = 256, 0.5
        sample = estimates(x, y, degree, length, hashing, n_seeds=1000)
        kernel = (x @ y) ** degree
        share = np.mean(np.abs(sample - kernel) >= epsilon * kernel)
        assert share <= 2 / (length * epsilon**2) / cosine ** (2 * degree)

    @pytest.mark.parametrize("hashing", ["collision_free", "independent"])
    def test_10(self, hashing):
        """Sketches of unit vectors without large entries have about length 1.

        Lemma 10: if |x|_inf^p <= epsilon / (18 sqrt(log(1/delta) log(D/delta))) and
        D >= 72 log(1/delta) / epsilon^2, the squared length is off by epsilon with probability at
        most 2 delta.
        """
        delta, epsilon, length, dim = 0.05, 0.5, 1024, 256
        x = np.random.default_rng(0).choice([-1.0, 1.0], dim) / np.sqrt(dim)
        room = 18 * np.sqrt(np.log(1 / delta) * np.log(length / delta))
        assert np.abs(x).max() ** 2 <= epsilon / room
        assert length >= 72 * np.log(1 / delta) / epsilon**2
        sample = estimates(x, x, 2, length, hashing, n_seeds=300)
        assert np.mean(np.abs(sample - 1) >= epsilon) <= 2 * delta


class TestAgainstDefinition:
    @pytest.mark.parametrize("hashing", ["collision_free", "independent"])
    @pytest.mark.parametrize("length", [1, 6, 8, 17, 30])
    def test_count_sketch_of_the_tensor_power(self, isa, length, hashing):
        """Features are sums of s_1(i) s_2(j) s_3(k) u_i u_j u_k over h_1(i) + h_2(j) + h_3(k)."""
        X = np.random.default_rng(2).standard_normal((4, 5))
        features = TensorSketch(
            3, gamma=0.7, coef0=0.4, n_components=length, hashing=hashing, random_state=3
        ).fit(X)
        U = np.hstack([np.sqrt(0.7) * X, np.full((4, 1), np.sqrt(0.4))])
        tables = features.sketch_.tables(np.float64)
        buckets = np.hstack([tables.buckets, np.zeros((3, 1), np.int32)])
        signs = np.hstack([np.sign(tables.weights), np.ones((3, 1))])
        for k in range(3):  # the constant's place is that of the only other entry
            (place,) = np.nonzero(tables.offsets[k])
            buckets[k, -1] = place[0]
            signs[k, -1] = np.sign(tables.offsets[k, place[0]])
        expected = np.zeros((4, length))
        for index in itertools.product(range(6), repeat=3):
            place = sum(buckets[k, i] for k, i in enumerate(index)) % length
            sign = math.prod(signs[k, i] for k, i in enumerate(index))
            expected[:, place] += sign * np.prod(U[:, index], axis=1)
        np.testing.assert_allclose(features.transform(X), expected, rtol=0, atol=1e-12)
