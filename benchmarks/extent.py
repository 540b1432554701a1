"""How much of the long benchmarks to run: $KERNELMILL_BENCH is "short", "usual" or "full"."""

import os
import sys

EXTENTS = ("short", "usual", "full")


def at_least(extent: str) -> bool:
    """Whether $KERNELMILL_BENCH asks for at least this extent; the default is "usual"."""
    asked = os.environ.get("KERNELMILL_BENCH", "usual")
    if asked not in EXTENTS:
        sys.exit(f"KERNELMILL_BENCH must be one of {', '.join(EXTENTS)}, got {asked!r}.")
    return EXTENTS.index(asked) >= EXTENTS.index(extent)


def load() -> str:
    """Return the load of the machine: times measured on a busy machine are less reliable."""
    return f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} CPUs"
