"""Scalar draws against the distributions they claim.

Every assertion is a test at level 1e-4 with a fixed seed. There are about 230 of them in this file
and some 170 in test_random_independence.py, test_random_vectors.py and test_random_hashing.py: with
a new seed, a correct library would fail somewhere in 4 % of the cases. As the seeds are fixed and
the bits too, what passes once passes for ever.
"""

import numpy as np
import pytest
from scipy import special, stats

from kernelmill.random import Stream

LEVEL = 1e-4
SIZE = 200_000


def stream_of(*name):
    return Stream.from_seed(2026).substream("distributions", *map(str, name))


def assert_distributed(sample, cdf, least=-np.inf):
    """Kolmogorov-Smirnov over the points above `least`, which only makes it more lenient."""
    x = np.sort(np.asarray(sample, np.float64).reshape(-1))
    n, probabilities = x.size, cdf(x)
    steps = np.arange(n + 1) / n
    seen = x > least
    distance = np.maximum(steps[1:] - probabilities, probabilities - steps[:-1])[seen].max()
    assert stats.kstwo.sf(distance, n) > LEVEL, distance


def assert_mean(values, mean, variance):
    z = (np.mean(values) - mean) / np.sqrt(variance / np.size(values))
    assert abs(z) < stats.norm.isf(LEVEL / 2), z


def assert_count(count, n, probability):
    assert stats.binomtest(int(count), n, probability).pvalue > LEVEL


def log_gamma_cdf(shape, log_x):
    """P(gamma <= x) given log x, also where x itself underflows."""
    small = np.exp(np.minimum(shape * log_x - special.gammaln(shape + 1), 0))
    return np.where(log_x < -35, small, special.gammainc(shape, np.exp(np.maximum(log_x, -35))))


def logarithm(x):
    with np.errstate(divide="ignore"):
        return np.log(x)


