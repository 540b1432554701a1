"""Results, times and memory beyond the data of tasks in processes of their own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

Task = Callable[[], Mapping[str, Any]]


@dataclass(frozen=True)
class Measured:
    """What a task returned, its time and the CPU time of its threads in seconds, and its memory.

    `megabytes` is the peak of the resident memory, beyond the data.
    """

    result: dict[str, Any]
    seconds: float
    cpu_seconds: float
    megabytes: float


def measure_in_process(
    prepare: Callable[..., Task], *arguments: Any, environment: Mapping[str, str] | None = None
) -> Measured:
    """Call ``prepare(*arguments)``, which loads the data, and time the task that it returns.

    For Linux. The level before the task is read when the data are there. Arguments and results
    pass as JSON.
    """
    ran = subprocess.run(
        [
            sys.executable,
            "-c",
            "from benchmarks.peak_memory import answer; answer()",
            _module_of(prepare),
            prepare.__name__,
            json.dumps(arguments),
        ],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
        cwd=Path(__file__).resolve().parents[1],
        check=False,
    )
    if ran.returncode:
        sys.exit(f"{prepare.__module__}.{prepare.__name__}{arguments} failed; its error is above.")
    return Measured(**json.loads(ran.stdout.splitlines()[-1]))


def answer() -> None:
    """Run the task of `measure_in_process` in the new process."""
    module, name, arguments = sys.argv[1:]
    task: Task = getattr(import_module(module), name)(*json.loads(arguments))
    # Loading may have peaked above the data; if the peak cannot be reset, the result is a bound.
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    before = _kilobytes("VmRSS")
    start, cpu_start = time.perf_counter(), time.process_time()
    result = task()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    megabytes = (_kilobytes("VmHWM") - before) * 1024 / 1e6
    measured = Measured(dict(result), seconds, cpu, megabytes)
    print(json.dumps(asdict(measured)))


def _module_of(function: Callable[..., Any]) -> str:
    """Return the importable name of its module, also if that is the main module."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if function.__module__ != "__main__":
        return function.__module__
    if spec is None:
        sys.exit("Run it as a module: python -m benchmarks NAME.")
    return str(spec.name)


def _kilobytes(name: str) -> int:
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith(name))
