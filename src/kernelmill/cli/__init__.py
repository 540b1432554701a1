"""The command line: `kernelmill fit DATA --target COLUMN` and its siblings.

It parses arguments and prints; the work is in :mod:`kernelmill.workflows`, for Python as well.
"""

from collections.abc import Sequence

from kernelmill.cli.interrupts import leaving_at_interrupts

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, default=None
        Those of the process by default.

    Examples
    --------
    >>> from kernelmill.cli import main
    >>> code = main(["--version"])  # doctest: +ELLIPSIS
    kernelmill, version ...
    >>> code
    0
    """
    with leaving_at_interrupts():
        from kernelmill.cli.program import run  # noqa: PLC0415 # imports take a moment
    return run(arguments)
