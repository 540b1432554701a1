"""The Walsh-Hadamard transform against scipy's Hadamard matrix, and its algebraic properties."""

from functools import cache

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kernelmill import fwht, runtime

FLOATS = [np.float32, np.float64]
EPS = {np.float32: 2.0**-24, np.float64: 2.0**-53}


def slow_butterflies(x):
    """Transform the last axis level by level, distance n/2 first, as the C++ core does."""
    n = x.shape[-1]
    y = x.reshape(-1, n).copy()
    half = n // 2
    while half >= 1:
        blocks = y.reshape(-1, n // (2 * half), 2, half)
        y = np.stack([blocks[:, :, 0] + blocks[:, :, 1], blocks[:, :, 0] - blocks[:, :, 1]], axis=2)
        y = y.reshape(-1, n)
        half //= 2
    return y.reshape(x.shape)


def sample(shape, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@cache  # for all instruction sets
def sample_and_transform(n_rows, log2_n, dtype):
    x = sample((n_rows, 2**log2_n), dtype, seed=log2_n)
    return x, slow_butterflies(x)


@pytest.mark.representative
@pytest.mark.parametrize("dtype", FLOATS)
def test_is_multiplication_by_the_hadamard_matrix(isa, dtype):
    for log2_n in range(11):
        n = 2**log2_n
        x = sample((5, n), dtype)
        exact = x.astype(np.longdouble) @ scipy.linalg.hadamard(n).T
        # Each of log2 n levels adds at most one rounding, of values no larger than the 1-norm.
        bound = log2_n * EPS[dtype] * np.abs(x).sum(axis=1, keepdims=True) * 1.001
        assert np.all(np.abs(fwht(x) - exact) <= bound)


@pytest.mark.parametrize("dtype", FLOATS)
def test_is_bit_equal_to_slow_butterflies(isa, dtype):
    """Equal to one reference on every instruction set, hence equal among them."""
    for log2_n in range(20):
        rows = [1, 7, 8, 9, 15, 16, 17, 31, 33] if log2_n <= 8 else [1, 3]
        for count in rows:
            x, expected = sample_and_transform(count, log2_n, dtype)
            for n_threads in (1, 2, 3):
                np.testing.assert_array_equal(fwht(x, n_threads=n_threads), expected)


def test_largest_length():
    """2**27 elements: too long for a reference, so an input whose transform is known."""
    n = 2**27
    x = np.zeros(n, np.float32)
    x[[0, 12345, n - 1]] = 1, 2, 4
    fwht(x, out=x)
    index = np.array([0, 1, 2, 3, 77777, 2**26, 2**26 + 1, n - 2, n - 1])

    def sign(row):
        return 1 - 2 * np.array([int(i & row).bit_count() % 2 for i in index])

    np.testing.assert_array_equal(x[index], sign(0) + 2 * sign(12345) + 4 * sign(n - 1))
    assert float(np.sum(x, dtype=np.float64)) == n  # row sums of H: n in the first column, 0 beyond


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_any_axis(isa, axis, dtype):
    x = sample((16, 8, 32), dtype)
    expected = np.moveaxis(
        slow_butterflies(np.ascontiguousarray(np.moveaxis(x, axis, -1))), -1, axis
    )
    np.testing.assert_array_equal(fwht(x, axis=axis), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[:, ::2, :],
        lambda x: x[::-1, :, ::-1],
        lambda x: x.transpose(2, 0, 1),
        np.asfortranarray,
        lambda x: np.broadcast_to(x[:1], x.shape),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 16, axis=2),
        lambda x: x[1:1],
        lambda x: x[:, :, 3:35],
    ],
    ids=["step", "reversed", "transposed", "Fortran", "broadcast", "windows", "empty", "offset"],
)
def test_any_strides(isa, view, dtype):
    x = view(sample((8, 12, 64), dtype))
    for axis in range(x.ndim):
        if x.shape[axis] & (x.shape[axis] - 1) or x.shape[axis] == 0:
            continue
        moved = np.ascontiguousarray(np.moveaxis(x, axis, -1))
        expected = np.moveaxis(slow_butterflies(moved), -1, axis)
        np.testing.assert_array_equal(fwht(x, axis=axis), expected)
        out = np.full(x.shape, np.nan, dtype)
        assert fwht(x, axis=axis, out=out) is out
        np.testing.assert_array_equal(out, expected)


