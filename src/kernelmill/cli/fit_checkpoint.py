"""The checkpoint of `kernelmill fit`, beside the model: when it is used, kept and removed."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

__all__ = ["FitCheckpoint"]


class FitCheckpoint:
    """MODEL.checkpoint, and MODEL.checkpoint.old for one that a new training did not want.

    Hours of work hang on a forgotten ``--resume``: an earlier checkpoint is moved aside instead of
    removed, until the new training has come to its end.

    Parameters
    ----------
    model : path
    """

    def __init__(self, model: Path) -> None:
        self.path = model.with_name(f"{model.name}.checkpoint")
        self.old = model.with_name(f"{model.name}.checkpoint.old")
        self._before = self._state()

    def prepare(self, resume: bool) -> str | None:
        """Move an earlier checkpoint aside unless it is wanted; what the user should know."""
        for path in (self.path, self.old):
            if path.is_dir():
                raise click.ClickException(
                    f"training writes the file {path}, got a folder of that name; rename it, or "
                    "choose another model file (--out)"
                )
        if resume:
            if self.path.exists():
                return f"going on from {self.path}"
            return f"there is no checkpoint {self.path}: starting from the beginning"
        if not self.path.exists():
            return None
        self.path.replace(self.old)
        self._before = None
        return (
            f"starting anew: the checkpoint of an earlier fit is now {self.old}, until this one is "
            f"done (to go on from it: Ctrl-C, mv {self.old} {self.path}, and --resume)"
        )

    def after_interrupt(self) -> str:
        """What was kept."""
        if self.path.exists():
            return f"interrupted: no model was written, {self._kept()}"
        self.after_failure()
        return "interrupted before the first checkpoint: nothing was written"

    def after_failure(self) -> str | None:
        """Give an earlier checkpoint its name back if this training wrote none; what was kept."""
        if self.old.exists() and not self.path.exists():
            self.old.replace(self.path)
            return None
        # One that was not written by this training may be what it failed at.
        return self._kept() if self._state() not in (None, self._before) else None

    def _kept(self) -> str:
        return f"checkpoint kept in {self.path}; run again with --resume"

    def _state(self) -> tuple[int, int] | None:
        """Differs if the file was written."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino

    def remove(self) -> None:
        """The model is written: nothing to go on from."""
        for path in (self.path, self.old):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
