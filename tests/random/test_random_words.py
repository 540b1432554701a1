"""The words under the distributions against NumPy's Philox, and slow references based on them."""

import mpmath
import numpy as np
import pytest

from kernelmill import _native
from kernelmill.random import Stream, normal_quantile

MASK = 2**64 - 1
TAGS = {
    "signs": 1,
    "uniforms": 2,
    "normals": 3,
    "cauchys": 4,
    "gammas": 5,
    "sphere": 8,
    "ball": 9,
    "integers": 10,
    "permutation": 11,
    "bucket_hash": 12,
    "sign_hash": 13,
    "orthogonal": 14,
}


def numpy_block(key, counter):
    # NumPy adds one to the 256-bit counter before the first block.
    whole = sum(word << (64 * i) for i, word in enumerate(counter)) - 1
    whole %= 2**256
    before = [(whole >> (64 * i)) & MASK for i in range(4)]
    generator = np.random.Philox(
        key=np.array([key & MASK, key >> 64], np.uint64), counter=np.array(before, np.uint64)
    )
    return [int(word) for word in generator.random_raw(4)]


def word(stream, name, position, row=0, attempt=0):
    return numpy_block(stream.key, (position // 4, attempt, row, TAGS[name]))[position % 4]


def lemire(stream, name, position, bound, row=0):
    attempt = 0
    while True:
        product = word(stream, name, position, row, attempt) * bound
        if product % 2**64 >= 2**64 % bound:
            return product >> 64
        attempt += 1


@pytest.mark.parametrize(
    ("key", "counter"),
    [
        (0, (0, 0, 0, 0)),
        (0, (1, 0, 0, 0)),
        (2**128 - 1, (MASK, MASK, MASK, MASK)),
        (0x0123456789ABCDEF_FEDCBA9876543210, (5, 6, 7, 8)),
        (1 << 64, (2**63, 0, 1, 13)),
    ],
)
def test_blocks_are_those_of_numpy(key, counter):
    assert list(_native.philox((key & MASK, key >> 64), counter)) == numpy_block(key, counter)


@pytest.mark.parametrize("start", [0, 3, 2**40 + 1, 2**63])
def test_signs_and_uniforms_are_the_bits_of_the_words(start):
    stream = Stream.from_seed(3)
    bits = [word(stream, "signs", (start + i) // 64) >> ((start + i) % 64) & 1 for i in range(99)]
    np.testing.assert_array_equal(stream.signs(99, start=start), [1 - 2 * b for b in bits])
    exact = [((word(stream, "uniforms", start + i) >> 12) + 0.5) * 2.0**-52 for i in range(11)]
    np.testing.assert_array_equal(stream.uniforms(11, start=start), exact)


def test_normals_and_cauchys_are_the_quantiles_of_the_words():
    stream, count = Stream.from_seed(4), 60
    with mpmath.workdps(40):
        for name in ("normals", "cauchys"):
            drawn = getattr(stream, name)(count)
            for i in range(count):
                w = word(stream, name, i)
                half = ((w & (2**63 - 1)) + mpmath.mpf(1) / 2) / 2**64
                if name == "normals":
                    exact = mpmath.sqrt(2) * mpmath.erfinv(2 * half)
                else:
                    exact = mpmath.tan(mpmath.pi * half)
                exact = -exact if w >> 63 else exact
                assert abs(mpmath.mpf(float(drawn[i])) / exact - 1) < 2e-15


@pytest.mark.parametrize("high", [1, 2, 10, 2**31, 2**62 + 1, 2**63 - 1, 2**63])
def test_integers_are_unbiased_multiples_of_the_words(high):
    stream = Stream.from_seed(5)
    expected = [lemire(stream, "integers", 3 + i, high) for i in range(40)]
    assert stream.integers(40, high, start=3).tolist() == expected


def test_a_rejected_integer_takes_the_next_attempt():
    # A quarter of the words is rejected for this bound; the reference above met some of them.
    stream, high = Stream.from_seed(5), 2**62 + 1
    products = [word(stream, "integers", 3 + i) * high for i in range(40)]
    assert sum(p % 2**64 < 2**64 % high for p in products) > 3


@pytest.mark.parametrize(("n", "index"), [(1, 0), (2, 5), (30, 0), (300, 2**64 - 1)])
def test_permutations_are_inside_out_shuffles(n, index):
    stream, expected = Stream.from_seed(6), []
    for last in range(n):
        j = lemire(stream, "permutation", last, last + 1, index)
        expected.append(last)
        expected[last], expected[j] = expected[j], expected[last]
    assert stream.permutation(n, index=index).tolist() == expected


def test_hash_coefficients_are_unbiased_multiples_of_the_words():
    stream, prime = Stream.from_seed(7), 2**61 - 1
    for name, hashed in (
        ("bucket_hash", stream.hash_function(9, independence=6, index=4)),
        ("sign_hash", stream.sign_hash(independence=6, index=4)),
    ):
        expected = tuple(lemire(stream, name, i, prime, row=4) for i in range(6))
        assert hashed.coefficients == expected


def test_rows_are_normal_vectors_over_their_length():
    stream, dim, row = Stream.from_seed(8), 7, 2**63
    for name in ("sphere", "ball"):
        words = [word(stream, name, j, row) for j in range(dim)]
        halves = np.array([((w & (2**63 - 1)) + 0.5) * 2.0**-64 for w in words])
        signs = np.array([-1 if w >> 63 else 1 for w in words])
        z = signs * normal_quantile(0.5 + halves)
        expected = z / np.linalg.norm(z)
        if name == "ball":
            u = ((word(stream, name, 0, row, attempt=1) >> 12) + 0.5) * 2.0**-52
            expected *= u ** (1 / dim)
        np.testing.assert_allclose(getattr(stream, name)(1, dim, start=row)[0], expected, 1e-13)


def gamma_attempts(stream, positions, attempt):
    """The normal and the uniform of the rejection test, and the uniform of the boost."""
    key = (stream.key & MASK, stream.key >> 64)
    blocks = [_native.philox(key, (p, attempt, 0, TAGS["gammas"])) for p in positions]
    words = np.array(blocks, np.uint64).reshape(-1, 4)
    halves = ((words[:, 0] & np.uint64(2**63 - 1)).astype(float) + 0.5) * 2.0**-64
    x = np.where(words[:, 0] >> np.uint64(63), -1, 1) * normal_quantile(0.5 + halves)
    u, boost = (((words[:, k] >> np.uint64(12)).astype(float) + 0.5) * 2.0**-52 for k in (1, 2))
    return x, u, boost


@pytest.mark.parametrize("shape", [0.3, 1, 2.5, 60, 100, 1e9])
def test_gammas_are_those_of_the_rejection_method(shape):
    # So many that the last, rare inequality of the method decides about some of them.
    stream, count = Stream.from_seed(9), 12_000
    drawn, expected = stream.gammas(count, shape), np.full(count, np.nan)
    d = np.longdouble(shape + 1 if shape < 1 else shape) - np.longdouble(1) / 3
    open_, attempt, factor = np.arange(count), 0, 1
    while open_.size:
        x, u, boost = gamma_attempts(stream, open_.tolist(), attempt)
        if shape < 1 and attempt == 0:
            factor = boost ** (1 / shape)
        t = x.astype(np.longdouble) / np.sqrt(9 * d)
        positive = t > -1
        v = (1 + np.where(positive, t, 0)) ** 3
        ratio = x * x / np.longdouble(2) + d * (1 - v + np.log(v))
        accepted = positive & (np.log(u.astype(np.longdouble)) < ratio)
        expected[open_[accepted]] = (d * v)[accepted]
        open_, attempt = open_[~accepted], attempt + 1
    np.testing.assert_allclose(drawn, expected * factor, rtol=1e-12)
    assert attempt > 1 or shape > 1e6  # where nearly every attempt is accepted


@pytest.mark.parametrize("dim", [1, 2, 5, 12])
def test_orthogonal_matrices_are_products_of_reflections(dim):
    stream, index = Stream.from_seed(34), 9
    expected = np.zeros((dim, dim))
    for n in range(1, dim + 1):
        first = n * (n - 1) // 2
        words = [word(stream, "orthogonal", first + i, index) for i in range(n)]
        x = np.array([signed_normal(w) for w in words])
        s = np.copysign(1.0, x[0])
        u = x.copy()
        u[0] += s * np.linalg.norm(x)
        reflection = np.eye(n) - 2 * np.outer(u, u) / (u @ u)
        at = dim - n
        expected[at, at] = -s
        expected[at:, at:] = reflection @ expected[at:, at:]
        np.testing.assert_allclose(expected[at:, at], x / np.linalg.norm(x), atol=1e-15)
    np.testing.assert_allclose(stream.orthogonal(dim, index=index), expected, atol=1e-14)


def signed_normal(w):
    magnitude = normal_quantile(0.5 + ((w & (2**63 - 1)) + 0.5) / 2**64)
    return -magnitude if w >> 63 else magnitude
