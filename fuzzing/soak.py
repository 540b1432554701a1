"""Prediction and partial_fit for a long time in one process: `python -m fuzzing.soak --minutes 60`.

Threads predict with shared models and fit models of their own, and the process forks. Every result
must be bit-identical to the first, and memory must not grow.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kernelmill import Fastfood, KernelClassifier, KernelRegressor, TensorSketch

N_THREADS = 8
N_SAMPLES = 12
MAX_GROWTH = 16 << 20  # Bytes that memory may grow after the first quarter: noise of allocators.


def _digest(*arrays: Any) -> str:
    state = hashlib.sha256()
    for array in arrays:
        state.update(np.ascontiguousarray(array).tobytes())
    return state.hexdigest()


def make_tasks() -> dict[str, Callable[[], str]]:
    """Return functions that give the same result in every call and thread."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 12)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2])
    classifier = KernelClassifier(
        Fastfood(n_components=256, random_state=0), loss="squared", random_state=0
    ).fit(X, y > 0)
    regressor = KernelRegressor(TensorSketch(n_components=256, random_state=0)).fit(X, y)

    def train() -> str:
        # A seed, since a fork may leave the lock of NumPy's global generator locked.
        features = Fastfood(n_components=64, length_scale=3.0, random_state=0)
        model = KernelRegressor(features, alpha=1, random_state=0)
        for begin in range(0, len(X), 150):
            model.partial_fit(X[begin : begin + 150], y[begin : begin + 150])
        return _digest(model.coef_, model.predict(X[:50]))

    return {
        "predictions of a classifier": lambda: _digest(classifier.decision_function(X)),
        "predictions of a regressor": lambda: _digest(*regressor.predict(X, return_std=True)),
        "features": lambda: _digest(classifier.feature_map_.transform(X)),
        "partial_fit": train,
    }


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


class Soak:
    """Counts of calls and of differences, shared by the threads."""

    def __init__(self, tasks: dict[str, Callable[[], str]], pause: float = 0.0) -> None:
        self.tasks = tasks
        self.pause = pause  # Seconds after every call, to leave time to other programs.
        self.expected = {name: task() for name, task in tasks.items()}
        self.calls = 0
        self.forks = 0
        self.differences: list[str] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def _work(self, number: int) -> None:
        names = list(self.tasks)
        place = number
        while not self._stop.is_set():
            name = names[place % len(names)]
            place += 1
            same = self.tasks[name]() == self.expected[name]
            with self._lock:
                self.calls += 1
                if not same:
                    self.differences.append(name)
            if self.pause:
                time.sleep(self.pause)

    def _fork(self) -> None:
        child = os.fork()
        if child == 0:
            same = all(task() == self.expected[name] for name, task in self.tasks.items())
            os._exit(0 if same else 1)
        _, status = os.waitpid(child, 0)
        self.forks += 1
        if status != 0:
            self.differences.append(f"child with status {status}")

    def run(self, seconds: float) -> list[int]:
        """Run the tasks for some time; return samples of the resident memory in bytes."""
        threads = [threading.Thread(target=self._work, args=(i,)) for i in range(N_THREADS)]
        for thread in threads:
            thread.start()
        begin, sizes = time.monotonic(), list[int]()
        while (elapsed := time.monotonic() - begin) < seconds:
            self._fork()
            if elapsed >= len(sizes) * seconds / N_SAMPLES:
                sizes.append(_resident())
            time.sleep(min(1.0, seconds / 50))
        sizes.append(_resident())
        self._stop.set()
        for thread in threads:
            thread.join()
        return sizes


def main() -> int:
    """Print calls, forks, differences and memory; 1 if a result differs or memory grows."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument(
        "--pause", type=float, default=0.0, help="seconds that a thread waits after a call"
    )
    given = parser.parse_args()
    soak = Soak(make_tasks(), given.pause)
    sizes = soak.run(60 * given.minutes)
    growth = sizes[-1] - max(sizes[: max(1, len(sizes) // 4)])
    print(
        f"{given.minutes:g} minutes, {N_THREADS} threads: {soak.calls} calls, {soak.forks} forks, "
        f"{len(soak.differences)} differences"
    )
    print("resident memory in MB:", ", ".join(f"{size / 1e6:.0f}" for size in sizes))
    for difference in soak.differences[:5]:
        print(difference)
    return int(bool(soak.differences) or growth > MAX_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
