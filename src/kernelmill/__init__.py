"""Kernel machines at linear cost: fast random feature maps with a C++ core.

Contents
--------
fwht
    Fast Walsh-Hadamard transform.
transforms
    That, circular convolution (`circular_convolve`), and sine and cosine together (`sincos`).
random
    Counter-based random streams (`Stream`), the same on every machine.
get_num_threads, set_num_threads, runtime
    Threads and instruction sets.
"""

from kernelmill import random, runtime, transforms
from kernelmill.runtime import get_num_threads, set_num_threads
from kernelmill.runtime.isa import apply_environment as _apply_environment
from kernelmill.transforms import fwht

__version__ = "0.1.0.dev0"

__all__ = [
    "__version__",
    "fwht",
    "get_num_threads",
    "random",
    "runtime",
    "set_num_threads",
    "transforms",
]

_apply_environment()
