"""How long work tells how far it is: whoever wants to show it passes an object of this kind."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Progress", "SilentProgress"]


class Progress(Protocol):
    """Told what is being done; the command line draws bars from it."""

    def start(self, stage: str, total: int | None = None, unit: str = "rows") -> None:
        """A stage begins, such as "Reading"; `total` is how much there is, where known."""

    def advance(self, amount: int) -> None:
        """So much more of the stage is done."""

    def say(self, message: str) -> None:
        """A finding that the user should see, such as "no header: columns are numbered"."""


class SilentProgress:
    """Shows nothing."""

    def start(self, stage: str, total: int | None = None, unit: str = "rows") -> None:
        """Show nothing."""

    def advance(self, amount: int) -> None:
        """Show nothing."""

    def say(self, message: str) -> None:
        """Show nothing."""
