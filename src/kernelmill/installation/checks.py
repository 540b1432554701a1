"""Versions and hardware of this installation, and self-tests of its results.

The checks take about a second. Each one imports the packages that it needs, so that a broken
package fails only one check.
"""

# ruff: noqa: PLC0415 # Checks import scikit-learn and packages that need it.
from __future__ import annotations

import math
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from kernelmill.formatting import plain
from kernelmill.random import Stream
from kernelmill.runtime import available_isas, get_isa, get_num_threads, set_isa
from kernelmill.transforms import fwht

__all__ = [
    "CheckResult",
    "check_disk",
    "check_packages",
    "describe_blas",
    "describe_core",
    "describe_memory",
    "list_versions",
    "run_self_test",
]

PACKAGES = ("kernelmill", "numpy", "scipy", "scikit-learn", "pyarrow", "matplotlib")
MIN_DISK_BYTES = 100e6  # Minimum free disk space in bytes.


@dataclass(frozen=True)
class CheckResult:
    """The result of a check, with a remedy if it failed."""

    name: str
    passed: bool
    finding: str
    remedy: str = ""


def list_versions() -> dict[str, str]:
    """Return the versions of Python and of packages; "missing" for those not installed.

    Examples
    --------
    >>> list_versions()["python"].startswith("3.")
    True
    """
    found = {"python": f"{platform.python_version()} ({sys.executable})"}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found


def describe_core() -> dict[str, str]:
    """Describe the instruction set and the threads of the C++ core, and how they were chosen.

    Examples
    --------
    >>> sorted(describe_core())
    ['instruction set', 'threads']
    """
    chosen = "KERNELMILL_ISA" if os.environ.get("KERNELMILL_ISA") else "the best for this CPU"
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


def describe_blas() -> str:
    """Describe the BLAS libraries of NumPy and SciPy, with their threads.

    Examples
    --------
    >>> isinstance(describe_blas(), str)
    True
    """
    import scipy.linalg  # noqa: F401 # Loads the BLAS of SciPy.
    from threadpoolctl import threadpool_info

    found = {
        f"{library['internal_api']} {library['version'] or ''}".strip()
        + f", {plain.count(library['num_threads'], 'thread')}"
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }
    return "; ".join(sorted(found)) or "not detected by threadpoolctl"


def describe_memory() -> dict[str, str]:
    """Describe the memory of the machine, the memory limit of the container, and the disk.

    Examples
    --------
    >>> "memory" in describe_memory()
    True
    """
    page = os.sysconf("SC_PAGE_SIZE")
    found = {"memory": plain.size(os.sysconf("SC_PHYS_PAGES") * page)}
    information = Path("/proc/meminfo")
    if information.exists():
        lines = dict(line.split(":", 1) for line in information.read_text().splitlines())
        if "MemAvailable" in lines:
            free = int(lines["MemAvailable"].split()[0]) * 1024
            found["memory"] += f", {plain.size(free)} free"
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (text := limit.read_text().strip()).isdigit():
        found["memory"] += f", limit of this container {plain.size(int(text))}"
    usage = shutil.disk_usage(Path.cwd())
    found["disk here"] = f"{plain.size(usage.free)} free of {plain.size(usage.total)}"
    return found


def check_packages(versions: dict[str, str]) -> CheckResult:
    """Check that no package is missing.

    Examples
    --------
    >>> check_packages({"numpy": "2.0", "pyarrow": "missing"}).remedy
    'pip install pyarrow'
    """
    missing = [name for name, number in versions.items() if number == "missing"]
    if missing:
        remedy = f"pip install {' '.join(missing)}"
        return CheckResult("packages", False, f"missing: {', '.join(missing)}", remedy)
    return CheckResult("packages", True, "all installed")


def check_disk() -> CheckResult:
    """Check the free disk space of the current folder.

    Examples
    --------
    >>> check_disk().name
    'disk'
    """
    free = shutil.disk_usage(Path.cwd()).free
    remedy = "free some disk space, or work in a folder on another disk"
    return CheckResult("disk", free >= MIN_DISK_BYTES, f"{plain.size(free)} free here", remedy)


