"""Fair timing on a noisy machine: contenders take turns, and each keeps its best round.

$KERNELMILL_BENCH is "short", "usual" or "full": how much of the long benchmarks to run.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping


def best_times(
    contenders: Mapping[str, Callable[[], object]], *, rounds: int = 15, shortest: float = 2e-3
) -> dict[str, float]:
    """Return the best time in seconds of one call of each contender.

    A round calls every contender in turn, often enough to last `shortest` seconds, so that a slow
    spell of the machine hits all of them and the ratios hold.
    """
    repeats = {}
    for name, call in contenders.items():
        start = time.perf_counter()
        call()
        repeats[name] = max(1, round(shortest / max(time.perf_counter() - start, 1e-7)))
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, call in contenders.items():
            start = time.perf_counter()
            for _ in range(repeats[name]):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / repeats[name])
    return best


def time_once(call: Callable[[], object]) -> tuple[float, float]:
    """Return the time of one call, and the CPU time of all threads in it."""
    start, cpu_start = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - start, time.process_time() - cpu_start


def best_wall_and_cpu(
    calls: Mapping[str, Callable[[], object]], rounds: int
) -> dict[str, tuple[float, float]]:
    """Return the best wall and CPU times of long calls that take turns."""
    best = dict.fromkeys(calls, (float("inf"), float("inf")))
    for _ in range(rounds):
        for name, call in calls.items():
            seconds, cpu = time_once(call)
            best[name] = (min(best[name][0], seconds), min(best[name][1], cpu))
    return best


def heading(text: str) -> None:
    """Print the title of a table."""
    print(f"\n{text}\n{'-' * len(text)}")


EXTENTS = ("short", "usual", "full")


def at_least(extent: str) -> bool:
    """Return whether $KERNELMILL_BENCH requests at least this extent; the default is "usual"."""
    asked = os.environ.get("KERNELMILL_BENCH", "usual")
    if asked not in EXTENTS:
        sys.exit(f"KERNELMILL_BENCH must be one of {', '.join(EXTENTS)}, got {asked!r}.")
    return EXTENTS.index(asked) >= EXTENTS.index(extent)


def load() -> str:
    """Return the load of the machine: times measured on a busy machine are less reliable."""
    return f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} CPUs"
