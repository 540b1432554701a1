"""Products of rows with packed frequencies: values, reproducible bits, errors.

The sizes at which blocks and tiles end are tested in native/tests/test_dense.cpp.
"""

import numpy as np
import pytest

from kernelmill import _native

DTYPES = [np.float32, np.float64]


def packed_size(m, d, dtype):
    width = 64 // np.dtype(dtype).itemsize
    return -(-m // width) * width * d


def pack(w):
    packed = np.empty(packed_size(*w.shape, w.dtype), w.dtype)
    _native.dense_pack(w, packed)
    return packed


def project(x, w, n_threads=1):
    out = np.full((len(x), len(w)), np.nan, x.dtype)
    _native.dense(x, pack(w), len(w), 0, out, 0, 1.0, None, n_threads)
    return out


def arrays(n, d, m, dtype):
    rng = np.random.default_rng(n + d + m)
    return rng.standard_normal((n, d)).astype(dtype), rng.standard_normal((m, d)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_layout(dtype):
    width = 64 // np.dtype(dtype).itemsize
    w = np.arange(1, 1 + 3 * (width + 2), dtype=dtype).reshape(width + 2, 3)
    panels = pack(w).reshape(2, 3, width)
    np.testing.assert_array_equal(panels[0], w[:width].T)
    np.testing.assert_array_equal(panels[1, :, :2], w[width:].T)
    assert not panels[1, :, 2:].any()


@pytest.mark.representative
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "sizes", [(1, 1, 1), (7, 30, 50), (200, 784, 130), (0, 3, 4), (3, 0, 4), (3, 4, 0)]
)
def test_values(isa, dtype, sizes):
    x, w = arrays(*sizes, dtype)
    exact = x.astype(np.longdouble) @ w.T.astype(np.longdouble)
    size = abs(x).astype(np.float64) @ abs(w).T.astype(np.float64)
    bound = 2 * sizes[1] * np.finfo(dtype).eps / 2 * size  # of a sum of d terms in any order
    assert (abs(project(x, w) - exact) <= bound).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_depend_on_the_row_alone(isa, dtype):
    x, w = arrays(250, 600, 300, dtype)
    whole = project(x, w)
    np.testing.assert_array_equal(project(x, w, n_threads=3), whole)
    for row in (0, 5, 96, 249):
        np.testing.assert_array_equal(project(x[row : row + 1], w, n_threads=2)[0], whole[row])


def test_what_is_not_finite_stays_in_its_row():
    x, w = arrays(20, 10, 40, np.float32)
    x[3, 4], x[7, 1] = np.nan, np.inf
    bad = ~np.isfinite(project(x, w)).all(axis=1)
    assert np.flatnonzero(bad).tolist() == [3, 7]


def test_errors():
    x, w = arrays(4, 5, 6, np.float32)
    packed, out = pack(w), np.empty((4, 6), np.float32)
    for bad in (x.astype(np.float64), x.astype(np.int32), np.asfortranarray(x), x[:, ::-1]):
        with pytest.raises(TypeError):
            _native.dense(bad, packed, 6, 0, out, 0, 1.0, None, 1)
    with pytest.raises(TypeError, match="float32 or float64"):
        _native.dense_pack(w.astype(np.int32), np.empty(80, np.int32))
    for m, shape in ((7, (4, 6)), (6, (3, 6)), (17, (4, 17)), (5, (4, 5, 1))):
        with pytest.raises(TypeError, match=r"out |packed must hold"):
            _native.dense(x, packed, m, 0, np.empty(shape, np.float32), 0, 1.0, None, 1)
    with pytest.raises(TypeError, match="matrix"):
        _native.dense(x[0], packed, 6, 0, out, 0, 1.0, None, 1)
    with pytest.raises(TypeError, match="as long as the packed"):
        _native.dense_pack(w, np.empty(30, np.float32))
    odd = np.frombuffer(b"x" + x.tobytes(), np.float32, offset=1).reshape(4, 5)
    with pytest.raises(TypeError, match="contiguous"):
        _native.dense(odd, packed, 6, 0, out, 0, 1.0, None, 1)