def test_unaligned_elements(isa):
    records = np.zeros(64, dtype=[("tag", "i1"), ("value", "f8")])
    records["value"] = sample(64, np.float64)
    assert not records["value"].flags.aligned
    np.testing.assert_array_equal(fwht(records["value"]), slow_butterflies(records["value"].copy()))


@pytest.mark.parametrize("dtype", FLOATS)
def test_in_place_with_any_strides(isa, dtype):
    for axis, view in [(1, np.s_[:, :]), (0, np.s_[:, ::3]), (1, np.s_[::2, ::-1])]:
        whole = sample((64, 32), dtype)
        before = whole.copy()
        x = whole[view]
        if x.shape[axis] & (x.shape[axis] - 1):
            continue
        moved = np.ascontiguousarray(np.moveaxis(x, axis, -1))
        expected = np.moveaxis(slow_butterflies(moved), -1, axis)
        assert fwht(x, axis=axis, out=x) is x
        np.testing.assert_array_equal(x, expected)
        untouched = np.ones(whole.shape, bool)
        untouched[view] = False
        np.testing.assert_array_equal(whole[untouched], before[untouched])


def test_out_that_overlaps_the_input():
    whole = sample(96, np.float64)
    expected = slow_butterflies(whole[:64].copy())
    fwht(whole[:64], out=whole[32:])
    np.testing.assert_array_equal(whole[32:], expected)


def test_input_is_left_alone_and_may_be_read_only(tmp_path):
    x = sample((4, 64), np.float32)
    x.setflags(write=False)
    before = x.copy()
    y = fwht(x)
    np.testing.assert_array_equal(x, before)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    z = fwht(mapped)
    assert type(z) is np.ndarray
    np.testing.assert_array_equal(z, y)


@pytest.mark.parametrize(
    ("given_dtype", "expected"),
    [
        (np.float16, np.float32),
        (np.int8, np.float64),
        (np.uint64, np.float64),
        (np.bool_, np.float64),
        (np.dtype(">f4"), np.float32),
        (np.dtype(">f8"), np.float64),
    ],
)
def test_promotes(given_dtype, expected):
    y = fwht(np.array([1, 0, 1, 1]).astype(given_dtype))
    assert y.dtype == expected
    np.testing.assert_array_equal(y, [3, 1, -1, 1])


def test_numpy_scalars_as_options():
    x = sample((4, 8), np.float64)
    expected = fwht(x, axis=0, normalize=True)
    np.testing.assert_array_equal(fwht(x, axis=np.int64(0), normalize=np.bool_(True)), expected)


def test_result_keeps_the_memory_order():
    x = np.asfortranarray(sample((8, 16), np.float32))
    assert fwht(x).flags.f_contiguous