def run_self_test() -> Iterator[CheckResult]:
    """Run the checks; one that raises an exception has failed.

    Examples
    --------
    >>> all(check.passed for check in run_self_test())
    True
    """
    for name, check in _CHECKS.items():
        try:
            yield CheckResult(name, *check())
        except Exception as error:  # The other checks still run.
            yield CheckResult(name, False, f"{type(error).__name__}: {error}", _REINSTALL)


_REINSTALL = (
    "reinstall: pip install --force-reinstall --no-cache-dir kernelmill, or in a source folder: "
    "make clean && make demo"
)


def _check_bits() -> tuple[bool, str, str]:
    """Check that the first uniforms of seed 0 are those of tests/random/golden.json."""
    expected = ["0x1.bf20999a888dfp-1", "0x1.8da9e95bc3fe2p-2", "0x1.08b1821683ef1p-1"]
    drawn = [float(value).hex() for value in Stream.from_seed(0).uniforms(3)]
    if drawn == expected:
        return True, "the same as on other machines", ""
    return False, f"{drawn[0]} instead of {expected[0]}", _REINSTALL


def _check_instruction_sets() -> tuple[bool, str, str]:
    """Check that Walsh-Hadamard transforms are bit-identical on all instruction sets."""
    x = Stream.from_seed(1).normals(4096)
    before = get_isa()
    results = {}
    try:
        for name in available_isas():
            set_isa(name)
            results[name] = fwht(x)
    finally:
        set_isa(before)
    different = [name for name in results if not np.array_equal(results[name], results["baseline"])]
    if different:
        remedy = f"set KERNELMILL_ISA=baseline, and report that {different[0]} differs"
        return False, f"{different[0]} differs from baseline", remedy
    return True, f"bit-identical on {', '.join(results)}", ""


def _check_kernel_error() -> tuple[bool, str, str]:
    """Check that errors of Gaussian kernel values are within 5.2 standard deviations.

    Estimates from D features have variance at most 1/D for independent frequencies, and about that
    for Fastfood. The largest error of 28 pairs of rows exceeds 5.2 / sqrt(D) with a probability
    below 28 * 2 exp(-5.2² / 2) < 1 in 10,000 (as normal errors), and the seed is fixed: a failure
    is a defect, not chance.
    """
    from kernelmill.maps import Fastfood

    n_components = 4096
    x = Stream.from_seed(2).normals((8, 50))
    features = Fastfood(n_components=n_components, length_scale=7.0, random_state=0).fit(x)
    z = features.transform(x)
    error = float(np.abs(z @ z.T - features.exact_kernel(x)).max())
    bound = 5.2 / math.sqrt(n_components)
    text = (
        f"largest error of 28 pairs {error:.4f}, bound {bound:.4f} (exceeded with "
        "probability < 1e-4)"
    )
    return error < bound, text, _REINSTALL


def _check_round_trip() -> tuple[bool, str, str]:
    """Check that a saved and loaded model makes the same predictions."""
    from kernelmill.learners import KernelRegressor
    from kernelmill.learners.loading import load_learner
    from kernelmill.maps import Fastfood

    x = Stream.from_seed(3).normals((60, 4))
    y = np.sin(x[:, 0]) + x[:, 1]
    features = Fastfood(n_components=64, length_scale=2.0, random_state=0)
    model = KernelRegressor(features, alpha=1e-3).fit(x, y)
    with tempfile.TemporaryDirectory(prefix="kernelmill-") as folder:
        path = Path(folder) / "model.kmill"
        model.save(path, weights="float64")
        loaded = load_learner(path)
        n_bytes = path.stat().st_size
    same = np.array_equal(loaded.predict(x), model.predict(x))
    text = f"{plain.count(n_bytes, 'byte')}, predictions {'are identical' if same else 'differ'}"
    return same, text, "check the disk and memory of this machine, then reinstall"


_CHECKS: dict[str, Callable[[], tuple[bool, str, str]]] = {
    "random bits": _check_bits,
    "instruction sets": _check_instruction_sets,
    "kernel error": _check_kernel_error,
    "save and load": _check_round_trip,
}
