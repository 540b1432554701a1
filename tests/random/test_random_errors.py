"""Invalid arguments: each error names the value given and the values allowed."""

import numpy as np
import pytest

from kernelmill.random import HashFunction, SignHash, Stream, normal_quantile

STREAM = Stream.from_seed(0)
DRAWS = ["signs", "uniforms", "normals", "cauchys"]


@pytest.mark.parametrize(
    ("seed", "error", "message"),
    [
        (-1, ValueError, "seed must be at least 0, got -1"),
        (True, TypeError, "seed must be an integer, got True \\(bool"),
        (1.0, TypeError, "seed must be an integer, got 1.0 \\(float"),
        ("7", TypeError, "seed must be an integer, got '7' \\(str"),
        (None, TypeError, "seed must be an integer, got None"),
        (np.array([1, 2]), TypeError, "seed must be an integer, got array"),
    ],
)
def test_seeds(seed, error, message):
    with pytest.raises(error, match=message):
        Stream.from_seed(seed)


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        (-5, ValueError, "random_state must be at least 0, got -5"),
        (
            0.5,
            TypeError,
            "random_state must be None, a non-negative integer, .* or a Stream, got 0.5",
        ),
        (False, TypeError, "random_state must be None"),
        ("seed", TypeError, "random_state must be None, .* got 'seed' \\(str"),
    ],
)
def test_random_states(state, error, message):
    with pytest.raises(error, match=message):
        Stream.from_random_state(state)


@pytest.mark.parametrize("key", [-1, 2**128])
def test_keys(key):
    with pytest.raises(ValueError, match=f"key must be between 0 and 2\\*\\*128 - 1, got {key}"):
        Stream(key)


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ((), TypeError, "needs a name"),
        ((1.5,), TypeError, "strings and non-negative integers, got 1.5 \\(float"),
        (("a", True), TypeError, "got True \\(bool"),
        ((b"a",), TypeError, "got b'a' \\(bytes"),
        ((-1,), ValueError, "an integer in the path of a substream must be at least 0, got -1"),
    ],
)
def test_paths(path, error, message):
    with pytest.raises(error, match=message):
        STREAM.substream(*path)


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize(
    ("size", "options", "error", "message"),
    [
        (-1, {}, ValueError, "size must be at least 0, got -1"),
        (2.0, {}, TypeError, "size must be an integer or a tuple of integers, got 2.0"),
        ("3", {}, TypeError, "size must be an integer or a tuple of integers, got '3'"),
        (True, {}, TypeError, "size must be an integer, got True"),
        ((2, -3), {}, ValueError, r"size\[1\] must be at least 0, got -3"),
        ((2, 3.0), {}, TypeError, r"size\[1\] must be an integer, got 3.0"),
        (3, {"start": -1}, ValueError, "start must be between 0 and 2\\*\\*63, got -1"),
        (3, {"start": 2**63 + 1}, ValueError, "start must be between 0 and 2\\*\\*63, got"),
        (3, {"start": 0.0}, TypeError, "start must be an integer, got 0.0"),
        (3, {"dtype": np.int32}, TypeError, "dtype must be float64 or float32.*, got <class"),
        (3, {"dtype": "nonsense"}, TypeError, "dtype must be float64 or float32.*, got 'nonsense'"),
        (3, {"dtype": ">f8"}, TypeError, "dtype must be float64 or float32.*, got '>f8'"),
        (3, {"dtype": None}, TypeError, "dtype must be float64 or float32.*, got None"),
        (3, {"n_threads": 0}, ValueError, "n_threads"),
        (3, {"n_threads": 1.5}, (TypeError, ValueError), "n_threads"),
    ],
)
def test_common_arguments(name, size, options, error, message):
    with pytest.raises(error, match=message):
        getattr(STREAM, name)(size, **options)


@pytest.mark.parametrize(
    ("name", "what"), [("gammas", "shape"), ("chis", "df"), ("students", "df")]
)
@pytest.mark.parametrize("value", [0, -1, np.inf, np.nan, 10**400, "2", None, True, [1.0, 2.0]])
def test_parameters(name, what, value):
    with pytest.raises(
        (TypeError, ValueError), match=f"{what} must be a positive, finite number, got"
    ):
        getattr(STREAM, name)(3, value)


