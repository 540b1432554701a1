"""How much memory work takes, as far as the system tells."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["PeakMemory", "peak_memory"]


def peak_memory() -> int:
    """The largest resident memory of this process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class PeakMemory:
    """The peak of the resident memory beyond that at the start, on Linux.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelmill.workflows.memory import PeakMemory
    >>> watch = PeakMemory()
    >>> block = np.ones(1 << 22)
    >>> peak = watch.bytes_more()
    >>> peak is None or peak > 1 << 24
    True
    """

    def __init__(self) -> None:
        gc.collect()
        # Freed memory that the C library keeps would hide what is taken from it again.
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
        # Forgets the peak so far (Linux, proc(5)); where it cannot, the figure is an upper bound.
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        self._start = _status("VmRSS")

    def bytes_more(self) -> int | None:
        """The bytes beyond the start; None where the system does not tell."""
        peak = _status("VmHWM")
        return None if peak is None or self._start is None else max(0, peak - self._start)


def _status(name: str) -> int | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), None)
