"""Seeds, random states and substreams: the keys they give, and that keys are values."""

import copy
import pickle
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelmill.random import Stream

NAMES = st.one_of(st.text(max_size=6), st.integers(0, 2**70))
PATHS = st.lists(NAMES, min_size=1, max_size=4)


def digest(person, message):
    return int.from_bytes(blake2b(message, digest_size=16, person=person).digest(), "little")


def test_the_key_of_a_seed():
    for seed, message in [(0, b""), (1, b"\x01"), (256, b"\x00\x01"), (2**64, bytes(8) + b"\x01")]:
        assert Stream.from_seed(seed).key == digest(b"kernelmill.seed", message)
    assert Stream.from_seed(np.uint8(7)) == Stream.from_seed(7)
    assert Stream.from_seed(10**500) != Stream.from_seed(10**500 + 1)


def test_the_key_of_a_substream():
    stream = Stream(5)
    first = digest(b"kernelmill.path", (5).to_bytes(16, "little") + b"s\xc3\xa9")
    second = digest(b"kernelmill.path", first.to_bytes(16, "little") + b"i\x00\x01")
    assert stream.substream("é", 256).key == second


@given(PATHS, PATHS)
def test_different_paths_are_different_streams(a, b):
    stream = Stream.from_seed(0)
    same = [(type(x), x) for x in a] == [(type(x), x) for x in b]
    assert (stream.substream(*a) == stream.substream(*b)) == same


def test_names_do_not_run_together():
    stream = Stream.from_seed(0)
    paths = [("ab", "c"), ("a", "bc"), ("abc",), ("a", "b", "c"), ("",), ("", ""), (0,), ("0",)]
    paths += [("\0",), (0, 0), (1,), ("1",), ("\1",), (256,), (1, 0), (0, 1)]
    assert len({stream.substream(*path) for path in paths} | {stream}) == len(paths) + 1


@given(PATHS, PATHS)
def test_a_path_is_walked_step_by_step(a, b):
    stream = Stream.from_seed(0)
    assert stream.substream(*a, *b) == stream.substream(*a).substream(*b)


def test_random_states():
    stream = Stream.from_seed(42)
    assert Stream.from_random_state(42) == stream
    assert Stream.from_random_state(np.int64(42)) == stream
    assert Stream.from_random_state(stream) is stream
    assert Stream.from_random_state(None) != Stream.from_random_state(None)
    for make in (np.random.RandomState, np.random.default_rng):
        one, two = make(1), make(1)
        first = Stream.from_random_state(one)
        assert first == Stream.from_random_state(two)
        assert first != Stream.from_random_state(one)  # it has moved on
        assert first.key == digest(b"kernelmill.state", make(1).bytes(16))


def test_none_means_the_global_state_as_in_scikit_learn():
    before = np.random.get_state()
    try:
        np.random.seed(3)
        first = Stream.from_random_state(None)
        np.random.seed(3)
        assert Stream.from_random_state(None) == first
        assert Stream.from_random_state(np.random) != first  # the same state, moved on
    finally:
        np.random.set_state(before)


def test_streams_are_values():
    stream = Stream.from_seed(9)
    assert stream == Stream(stream.key)
    assert hash(stream) == hash(Stream(stream.key))
    assert stream != Stream.from_seed(8)
    assert stream != stream.key
    assert eval(repr(stream)) == stream
    assert repr(Stream(255)) == "Stream(key=0x000000000000000000000000000000ff)"
    for other in (pickle.loads(pickle.dumps(stream)), copy.copy(stream), copy.deepcopy(stream)):
        assert other == stream
    with pytest.raises(AttributeError):
        stream.key = 3