def test_nan_and_infinity_spread():
    x = np.ones(8)
    x[3] = np.nan
    assert np.isnan(fwht(x)).all()
    x[3] = np.inf
    assert np.isinf(fwht(x)).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"x": np.ones(12)}, ValueError, "power of two, got 12.*pad it with zeros to 16"),
        ({"x": np.ones((4, 0))}, ValueError, "transformed axis must not be empty"),
        ({"x": None}, TypeError, "must hold real numbers, got NoneType"),
        ({"x": np.ma.ones(4)}, TypeError, "masked array"),
        ({"x": scipy.sparse.eye_array(4)}, TypeError, r"sparse \(.*toarray"),
        ({"x": np.ones(4), "axis": "rows"}, TypeError, "axis must be an integer, got 'rows'"),
        ({"x": np.ones(4), "axis": 0.0}, TypeError, "axis must be an integer, got 0.0"),
        ({"x": np.ones(4), "normalize": "yes"}, TypeError, "normalize must be True or False, got"),
        ({"x": np.ones((3, 4)), "axis": 0}, ValueError, r"got 3 \(axis 0 of shape \(3, 4\)\)"),
        ({"x": 1.0}, ValueError, "at least one dimension"),
        ({"x": np.ones(4), "axis": 1}, np.exceptions.AxisError, "axis 1 is out of bounds"),
        (
            {"x": np.ones(4, complex)},
            TypeError,
            "must be real, got dtype complex128; transform the real and the",
        ),
        ({"x": np.ones(4, np.longdouble)}, TypeError, "float128|longdouble"),
        ({"x": ["a", "b"]}, TypeError, "must hold real numbers, got list"),
        (
            {"x": np.ones(4), "out": np.ones(8)},
            ValueError,
            r"shape of the result, \(4,\), got \(8,\)",
        ),
        ({"x": np.ones(4), "out": np.ones(4, "f")}, TypeError, "dtype of the result, float64, got"),
        ({"x": np.ones(4), "out": [1, 2, 3, 4]}, TypeError, "must be a numpy array, got list"),
        ({"x": np.ones(4), "out": np.broadcast_to(0.0, 4)}, ValueError, "out is read-only"),
        (
            {"x": np.ones(4), "n_threads": 0},
            ValueError,
            "n_threads must be at least 1, got 0",
        ),
        ({"x": np.ones(4), "n_threads": -1}, ValueError, "at least 1, got -1"),
        ({"x": np.ones(4), "n_threads": 1.5}, TypeError, "must be an integer, got 1.5"),
        ({"x": np.ones(4), "n_threads": True}, TypeError, "must be an integer, got True"),
    ],
)
def test_errors_say_what_to_change(arguments, error, message):
    with pytest.raises(error, match=message):
        fwht(**arguments)


arrays = st.tuples(
    st.sampled_from(FLOATS), st.integers(1, 5), st.integers(0, 9), st.integers(0, 2**32 - 1)
).map(lambda t: sample((t[1], 2 ** t[2]), t[0], t[3]))

each_isa = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@each_isa
@given(x=arrays)
def test_law_normalized_is_an_involution(isa, x):
    n = x.shape[1]
    back = fwht(fwht(x, normalize=True), normalize=True)
    eps = EPS[x.dtype.type]
    bound = 4 * (np.log2(n) + 1) * eps * np.linalg.norm(x, axis=1, keepdims=True)
    assert np.all(np.abs(back - x) <= bound * np.sqrt(n))


@each_isa
@given(x=arrays)
def test_law_parseval(isa, x):
    n = x.shape[1]
    a, b = (
        np.linalg.norm(x.astype(float), axis=1),
        np.linalg.norm(fwht(x, normalize=True).astype(float), axis=1),
    )
    np.testing.assert_allclose(a, b, rtol=4 * (np.log2(n) + 2) * EPS[x.dtype.type])


@each_isa
@given(x=arrays, factors=st.tuples(st.integers(-8, 8), st.integers(-8, 8)))
def test_law_linearity(isa, x, factors):
    """On integers no rounding happens, so the property holds exactly."""
    a = np.round(8 * x)
    b = a[::-1]
    expected = factors[0] * fwht(a) + factors[1] * fwht(b)
    np.testing.assert_array_equal(fwht(factors[0] * a + factors[1] * b), expected)


@each_isa
@given(
    x=arrays,
    cut=st.integers(0, 5),
    n_threads=st.integers(1, 4),
)
def test_law_rows_chunks_and_threads_do_not_matter(isa, x, cut, n_threads):
    whole = fwht(x, n_threads=n_threads)
    parts = np.concatenate([fwht(x[:cut], n_threads=1), fwht(x[cut:], n_threads=n_threads)])
    np.testing.assert_array_equal(whole, parts)


@pytest.mark.representative
@settings(deadline=None)
@given(
    x=hnp.arrays(
        st.sampled_from(FLOATS),
        st.sampled_from([(1,), (2,), (8,), (3, 16), (32,), (2, 64)]),
        elements=st.floats(-(2.0**100), 2.0**100, width=32),
    )
)
def test_every_isa_gives_the_same_bits(x):
    before = runtime.get_isa()
    results = []
    for isa in runtime.available_isas():
        runtime.set_isa(isa)
        results.append(fwht(x, normalize=True).tobytes())
    runtime.set_isa(before)
    assert len(set(results)) == 1
