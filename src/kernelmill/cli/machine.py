"""What this machine has: versions, threads, memory, disk."""

# ruff: noqa: PLC0415 # threadpoolctl's libraries are there once scikit-learn is
from __future__ import annotations

import os
import platform
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kernelmill.cli.figures import counted, size
from kernelmill.runtime import available_isas, get_isa, get_num_threads

__all__ = ["blas_libraries", "core", "memory", "versions"]

PACKAGES = ("kernelmill", "numpy", "scipy", "scikit-learn", "pyarrow", "matplotlib")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that count; "missing" for those that are not there.

    Examples
    --------
    >>> versions()["python"].startswith("3.")
    True
    """
    found = {"python": f"{platform.python_version()} ({sys.executable})"}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found


def core() -> dict[str, str]:
    """The instruction set and the threads of the native core, and why these.

    Examples
    --------
    >>> sorted(core())
    ['instruction set', 'threads']
    """
    chosen = "KERNELMILL_ISA" if os.environ.get("KERNELMILL_ISA") else "the best of this CPU"
    n_threads = get_num_threads()
    allowed = len(os.sched_getaffinity(0))
    if os.environ.get("OMP_NUM_THREADS", "") == str(n_threads) and n_threads != allowed:
        why = f"OMP_NUM_THREADS; the process may use {allowed} CPUs"
    else:
        why = f"the CPUs this process may use; the machine has {os.cpu_count()}"
    return {
        "instruction set": f"{get_isa()} ({chosen}; available: {', '.join(available_isas())})",
        "threads": f"{n_threads} ({why})",
    }


def blas_libraries() -> str:
    """The BLAS that numpy and scipy brought, with its threads.

    Examples
    --------
    >>> isinstance(blas_libraries(), str)
    True
    """
    import scipy.linalg  # noqa: F401 # loads its BLAS
    from threadpoolctl import threadpool_info

    found = {
        f"{library['internal_api']} {library['version'] or ''}".strip()
        + f", {counted(library['num_threads'], 'thread')}"
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }
    return "; ".join(sorted(found)) or "none that threadpoolctl knows"


def memory() -> dict[str, str]:
    """Memory of the machine, what is free of it, and the limit of this process if it is lower.

    Examples
    --------
    >>> "memory" in memory()
    True
    """
    page = os.sysconf("SC_PAGE_SIZE")
    found = {"memory": size(os.sysconf("SC_PHYS_PAGES") * page)}
    information = Path("/proc/meminfo")
    if information.exists():
        lines = dict(line.split(":", 1) for line in information.read_text().splitlines())
        if "MemAvailable" in lines:
            free = int(lines["MemAvailable"].split()[0]) * 1024
            found["memory"] += f", {size(free)} free"
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (text := limit.read_text().strip()).isdigit():
        found["memory"] += f", limit of this container {size(int(text))}"
    usage = shutil.disk_usage(Path.cwd())
    found["disk here"] = f"{size(usage.free)} free of {size(usage.total)}"
    return found