@pytest.mark.parametrize("name", ["sphere", "ball"])
@pytest.mark.parametrize(("dim", "error"), [(0, ValueError), (-1, ValueError), (2.0, TypeError)])
def test_dimensions(name, dim, error):
    with pytest.raises(error, match="dim must be"):
        getattr(STREAM, name)(3, dim)


def test_integers():
    for high in (0, -1, 2**63 + 1):
        with pytest.raises(ValueError, match=f"high must be between 1 and 2\\*\\*63, got {high}"):
            STREAM.integers(3, high)
    with pytest.raises(ValueError, match="high must be between 1 and 2\\*\\*31, got"):
        STREAM.integers(3, 2**31 + 1, dtype=np.int32)
    with pytest.raises(TypeError, match="dtype must be int64 or int32, got 'float64'"):
        STREAM.integers(3, 5, dtype="float64")


def test_permutations():
    with pytest.raises(ValueError, match="n must be between 0 and 2\\*\\*63, got -1"):
        STREAM.permutation(-1)
    with pytest.raises(ValueError, match="n must be between 0 and 2\\*\\*31, got"):
        STREAM.permutation(2**31 + 1, dtype=np.int32)
    with pytest.raises(TypeError, match=r"n must be an integer, got 3\.0"):
        STREAM.permutation(3.0)
    with pytest.raises(ValueError, match="index must be between 0 and"):
        STREAM.permutation(3, index=-1)
    with pytest.raises(TypeError, match="dtype must be int64 or int32"):
        STREAM.permutation(3, dtype=np.uint64)


def test_hash_parameters():
    for n_buckets in (0, -1, 2**61):
        with pytest.raises(ValueError, match="n_buckets must be between 1 and"):
            STREAM.hash_function(n_buckets)
    for make in (lambda **k: STREAM.hash_function(5, **k), STREAM.sign_hash):
        with pytest.raises(ValueError, match="independence must be between 2 and 1000, got 1"):
            make(independence=1)
        with pytest.raises(ValueError, match="index must be between"):
            make(index=2**64)
    for make in (lambda c: HashFunction(c, 5), SignHash):
        with pytest.raises(ValueError, match="coefficients must not be empty"):
            make(())
        with pytest.raises(ValueError, match=r"coefficients\[1\] must be between 0 and"):
            make((0, 2**61 - 1))
        with pytest.raises(TypeError, match=r"coefficients\[0\] must be an integer"):
            make((0.5,))
        with pytest.raises(TypeError, match="coefficients must be a sequence of integers, got 5"):
            make(5)


@pytest.mark.parametrize("hashed", [STREAM.hash_function(5), STREAM.sign_hash()])
@pytest.mark.parametrize(
    ("indices", "error", "message"),
    [
        ([0, -1], ValueError, r"indices must lie in \[0, 2\*\*61 - 1\); got -1"),
        ([2**61 - 1], ValueError, f"got {2**61 - 1}"),
        (np.array([2**64 - 1], np.uint64), ValueError, f"got {2**64 - 1}"),
        ([1.0], TypeError, "indices must be integers, got dtype float64"),
        ([True], TypeError, "indices must be integers, got dtype bool"),
        (["a"], TypeError, "indices must be integers"),
        (np.empty(0), TypeError, "indices must be integers, got dtype float64"),
        ([2**70], TypeError, "indices must be integers, got dtype object"),
    ],
)
def test_indices(hashed, indices, error, message):
    with pytest.raises(error, match=message):
        hashed(indices)


def test_quantiles():
    for p in (-1e-300, 1 + 1e-15, np.nan, np.inf):
        with pytest.raises(ValueError, match="p must lie between 0 and 1; got"):
            normal_quantile([0.5, p])
    for p in ("a", True, 1j):
        with pytest.raises(TypeError, match="p must be an array of real numbers"):
            normal_quantile(p)


def test_unaligned_arrays_are_as_good_as_others():
    raw = bytearray(np.array([3, 1, 4, 1], np.int64).tobytes())
    odd = np.frombuffer(b"x" + raw, np.int64, offset=1)
    h = STREAM.hash_function(10)
    np.testing.assert_array_equal(h(odd), h([3, 1, 4, 1]))
    p = np.frombuffer(b"x" + np.array([0.25, 0.5]).tobytes(), np.float64, offset=1)
    np.testing.assert_array_equal(normal_quantile(p), normal_quantile([0.25, 0.5]))
