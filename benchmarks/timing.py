"""Fair timing on a noisy machine: contenders take turns, and each keeps its best round."""

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


def heading(text: str) -> None:
    """Print the title of a table."""
    print(f"\n{text}\n{'-' * len(text)}")
