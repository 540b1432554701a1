"""The command line: `kernelmill fit DATA --target COLUMN` and its siblings.

It parses arguments and prints; the work is in :mod:`kernelmill.workflows`, for Python as well.
"""

from kernelmill.cli.program import main

__all__ = ["main"]
