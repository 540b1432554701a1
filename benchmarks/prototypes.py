"""A single-purpose Walsh-Hadamard transform as a yardstick, if its source is available.

It is searched for in the folder KERNELMILL_PROTOTYPES, then in ../shared/prototypes, and built with
-march=native and -ffast-math.
"""

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

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
