"""Numbers in the terminal; see :mod:`kernelmill.formatting`."""

from __future__ import annotations

from kernelmill.formatting import plain

__all__ = ["counted", "duration", "number", "percent", "significant", "size"]

counted = plain.count
duration = plain.duration
number = plain.count
percent = plain.percent
significant = plain.number
size = plain.size
