"""The command line: `kernelmill fit DATA --target COLUMN` and the other commands.

It parses arguments and prints results. The work is done in :mod:`kernelmill.workflows`, which
Python code can call as well.

Contents
--------
main
    Run the program.
commands
    One module for each command.
program
    The command group, shared options, errors and exit codes, files, signals, output streams.
render
    Tables, JSON, messages and progress bars.
"""

from collections.abc import Sequence

from kernelmill.cli.program.signals import exit_on_interrupt

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
    with exit_on_interrupt():
        from kernelmill.cli.program.group import run  # noqa: PLC0415 # imports take time
    return run(arguments)
