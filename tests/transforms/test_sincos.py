"""Sine and cosine against mpmath, including arguments that are hard or unusual."""

from functools import cache

import mpmath
import numpy as np
import pytest

from kernelmill.transforms import sincos

FLOATS = [np.float32, np.float64]
LIMIT = {np.float32: 1e5, np.float64: 1e9}
mpmath.mp.prec = 1200  # enough digits of pi for the largest float64


def ulps(got, exact):
    """Distance in units of the last place of got's dtype at the exact value."""
    info = np.finfo(got.dtype)
    exponent = mpmath.frexp(exact)[1]
    unit = mpmath.mpf(2) ** max(exponent - info.nmant - 1, info.minexp - info.nmant)
    return abs(mpmath.mpf(float(got)) - exact) / unit


@cache  # instruction sets share it
def exact_pair(x):
    return mpmath.sin(x), mpmath.cos(x)


def worst(x):
    s, c = sincos(x)
    assert s.dtype == c.dtype == x.dtype
    exact = [exact_pair(float(v)) for v in x]
    found = zip(s, c, strict=True)
    errors = [max(map(ulps, *pairs)) for pairs in zip(found, exact, strict=True)]
    return max(errors)


@pytest.mark.parametrize("dtype", FLOATS)
def test_two_ulps_where_features_live(isa, dtype):
    rng = np.random.default_rng(1)
    spread = LIMIT[dtype] * 2 ** rng.uniform(-60, 0, 1500) * rng.choice([-1, 1], 1500)
    even = rng.uniform(-LIMIT[dtype], LIMIT[dtype], 1500)
    assert worst(np.concatenate([spread, even]).astype(dtype)) < 2


@pytest.mark.parametrize("dtype", FLOATS)
def test_two_ulps_next_to_multiples_of_half_pi(isa, dtype):
    """Where everything cancels: the floats nearest to q pi/2, and the worst of many."""
    largest = LIMIT[dtype] / (np.pi / 2)
    q = np.unique(np.round(np.geomspace(1, largest, 3000)))
    x = np.array([float(mpmath.mpf(v) * mpmath.pi / 2) for v in q]).astype(dtype)
    x = x[np.abs(x) <= LIMIT[dtype]]
    assert worst(x) < 2
    many = np.arange(1, int(min(largest, 2e6)))
    near = (many * (np.pi / 2)).astype(dtype)
    near = near[np.abs(near) <= LIMIT[dtype]]
    residual = np.minimum(*np.abs(sincos(near)))
    assert worst(near[np.argsort(residual)[:200]]) < 2


@pytest.mark.parametrize("dtype", FLOATS)
def test_correct_beyond(isa, dtype):
    info = np.finfo(dtype)
    top = np.log2(float(info.max))
    x = (2 ** np.random.default_rng(2).uniform(np.log2(LIMIT[dtype]), top - 1e-3, 300)).astype(
        dtype
    )
    assert worst(np.concatenate([x, -x, [info.max]]).astype(dtype)) < 2


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(isa, dtype):
    s, c = sincos(np.array([0.0, -0.0, np.nan, np.inf, -np.inf], dtype))
    np.testing.assert_array_equal(s, [0, 0, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(np.signbit(s[:2]), [False, True])
    np.testing.assert_array_equal(c, [1, 1, np.nan, np.nan, np.nan])
    tiny = np.array([np.finfo(dtype).smallest_subnormal, np.finfo(dtype).tiny], dtype)
    s, c = sincos(tiny)
    np.testing.assert_array_equal(s, tiny)
    np.testing.assert_array_equal(c, [1, 1])


@pytest.mark.parametrize("dtype", FLOATS)
def test_an_element_does_not_depend_on_its_neighbours(isa, dtype):
    for n in [1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 1000]:
        x = np.random.default_rng(n).uniform(-100, 100, n).astype(dtype)
        whole = sincos(x)
        x_bad = np.repeat(x, 2)
        x_bad[1::2] = np.nan  # forces the slow path on every vector
        for i, alone in enumerate(sincos(x[k : k + 1]) for k in range(n)):
            assert alone[0][0] == whole[0][i]
            assert alone[1][0] == whole[1][i]
        np.testing.assert_array_equal(sincos(x_bad)[0][::2], whole[0])
        np.testing.assert_array_equal(sincos(np.tile(x, 3000), n_threads=2)[1][-n:], whole[1])


def test_strides_shapes_and_out(isa):
    x = np.random.default_rng(0).uniform(-9, 9, (6, 10, 700))
    s, c = sincos(x)
    for view in (np.s_[::2, :, ::-3], np.s_[:, 5], np.s_[..., 0], np.s_[0, 0, 0], np.s_[1:1]):
        np.testing.assert_array_equal(sincos(x[view])[0], s[view])
    np.testing.assert_array_equal(sincos(x.transpose(2, 0, 1))[1], c.transpose(2, 0, 1))
    np.testing.assert_array_equal(sincos(np.asfortranarray(x))[1], c)
    y, cosine = x.copy(), np.empty_like(x)
    returned = sincos(y, out=(y, cosine))
    assert returned[0] is y
    assert returned[1] is cosine
    np.testing.assert_array_equal(y, s)
    np.testing.assert_array_equal(cosine, c)
    line = np.concatenate([x[0, 0], np.zeros(8)])
    sincos(line[:700], out=(line[8:], np.empty(700)))
    np.testing.assert_array_equal(line[8:], s[0, 0])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"x": np.ones(3, complex)}, TypeError, "must be real"),
        ({"x": np.ones(3), "out": np.ones(3)}, TypeError, "tuple of two arrays.*got ndarray"),
        (
            {"x": np.ones(3), "out": (np.ones(3), np.ones(4))},
            ValueError,
            r"out\[1\] must have the shape",
        ),
        (
            {"x": np.ones(3), "out": (np.ones(3, "f"), np.ones(3))},
            TypeError,
            r"out\[0\] must have the d",
        ),
        ({"x": np.ones(3), "n_threads": 0}, ValueError, "n_threads must be at least 1"),
    ],
)
def test_errors_say_what_to_change(arguments, error, message):
    with pytest.raises(error, match=message):
        sincos(**arguments)


def test_outputs_that_overlap_are_rejected():
    out = np.empty(8)
    with pytest.raises(ValueError, match="share memory; pass two separate arrays"):
        sincos(np.ones(8), out=(out, out))


def test_sines_and_cosines_into_one_matrix(isa):
    x = np.random.default_rng(0).uniform(-5, 5, (40, 30))
    s, c = sincos(x)
    for left, right in [(np.s_[:, :30], np.s_[:, 30:]), (np.s_[:, ::2], np.s_[:, 1::2])]:
        features = np.empty((40, 60))
        sincos(x, out=(features[left], features[right]))
        np.testing.assert_array_equal(features[left], s)
        np.testing.assert_array_equal(features[right], c)


def test_unaligned_scalars_and_long_strided_lines(isa):
    record = np.zeros((), dtype=[("tag", "i1"), ("value", "f8")])
    record["value"] = 2.0
    assert [float(v) for v in sincos(record["value"])] == [float(v) for v in sincos(2.0)]
    x = np.random.default_rng(0).uniform(-5, 5, 100_000)
    np.testing.assert_array_equal(sincos(x[::3], n_threads=3)[0], sincos(x)[0][::3])
