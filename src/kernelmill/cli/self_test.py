"""Does this installation compute what it should? A few checks that take a second."""

# ruff: noqa: PLC0415 # scikit-learn and what needs it wait until the checks run
from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelmill.random import Stream
from kernelmill.runtime import available_isas, get_isa, set_isa
from kernelmill.transforms import fwht

__all__ = ["Check", "self_test"]


@dataclass(frozen=True)
class Check:
    """One check: what was found, and what to do where it failed."""

    name: str
    good: bool
    finding: str
    move: str = ""


def self_test() -> Iterator[Check]:
    """Run the checks, one after the other; one that raises has failed.

    Examples
    --------
    >>> all(check.good for check in self_test())
    True
    """
    for name, check in _CHECKS.items():
        try:
            yield Check(name, *check())
        except Exception as error:  # whatever is broken, the other checks go on
            yield Check(name, False, f"{type(error).__name__}: {error}", _REINSTALL)


_REINSTALL = (
    "reinstall: pip install --force-reinstall --no-cache-dir kernelmill, or in its source folder: "
    "make clean && make demo"
)


def _bits() -> tuple[bool, str, str]:
    """The first uniforms of seed 0, as in tests/random/golden.json."""
    expected = ["0x1.bf20999a888dfp-1", "0x1.8da9e95bc3fe2p-2", "0x1.08b1821683ef1p-1"]
    drawn = [float(value).hex() for value in Stream.from_seed(0).uniforms(3)]
    if drawn == expected:
        return True, "the same as on every machine", ""
    return False, f"{drawn[0]} instead of {expected[0]}", _REINSTALL


def _instruction_sets() -> tuple[bool, str, str]:
    """Walsh-Hadamard transforms are bit-equal on all of them."""
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
        move = f"set KERNELMILL_ISA=baseline, and report that {different[0]} differs"
        return False, f"{different[0]} differs from baseline", move
    return True, f"equal bits on {', '.join(results)}", ""


def _kernel_error() -> tuple[bool, str, str]:
    """The mean squared error of Gaussian kernel values is at most 1/D (D features: D/2 pairs).

    A value that D/2 pairs of cosines and sines estimate has variance at most 1/D for independent
    frequencies, and about that for those of Fastfood. The largest error of 28 pairs of rows exceeds
    5.2 / sqrt(D) with a probability below 28 * 2 exp(-5.2² / 2) < 1 in 10,000 (as normal errors),
    and the seed is fixed: a failure is a fault, not chance.
    """
    from kernelmill.maps import Fastfood

    n_components = 4096
    x = Stream.from_seed(2).normals((8, 50))
    features = Fastfood(n_components=n_components, length_scale=7.0, random_state=0).fit(x)
    z = features.transform(x)
    error = float(np.abs(z @ z.T - features.exact_kernel(x)).max())
    bound = 5.2 / math.sqrt(n_components)
    text = f"largest of 28 pairs {error:.4f}, bound {bound:.4f} (exceeded by chance: < 1e-4)"
    return error < bound, text, _REINSTALL


def _round_trip() -> tuple[bool, str, str]:
    """A saved model predicts what it did before."""
    from kernelmill.learners import KernelRegressor
    from kernelmill.learners.model_record import load_learner
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
    text = f"{n_bytes:,} bytes, predictions {'the same' if same else 'differ'}"
    return same, text, "check the disk and memory of this machine, then reinstall"


_CHECKS: dict[str, Callable[[], tuple[bool, str, str]]] = {
    "random bits": _bits,
    "instruction sets": _instruction_sets,
    "kernel error": _kernel_error,
    "save and load": _round_trip,
}