def test_signs():
    signs = stream_of("signs").signs(10 * SIZE, dtype=np.int8)
    assert set(np.unique(signs)) == {-1, 1}
    assert_count((signs == 1).sum(), signs.size, 0.5)
    bytes_ = np.packbits(signs.reshape(-1, 8) > 0, axis=1)
    assert stats.chisquare(np.bincount(bytes_.ravel(), minlength=256)).pvalue > LEVEL
    for bit in range(64):  # each bit of the word on its own
        column = signs[: signs.size // 64 * 64].reshape(-1, 64)[:, bit]
        assert_count((column == 1).sum(), column.size, 0.5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_uniforms(dtype):
    u = stream_of("uniforms").uniforms(5 * SIZE, dtype=dtype)
    assert u.dtype == dtype
    assert 0 < u.min() < u.max() < 1
    assert_distributed(u, lambda x: x)
    assert_mean(u.astype(float), 0.5, 1 / 12)


def test_float32_uniforms_stay_below_one():
    # One value in 2**25 would round to 1; this many draws hold about four of them.
    stream = stream_of("below one")
    clamped = 0
    for start in range(0, 2**27, 2**24):
        u = stream.uniforms(2**24, start=start, dtype=np.float32)
        assert u.max() < 1
        clamped += int((u == np.float32(1 - 2**-24)).sum())
    assert clamped > 0


def test_uniform_bits():
    k = (stream_of("bits").uniforms(SIZE) * 2.0**53).astype(np.int64)
    assert (k % 2 == 1).all()  # (k + 1/2) / 2**52
    for bit in range(1, 53):
        assert_count((k >> bit & 1).sum(), SIZE, 0.5)


def test_normals():
    z = stream_of("normals").normals(5 * SIZE)
    assert_distributed(z, stats.norm.cdf)
    for power, mean, variance in [(1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (6, 15, 10170)]:
        assert_mean(z**power, mean, variance)


def test_normal_tails():
    z, n = stream_of("tails"), 20_000_000
    counts = {3.0: 0, 4.0: 0, 5.0: 0}
    below, above = dict(counts), dict(counts)
    for start in range(0, n, n // 10):
        part = z.normals(n // 10, start=start)
        for sigma in counts:
            above[sigma] += (part > sigma).sum()
            below[sigma] += (part < -sigma).sum()
    for sigma in counts:
        assert_count(above[sigma], n, stats.norm.sf(sigma))
        assert_count(below[sigma], n, stats.norm.sf(sigma))


@pytest.mark.parametrize(
    "shape", [1e-3, 0.01, 0.1, 0.5, 0.999, 1, 1.5, 2, 10, 392, 1e5, 1e9, 1e12, 1e15]
)
def test_gammas(shape):
    g = stream_of("gammas", shape).gammas(SIZE, shape)
    assert (g >= 0).all()
    if shape > 1e8:  # a normal up to O(shape**-1/2), far below what this sample resolves
        assert_distributed((g - shape) / np.sqrt(shape), stats.norm.cdf)
    else:
        assert_distributed(logarithm(g), lambda x: log_gamma_cdf(shape, x), least=-700)
    assert_mean(g, shape, shape)
    assert_mean((g - shape) ** 2, shape, 2 * shape**2 + 6 * shape)


def test_tiny_and_huge_shapes():
    stream = stream_of("extremes")
    for shape in (5e-324, 1e-300, 1e-9):
        assert (stream.gammas(1000, shape) == 0).mean() > 0.99
    for shape in (1e300, 1e308):
        np.testing.assert_allclose(stream.gammas(100, shape), shape, rtol=1e-14)
        np.testing.assert_allclose(stream.chis(100, shape), np.sqrt(shape), rtol=1e-14)
    assert np.isfinite(stream.students(10 * SIZE, 0.06)).all()
    assert not np.isnan(stream.students(SIZE, 1e-300)).any()
    assert_distributed(stream.students(SIZE, 1e300), stats.norm.cdf)


@pytest.mark.parametrize("df", [0.01, 0.5, 1, 1.999, 2, 3, 16, 784, 1e5, 1e9])
def test_chis(df):
    c = stream_of("chis", df).chis(SIZE, df)
    log_half_square = 2 * logarithm(c) - np.log(2)
    if df > 1e8:  # rounding of the logarithm would show; sqrt(2) (chi - sqrt(df)) is normal
        shift = np.sqrt(2) * (c - np.sqrt(df - 0.5))
        assert_distributed(shift, stats.norm.cdf)
    else:
        assert_distributed(log_half_square, lambda x: log_gamma_cdf(df / 2, x), least=-1400)
    assert_mean(c**2, df, 2 * df)


def test_integer_chis_are_lengths_of_normal_vectors():
    stream = stream_of("lengths")
    for df in (1, 2, 5):
        lengths = np.linalg.norm(stream.substream(df).normals((SIZE, df)), axis=1)
        drawn = stream.substream(df).chis(SIZE, df)
        assert stats.ks_2samp(lengths, drawn).pvalue > LEVEL


def test_cauchys():
    c = stream_of("cauchys").cauchys(5 * SIZE)
    assert_distributed(c, stats.cauchy.cdf)
    assert_distributed(1 / c, stats.cauchy.cdf)  # the reciprocal is Cauchy too: both tails
    assert_count((np.abs(c) > 1e4).sum(), c.size, 2 * stats.cauchy.sf(1e4))


@pytest.mark.parametrize("df", [0.02, 0.5, 1, 1.5, 2, 3, 5, 10, 100, 1e6])
def test_students(df):
    t = stream_of("students", df).students(SIZE, df)
    if df < 0.1:  # scipy's distribution function fails out there; see the tails in closed form
        assert_count((t > 0).sum(), SIZE, 0.5)
        constant = 2 * np.exp(special.gammaln((df + 1) / 2) - special.gammaln(df / 2))
        constant *= df ** (df / 2 - 1) / np.sqrt(np.pi)
        for x in (1e20, 1e100, 1e300):
            assert_count((np.abs(t) > x).sum(), SIZE, constant * x**-df)
    else:
        assert_distributed(t, lambda x: stats.t.cdf(x, df))
    if df > 4:
        assert_mean(t**2, df / (df - 2), stats.t.moment(4, df) - (df / (df - 2)) ** 2)


@pytest.mark.parametrize("high", [1, 2, 3, 10, 1000, 2**40 + 7, 2**62 + 1, 2**63])
def test_integers(high):
    k = stream_of("integers", high).integers(SIZE, high)
    assert 0 <= k.min() <= k.max() < high
    if high <= 1000:
        assert high == 1 or stats.chisquare(np.bincount(k, minlength=high)).pvalue > LEVEL
    else:
        assert_distributed((k + 0.5) / high, lambda x: x)
        assert_count((k & 1).sum(), SIZE, 0.5)
