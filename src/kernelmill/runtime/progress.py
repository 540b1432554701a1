"""Progress of long-running work: the interface that the work reports to."""

from __future__ import annotations

from typing import Protocol

from kernelmill.errors import Message

__all__ = ["Progress", "SilentProgress"]


class Progress(Protocol):
    """Receives reports of long-running work; the command line draws bars from them."""

    def start(self, stage: str, total: int | None = None, unit: str = "rows") -> None:
        """Begin a stage such as "Reading"; `total` is the amount of work, if known."""

    def advance(self, amount: int, status: str = "") -> None:
        """Add to the amount of work done; `status` is a short text such as "loss 0.31"."""

    def end_pass(self, summary: str) -> None:
        """End one pass over the data, with a summary such as "epoch 1/4: loss 0.31"."""

    def note(self, message: Message | str) -> None:
        """Show a finding that the user should know, such as "no header: columns are numbered"."""


class SilentProgress:
    """Shows nothing."""

    def start(self, stage: str, total: int | None = None, unit: str = "rows") -> None:
        """Show nothing."""

    def advance(self, amount: int, status: str = "") -> None:
        """Show nothing."""

    def end_pass(self, summary: str) -> None:
        """Show nothing."""

    def note(self, message: Message | str) -> None:
        """Show nothing."""
