"""The number of threads that native code uses, also controlled by threadpoolctl."""

import operator

from threadpoolctl import LibController, register

from kernelmill import _native


def get_num_threads() -> int:
    """Return the number of threads that calls use when they are not given ``n_threads``.

    The default is the number of CPUs that the process may run on, or ``OMP_NUM_THREADS`` if that
    is smaller.

    Examples
    --------
    >>> import kernelmill
    >>> kernelmill.get_num_threads() >= 1
    True
    """
    return _native.get_num_threads()


def set_num_threads(count: int) -> None:
    """Set the number of threads for calls that are not given ``n_threads``.

    Results never depend on it. ``threadpoolctl.threadpool_limits`` sets the same number within
    a block.

    Parameters
    ----------
    count : int
        At least 1. Larger numbers are reduced to four times the number of CPUs, or to 16.

    Examples
    --------
    >>> import kernelmill
    >>> before = kernelmill.get_num_threads()
    >>> kernelmill.set_num_threads(1)
    >>> kernelmill.get_num_threads()
    1
    >>> kernelmill.set_num_threads(before)
    """
    _native.set_num_threads(_positive(count, "count"))


def resolve_threads(n_threads: int | None) -> int:
    """Return the argument ``n_threads`` as native code takes it: 0 stands for the default."""
    return 0 if n_threads is None else _positive(n_threads, "n_threads")


def _positive(value: int, name: str) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a positive integer, got {value!r}.") from None
    if count < 1:
        default = "; omit it to use the default, all CPUs" if name == "n_threads" else ""
        raise ValueError(f"{name} must be a positive integer, got {count}{default}.")
    return min(count, 2**31 - 1)


class _ThreadpoolctlController(LibController):  # type: ignore[misc] # threadpoolctl is untyped
    """Lets threadpoolctl see and limit the pool through symbols of the extension module."""

    user_api = "kernelmill"
    internal_api = "kernelmill"
    filename_prefixes = ("_native",)
    check_symbols = ("kernelmill_get_num_threads", "kernelmill_set_num_threads")

    def get_num_threads(self) -> int:
        return int(self.dynlib.kernelmill_get_num_threads())

    def set_num_threads(self, num_threads: int) -> None:
        self.dynlib.kernelmill_set_num_threads(num_threads)

    def get_version(self) -> str | None:
        return None


register(_ThreadpoolctlController)
