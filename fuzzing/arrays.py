"""Arrays as callers may have them: strides, alignment, byte order, damaged sparse matrices.

A function of the C++ core gives what it gives for a plain copy, or raises an error of Python.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from fuzzing.campaign import Subject
from kernelmill import CountSketch, Fastfood, RandomFourier, TensorSketch
from kernelmill.transforms import fwht, sincos

__all__ = ["make_subjects"]

_ERRORS = (ValueError, TypeError, IndexError)
_MAPS = (
    Fastfood(n_components=24, length_scale=1.0, random_state=0),
    RandomFourier(n_components=16, length_scale=1.0, random_state=0),
    TensorSketch(n_components=16, random_state=0),
    CountSketch(n_components=8, random_state=0),
)


def make_subjects() -> list[Subject]:
    """The bytes of a file are the seed of the arrays."""
    return [
        Subject("dense.arrays", (b"",), lambda _, rng: rng.bytes(16), _judge_dense),
        Subject("sparse.arrays", (b"",), lambda _, rng: rng.bytes(16), _judge_sparse),
    ]


def _generator(path: Path) -> np.random.Generator:
    return np.random.default_rng(list(path.read_bytes()))


def _view(rng: np.random.Generator) -> Any:
    """A matrix with unusual strides, offsets, dtype or byte order."""
    shape = rng.choice([0, 1, 2, 3, 7, 8, 16, 33], size=2)
    dtype = rng.choice(["f4", "f8", ">f4", ">f8", "f2", "i4", "?", "c8"])
    memory = rng.integers(0, 64, 16 * (int(shape.prod()) + 64), dtype=np.uint8)
    offset = int(rng.integers(8)) if rng.random() < 0.3 else 0  # misaligned
    itemsize = np.dtype(dtype).itemsize
    flat = memory[offset : offset + int(shape.prod()) * itemsize].view("u1")
    array: Any = np.ndarray(tuple(shape.tolist()), dtype, flat.tobytes() or b"\0" * itemsize)
    changes = (
        array,
        array[::-1],
        array[:, ::-1],
        array[::2],
        np.asfortranarray(array),
        array.T,
        np.broadcast_to(array[:1], array.shape),
        array[..., np.newaxis],
        array[0] if len(array) else array,
    )
    return changes[int(rng.integers(len(changes)))]


def _judge_dense(path: Path) -> str:
    rng = _generator(path)
    array = _view(rng)
    functions = (fwht, sincos, *(_transform(each) for each in _MAPS))
    function: Any = functions[int(rng.integers(len(functions)))]
    with np.errstate(all="ignore"):
        try:
            found = function(array)
        except _ERRORS:
            return "rejected"
        expected = function(np.array(array, order="C"))
    for one, other in zip(_as_tuple(found), _as_tuple(expected), strict=True):
        np.testing.assert_array_equal(one, other)
    return "accepted"


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _transform(made: Any) -> Any:
    return lambda X: made.fit(np.ones((2, X.shape[1]), np.float64)).transform(X)


def _judge_sparse(path: Path) -> str:
    """Index arrays with wrong, unsorted or repeated entries."""
    rng = _generator(path)
    matrix = scipy.sparse.random_array((6, 9), density=0.4, format="csr", rng=rng)
    width = rng.choice(["i4", "i8"])
    matrix.indices, matrix.indptr = matrix.indices.astype(width), matrix.indptr.astype(width)
    for _ in range(int(rng.integers(0, 3))):
        part = (matrix.indices, matrix.indptr)[int(rng.integers(2))]
        part[int(rng.integers(len(part)))] = rng.choice([-1, 0, 3, 8, 9, 100, 2**31 - 1])
    made = _MAPS[int(rng.integers(len(_MAPS)))].fit(np.ones((2, 9)))
    with np.errstate(all="ignore"):
        assert made._features(matrix).shape[0] == 6  # without the checks, nothing else is touched
    try:
        found = made.transform(matrix)
    except _ERRORS:
        return "rejected"
    assert found.shape[0] == 6
    try:
        matrix.check_format(full_check=True)
    except _ERRORS:
        return "accepted, though malformed"
    np.testing.assert_allclose(found, made.transform(matrix.toarray()), rtol=1e-5, atol=1e-6)
    return "accepted"
