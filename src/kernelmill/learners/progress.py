"""Where a long training is: a line in the terminal, or a line for each pass elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

__all__ = ["Progress"]

_SECONDS = 0.2


class Progress:
    """Tells on stderr how far a training is, if asked to.

    In a terminal one line is written over and over; elsewhere there is a line for each pass.

    Parameters
    ----------
    verbose : int
        0 for silence.
    n_passes : int
    rows_per_pass : int, default=0
        0 where it is not known.
    listener : callable, default=None
        Called with every number of rows that are done, whatever `verbose` says.
    """

    def __init__(
        self,
        verbose: int,
        n_passes: int,
        rows_per_pass: int = 0,
        listener: Callable[[int], None] | None = None,
    ) -> None:
        self._listener = listener
        self._on = bool(verbose)
        self._in_terminal = self._on and sys.stderr.isatty()
        self._n_passes = n_passes
        self._rows_per_pass = rows_per_pass
        self._rows = 0
        self._begin = self._shown = time.monotonic()

    def rows(self, n_rows: int, number: int, loss: float) -> None:
        """Say that rows of the given pass are done, at this mean loss."""
        if self._listener is not None:
            self._listener(n_rows)
        self._rows += n_rows
        now = time.monotonic()
        if not self._in_terminal or now - self._shown < _SECONDS:
            return
        self._shown = now
        rate = self._rows / max(now - self._begin, 1e-9)
        text = f"pass {number + 1}/{self._n_passes}  loss {loss:.4g}  {rate:,.0f} rows/s"
        if self._rows_per_pass:
            left = self._n_passes * self._rows_per_pass - self._rows
            text += f"  {max(left, 0) / rate:.0f} s left"
        sys.stderr.write(f"\r{text:<78}")
        sys.stderr.flush()

    def end_of_pass(self, number: int, text: str) -> None:
        """Say how a pass ended."""
        if self._on:
            start = "\r" if self._in_terminal else ""
            seconds = time.monotonic() - self._begin
            line = f"pass {number + 1}/{self._n_passes}  {text}  {seconds:.1f} s"
            sys.stderr.write(f"{start}{line:<78}\n")
            sys.stderr.flush()
