"""Campaigns: many mutations of one subject, each judged, and the files that failed."""

from __future__ import annotations

import contextlib
import resource
import signal
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Subject", "Tally", "run_campaign"]

_MAX_SECONDS = 60  # A longer call hangs.
_MAX_MEMORY = 1 << 20  # Memory in KiB that reading a file may take.


@dataclass(frozen=True)
class Subject:
    """What is mutated, and how a mutation is judged.

    Attributes
    ----------
    name : str
        Of the files, with their extension.
    seeds : tuple of bytes
        Valid files.
    mutate : function of bytes and a generator
    judge : function of a path
        Returns "rejected" or "accepted"; anything that must not happen is an exception.
    """

    name: str
    seeds: tuple[bytes, ...]
    mutate: Callable[[bytes, np.random.Generator], bytes]
    judge: Callable[[Path], str]


@dataclass
class Tally:
    """The verdicts of a campaign."""

    name: str
    verdicts: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @property
    def tried(self) -> int:
        """The number of mutations."""
        return sum(self.verdicts.values()) + len(self.failures)

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in sorted(self.verdicts.items()))
        return f"{self.name}: {self.tried} tried, {counts or 'none'}, {len(self.failures)} failed"


def run_campaign(
    subject: Subject, n: int, seed: int, folder: Path, keep: Path | None = None
) -> Tally:
    """Judge `n` mutations of a subject; those that fail are copied to the folder `keep`.

    A mutation is a function of the name of the subject, the seed and its number.
    """
    tally = Tally(subject.name)
    path = folder / subject.name
    for number in range(n):
        key = [seed, number, *subject.name.encode()]
        rng = np.random.default_rng(key)
        content = subject.mutate(subject.seeds[number % len(subject.seeds)], rng)
        path.write_bytes(content)
        try:
            with _watch():
                verdict = subject.judge(path)
        except Exception:
            tally.failures.append(f"{subject.name}, seed {seed}, number {number}:\n{_last_lines()}")
            if keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{seed}-{number}-{subject.name}").write_bytes(content)
        else:
            tally.verdicts[verdict] = tally.verdicts.get(verdict, 0) + 1
    return tally


def _last_lines() -> str:
    return "\n".join(traceback.format_exc().splitlines()[-12:])


@contextlib.contextmanager
def _watch() -> Iterator[None]:
    """Raise TimeoutError in a call that hangs, and MemoryError after one that takes much memory.

    Only calls that take more memory than all before them are noticed.
    """

    def stop(*_: Any) -> None:
        raise TimeoutError(f"no end after {_MAX_SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_MAX_SECONDS)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        yield
        taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most
        if taken > _MAX_MEMORY:
            raise MemoryError(f"it took {taken >> 10} MiB")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
