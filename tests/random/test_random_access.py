"""Any start, shape, chunking and number of threads gives the same bits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelmill.random import Stream

DRAWS = {
    "signs": lambda s, n, **k: s.signs(n, **k),
    "uniforms": lambda s, n, **k: s.uniforms(n, **k),
    "normals": lambda s, n, **k: s.normals(n, **k),
    "gammas": lambda s, n, **k: s.gammas(n, 0.7, **k),
    "chis": lambda s, n, **k: s.chis(n, 3.5, **k),
    "cauchys": lambda s, n, **k: s.cauchys(n, **k),
    "students": lambda s, n, **k: s.students(n, 2, **k),
    "sphere": lambda s, n, **k: s.sphere(n, 3, **k),
    "ball": lambda s, n, **k: s.ball(n, 5, **k),
    "integers": lambda s, n, **k: s.integers(n, 2**62 + 1, **k),
}
LENGTH = 1500
WHOLE = {name: draw(Stream.from_seed(1), LENGTH) for name, draw in DRAWS.items()}


@pytest.mark.parametrize("name", DRAWS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_slice_is_a_draw_from_its_start(name, data):
    start = data.draw(st.integers(0, LENGTH))
    size = data.draw(st.integers(0, LENGTH - start))
    threads = data.draw(st.integers(1, 3))
    drawn = DRAWS[name](Stream.from_seed(1), size, start=start, n_threads=threads)
    np.testing.assert_array_equal(drawn, WHOLE[name][start : start + size], strict=True)


@pytest.mark.parametrize("name", DRAWS)
def test_threads_do_not_matter(name):
    # Several pieces of work for every distribution; 2**18 + 3 is odd on purpose.
    size = 2**18 + 3 if name == "signs" else 2**14 + 3
    stream = Stream.from_seed(2)
    one = DRAWS[name](stream, size, start=5, n_threads=1)
    for threads in (2, 3, 7):
        many = DRAWS[name](stream, size, start=5, n_threads=threads)
        np.testing.assert_array_equal(one, many, strict=True)


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 0, 2), (4, 5, 6)])
def test_shapes_are_filled_in_c_order(name, shape):
    drawn = DRAWS[name](Stream.from_seed(1), shape)
    count = int(np.prod(shape))
    np.testing.assert_array_equal(drawn.reshape(-1), WHOLE[name][:count].reshape(-1))
    assert drawn.shape[: len(shape)] == shape


@pytest.mark.parametrize("name", [n for n in DRAWS if n != "integers"])
def test_float32_is_float64_rounded(name):
    drawn = DRAWS[name](Stream.from_seed(1), LENGTH, dtype=np.float32)
    np.testing.assert_array_equal(drawn, WHOLE[name].astype(np.float32), strict=True)


def test_small_integer_types():
    stream = Stream.from_seed(1)
    np.testing.assert_array_equal(
        stream.signs(LENGTH, dtype=np.int8), WHOLE["signs"].astype(np.int8), strict=True
    )
    np.testing.assert_array_equal(
        stream.integers(99, 2**31), stream.integers(99, 2**31, dtype="i4")
    )
    np.testing.assert_array_equal(stream.permutation(99), stream.permutation(99, dtype=np.int32))
    assert stream.permutation(3, dtype=np.int32).dtype == np.int32


@pytest.mark.parametrize("name", DRAWS)
def test_the_last_positions_exist(name):
    stream = Stream.from_seed(1)
    far = DRAWS[name](stream, 9, start=2**63 - 4)
    np.testing.assert_array_equal(far[4:], DRAWS[name](stream, 5, start=2**63))


def test_drawing_changes_nothing():
    stream = Stream.from_seed(1)
    before = stream.substream("block", 7).signs(100)
    stream.normals(1000)
    stream.permutation(50)
    np.testing.assert_array_equal(stream.substream("block", 7).signs(100), before)


def test_scalars_stay_scalars_of_the_right_shape():
    stream = Stream.from_seed(1)
    assert stream.normals(()).shape == ()
    assert stream.sphere((), 4).shape == (4,)
    assert stream.hash_function(5)(3).shape == ()
