"""The speed prototypes that serve as a yardstick, if they are at hand.

They are looked for in the folder named by KERNELMILL_PROTOTYPES, then in ../shared/prototypes, and
built with -march=native and -ffast-math.
"""

import ctypes
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


def load() -> ctypes.CDLL | None:
    """Build and load the prototypes; None if they are not there."""
    default = Path(__file__).parents[2] / "shared" / "prototypes"
    source = Path(os.environ.get("KERNELMILL_PROTOTYPES", default)) / "fastfood_lanes.cpp"
    if not source.exists():
        print("(prototypes not available: set KERNELMILL_PROTOTYPES to compare with them)")
        return None
    library = Path(tempfile.mkdtemp()) / "prototypes.so"
    flags = ["-O3", "-march=native", "-ffast-math", "-std=c++17", "-shared", "-fPIC", "-w"]
    subprocess.run(["c++", *flags, str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def fwht_rows(library: ctypes.CDLL, x: NDArray[Any], log2_n: int) -> None:
    """Transform rows of float32 in place."""
    rows = ctypes.c_size_t(x.size >> log2_n)
    library.fwht_rows(x.ctypes.data_as(ctypes.c_void_p), rows, log2_n, 1)


@dataclass
class FastfoodFactors:
    """Coefficients as the prototype takes them, each of shape (blocks, block size)."""

    B: NDArray[np.float32]
    P: NDArray[np.int32]
    G: NDArray[np.float32]
    S: NDArray[np.float32]

    @classmethod
    def of(cls, B: NDArray[Any], P: NDArray[Any], G: NDArray[Any], S: NDArray[Any]) -> Self:
        """Convert coefficients of any dtype; S holds all scales."""
        single = [np.ascontiguousarray(a, np.float32) for a in (B, G, S)]
        return cls(single[0], np.ascontiguousarray(P, np.int32), single[1], single[2])


def aligned_empty(shape: tuple[int, int]) -> NDArray[np.float32]:
    """Allocate an array whose rows begin at cache lines, as aligned stores need."""
    buffer = np.empty(shape[0] * shape[1] + 16, np.float32)
    start = -buffer.ctypes.data % 64 // 4
    return buffer[start : start + shape[0] * shape[1]].reshape(shape)


def fastfood(
    library: ctypes.CDLL, X: NDArray[Any], factors: FastfoodFactors, out: NDArray[Any]
) -> None:
    """Write cosines and sines of rows of float32, of which there are a multiple of 8.

    With ordinary stores, the faster kind here: streaming ones take twice as long.
    """
    n_blocks, size = factors.G.shape
    assert len(X) % 8 == 0
    assert out.ctypes.data % 64 == 0
    assert out.shape == (len(X), 2 * n_blocks * size)
    pointer = [
        a.ctypes.data_as(ctypes.c_void_p)
        for a in (X, factors.B, factors.G, factors.S, factors.P, out)
    ]
    count = ctypes.c_size_t
    library.fastfood(
        pointer[0],
        count(X.shape[0]),
        count(X.shape[1]),
        size.bit_length() - 1,
        count(n_blocks),
        *pointer[1:],
        2,  # the stage: all work, and no streaming stores
        count(0),
        count(X.shape[0]),
    )
