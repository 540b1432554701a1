"""Outputs that are not arrays, or overlap themselves, raise an error and never crash."""

import array
import ctypes

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from kernelmill import _native, fwht
from kernelmill.transforms import circular_convolve, sincos

IMPOSTORS = {
    "ctypes": ctypes.c_double * 8,
    "array": lambda: array.array("d", [0.0] * 8),
    "memoryview": lambda: memoryview(np.zeros(8)),
    "list": lambda: [0.0] * 8,
}


@pytest.mark.parametrize("make", IMPOSTORS.values(), ids=IMPOSTORS.keys())
def test_only_numpy_arrays_are_written_to(make):
    x = np.ones(8)
    calls = [
        lambda: fwht(x, out=make()),
        lambda: sincos(x, out=(make(), np.empty(8))),
        lambda: sincos(x, out=(np.empty(8), make())),
        lambda: circular_convolve(x, x, out=make()),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="must be a numpy array, got"):
            call()


def test_out_that_overlaps_itself():
    out = as_strided(np.zeros(8), (4, 8), (0, 8))
    x = np.ones((4, 8))
    for call in (
        lambda: fwht(x, out=out),
        lambda: fwht(out, out=out),
        lambda: sincos(x, out=(out, np.empty_like(x))),
        lambda: circular_convolve(x, x, out=out),
    ):
        with pytest.raises(ValueError, match="out overlaps itself"):
            call()


def test_the_private_layer_survives_what_it_was_not_made_for():
    x = np.ones(3)
    for call in (
        lambda: _native.elementary("log", x, np.zeros(3, "V0"), 1),
        lambda: _native.hash_buckets([1, 2], 5, np.ones(3, "i8"), np.zeros(3, "V0"), 1),
        lambda: _native.hash_buckets([], 5, np.ones(3, "i8"), np.zeros(3, "i8"), 1),
        lambda: _native.fwht(x, (ctypes.c_double * 3)(), 0, False, 1),
        lambda: _native.fwht(np.zeros(3, "V0"), np.zeros(3, "V0"), 0, False, 1),
        lambda: _native.circular_convolve((), x, 1),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()
