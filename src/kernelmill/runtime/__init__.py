"""Threads and instruction sets of the native code."""

from kernelmill.runtime.isa import available_isas, get_isa, set_isa
from kernelmill.runtime.threads import get_num_threads, set_num_threads

__all__ = [
    "available_isas",
    "get_isa",
    "get_num_threads",
    "set_isa",
    "set_num_threads",
]
