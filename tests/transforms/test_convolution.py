"""Circular convolution against numpy's FFT and the definition."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelmill.transforms import circular_convolve

FLOATS = [np.float32, np.float64]
EPS = {np.float32: 2.0**-24, np.float64: 2.0**-53}


def reference(*arrays):
    n = arrays[0].shape[-1]
    spectrum = 1.0
    for a in arrays:
        spectrum = spectrum * np.fft.fft(np.asarray(a, np.float64))
    return np.fft.ifft(spectrum, n).real


def tolerance(*arrays):
    """Rounding of log2 n levels, relative to the product of the norms."""
    n = arrays[0].shape[-1]
    size = np.prod([np.linalg.norm(a, axis=-1) for a in arrays], axis=0)[..., None]
    eps = max(EPS[a.dtype.type] for a in arrays)
    return 3 * len(arrays) * (np.log2(n) + 2) * eps * size


def sample(shape, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_agrees_with_numpy(isa, dtype):
    for log2_n in range(18):
        for rows in [1, 3, 4, 8, 9, 17] if log2_n <= 10 else [1, 3]:
            operands = [sample((rows, 2**log2_n), dtype, seed) for seed in range(4)]
            for count in (2, 3, 4):
                got = circular_convolve(*operands[:count])
                assert got.dtype == dtype
                error = np.abs(got - reference(*operands[:count]))
                assert np.all(error <= tolerance(*operands[:count]))


def test_is_the_definition(isa):
    x, y = sample(64, np.float64), sample(64, np.float64, 1)
    expected = [sum(x[j] * y[(k - j) % 64] for j in range(64)) for k in range(64)]
    np.testing.assert_allclose(circular_convolve(x, y), expected, atol=1e-13)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [3, 5, 6, 12, 100, 127, 1000, 5000])
def test_other_lengths(dtype, n):
    x, y = sample((7, n), dtype), sample((7, n), dtype, 1)
    got = circular_convolve(x, y)
    assert got.dtype == dtype
    assert np.all(np.abs(got - reference(x, y)) <= tolerance(x, y))
    np.testing.assert_array_equal(circular_convolve(x[2:3], y[2:3]), got[2:3])


@pytest.mark.parametrize("n", [48, 64, 512])
def test_blocks_through_either_route(monkeypatch, n):
    from kernelmill.transforms import convolution

    monkeypatch.setattr(convolution, "_BLOCK_ELEMENTS", 100)
    x, y = sample((5, 4, n), np.float64), sample((4, n), np.float64, 1)
    expected = reference(x, np.broadcast_to(y, x.shape))
    np.testing.assert_allclose(circular_convolve(x, y), expected, atol=1e-12)


@pytest.mark.parametrize("n", [8, 12, 128, 1024])
def test_broadcasting_axes_strides_and_out(isa, n):
    x, y = sample((3, n, 5), np.float64), sample((n, 1), np.float64, 1)
    flat = reference(x.transpose(0, 2, 1), np.broadcast_to(y[:, 0], (3, 5, n)))
    got = circular_convolve(x, y, axis=1)
    np.testing.assert_allclose(got, flat.transpose(0, 2, 1), atol=1e-11)
    np.testing.assert_array_equal(circular_convolve(x, y, axis=-2), got)
    np.testing.assert_array_equal(circular_convolve(x[::-1], y, axis=1), got[::-1])
    out = np.empty_like(got)
    assert circular_convolve(x, y, axis=1, out=out) is out
    np.testing.assert_array_equal(out, got)
    in_place = x.copy()
    circular_convolve(in_place, y, axis=1, out=in_place)
    np.testing.assert_array_equal(in_place, got)
    shifted = np.concatenate([x.ravel(), np.zeros(5)])
    circular_convolve(shifted[:-5].reshape(x.shape), y, axis=1, out=shifted[5:].reshape(x.shape))
    np.testing.assert_array_equal(shifted[5:].reshape(x.shape), got)


def test_dtypes_mix():
    assert circular_convolve(np.ones(4, "f"), np.ones(4)).dtype == np.float64
    assert circular_convolve(np.ones(4, "f"), np.ones(4, "e")).dtype == np.float32
    assert circular_convolve([1, 2], [3, 4]).tolist() == [11, 10]


def test_empty_batch():
    assert circular_convolve(np.ones((0, 8)), np.ones((0, 8))).shape == (0, 8)
    assert circular_convolve(np.ones((0, 6)), np.ones((0, 6))).shape == (0, 6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    log2_n=st.integers(0, 11),
    rows=st.integers(1, 20),
    dtype=st.sampled_from(FLOATS),
    n_threads=st.integers(1, 4),
    seed=st.integers(0, 1000),
)
def test_law_rows_and_threads_do_not_matter(isa, log2_n, rows, dtype, n_threads, seed):
    x, y = sample((rows, 2**log2_n), dtype, seed), sample((rows, 2**log2_n), dtype, seed + 1)
    whole = circular_convolve(x, y, n_threads=n_threads)
    i = seed % rows
    np.testing.assert_array_equal(circular_convolve(x[i], y[i]), whole[i])
    # Commutative to rounding; the unit of the ring is exact up to the rounding of the transforms.
    assert np.all(np.abs(circular_convolve(y, x) - whole) <= 2 * tolerance(x, y))
    unit = np.zeros_like(x)
    unit[:, 0] = 1
    assert np.all(np.abs(circular_convolve(x, unit) - x) <= tolerance(x, unit))


@pytest.mark.parametrize(
    ("arrays", "options", "error", "message"),
    [
        ((), {}, TypeError, "two or more arrays, got 0"),
        (([np.ones(4), np.ones(4)],), {}, TypeError, r"got 1; pass the arrays of a list as"),
        ((np.ones(4), np.ones(8)), {}, ValueError, r"shapes \(4,\), \(8,\) do not match"),
        ((np.ones(4), np.ones(1)), {}, ValueError, r"same length along axis -1, got shapes"),
        (
            (np.ones((3, 4)), np.ones(4)),
            {"axis": 0},
            ValueError,
            r"\(3, 4\), \(4,\); this axis does not",
        ),
        ((np.ones(4), 2.0), {}, ValueError, r"same length along axis -1, got shapes \(4,\), \(\)"),
        ((np.ones(4), np.ones(4)), {"axis": "x"}, TypeError, "axis must be an integer"),
        ((1.0, 2.0), {}, ValueError, "at least one dimension"),
        ((np.ones((2, 0)), np.ones((2, 0))), {}, ValueError, "empty along axis -1: shapes"),
        ((np.ones(4), np.ones(4, complex)), {}, TypeError, "array 1 must be real"),
        ((np.ones(4), np.ones(4)), {"axis": 1}, np.exceptions.AxisError, "out of bounds"),
        ((np.ones(4), np.ones(4)), {"out": np.ones(4, "f")}, TypeError, "dtype of the result"),
        ((np.ones(4), np.ones(4)), {"out": np.ones(8)}, ValueError, "shape of the result"),
        ((np.ones(4), np.ones(4)), {"n_threads": 0}, ValueError, "n_threads must be at least 1"),
    ],
)
def test_errors_say_what_to_change(arrays, options, error, message):
    with pytest.raises(error, match=message):
        circular_convolve(*arrays, **options)
