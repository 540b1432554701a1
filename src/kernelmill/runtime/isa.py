"""The instruction set that the native kernels use."""

import os

from kernelmill import _native

ENVIRONMENT_VARIABLE = "KERNELMILL_ISA"


def available_isas() -> list[str]:
    """Return the instruction sets of this build that this CPU supports, weakest first.

    Returns
    -------
    list of str
        A subset of ``["baseline", "avx2", "avx512"]``.

    Examples
    --------
    >>> import kernelmill
    >>> "baseline" in kernelmill.runtime.available_isas()
    True
    """
    return _native.available_isas()


def get_isa() -> str:
    """Return the instruction set in use, by default the strongest available.

    Examples
    --------
    >>> import kernelmill
    >>> kernelmill.runtime.get_isa() in kernelmill.runtime.available_isas()
    True
    """
    return _native.get_isa()


def set_isa(name: str) -> None:
    """Set the instruction set of all threads of the process.

    The environment variable ``KERNELMILL_ISA`` sets it when kernelmill is imported. Random
    coefficients and Walsh-Hadamard transforms are bit-identical on all instruction sets; sines,
    cosines and convolutions agree to rounding.

    Parameters
    ----------
    name : str
        One of :func:`available_isas`, in upper or lower case.

    Raises
    ------
    ValueError
        If the name is unknown or the CPU does not support the instruction set.

    Examples
    --------
    >>> import kernelmill
    >>> before = kernelmill.runtime.get_isa()
    >>> kernelmill.runtime.set_isa("baseline")
    >>> kernelmill.runtime.set_isa(before)
    """
    _native.set_isa(_check_name(name, "instruction set"))


def apply_environment() -> None:
    """Use the instruction set of ``KERNELMILL_ISA`` if the variable is set."""
    name = os.environ.get(ENVIRONMENT_VARIABLE, "")
    if name:
        _native.set_isa(_check_name(name, f"value of {ENVIRONMENT_VARIABLE}"))


def _check_name(name: str, what: str) -> str:
    available = _native.available_isas()
    if isinstance(name, str) and name.lower() in available:
        return name.lower()
    built = isinstance(name, str) and name.lower() in _native.built_isas()
    reason = "is not supported by this CPU" if built else "is unknown"
    raise ValueError(f"The {what} {name!r} {reason}; choose one of: {', '.join(available)}.")
