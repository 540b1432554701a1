"""Progress bars on stderr: the finished share, rows per second and remaining time."""

from __future__ import annotations

import time
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from kernelmill.cli.program.terminal import Terminal
from kernelmill.cli.render.messages import render_note
from kernelmill.errors import Message
from kernelmill.formatting import plain
from kernelmill.runtime.progress import LogProgress, percent_done

__all__ = ["ProgressBars"]

SECONDS_BETWEEN_LINES = 30.0  # where there is no terminal


class _Rate(ProgressColumn):
    """The rate, such as "12,400 rows/s"; empty until it is known."""

    def render(self, task: Task) -> Text:
        if not task.speed:
            return Text("")
        rate = plain.count(task.speed) if task.speed > 9.95 else plain.number(task.speed, 2)
        return Text(f"{rate} {task.fields['unit']}/s")


class _Done(ProgressColumn):
    """The share that is done, or the amount if the total is not known."""

    def render(self, task: Task) -> Text:
        if not task.total:
            amount = f"{plain.count(task.completed)} {task.fields['unit']}"
            return Text(amount if task.completed else "")
        return Text(f"{percent_done(task.completed, task.total):3d} %")


class ProgressBars:
    """Shows the stages of a workflow: a bar for the current one, a line for each finished one.

    Bars are drawn in terminals only; elsewhere, as in logs, there is a line every 30 seconds. Notes
    are printed on any stderr. With ``--quiet`` or ``--json`` nothing is. It implements
    :class:`kernelmill.runtime.progress.Progress`. Use it in a ``with`` statement, which restores
    the terminal.

    Parameters
    ----------
    terminal : Terminal
    opening : str, optional
        Printed when the first stage begins: the data have been found and opened by then.

    Attributes
    ----------
    shown_notes : list of str
        The notes so far, as Python renders them; results need not repeat them.

    Examples
    --------
    >>> with ProgressBars(Terminal(quiet=True)) as progress:
    ...     progress.start("Reading", total=100)
    ...     progress.advance(100)
    """

    def __init__(self, terminal: Terminal, opening: str | None = None) -> None:
        self._terminal = terminal
        self._opening = opening
        self._console: Console = terminal.err()
        self._drawn = self._console.is_terminal and terminal.shows_notes
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            _Done(),
            _Rate(),
            TimeRemainingColumn(compact=True),
            console=self._console,
            transient=True,
            disable=not self._drawn,
        )
        self.shown_notes: list[str] = []
        self._rendered: dict[str, str] = {}  # notes with options, by how Python renders them
        self._task: TaskID | None = None
        self._stage = ""
        self._total: int | None = None
        self._unit = "rows"
        self._amount = 0
        self._begin = 0.0
        self._log = LogProgress(terminal.note)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end_stage(finished=kind is None)
        self._bars.stop()

    def start(self, stage: str, total: int | None = None, unit: str = "rows") -> None:
        """End the current stage and begin another."""
        self._end_stage(finished=True)
        if self._opening is not None:
            self._terminal.note(self._opening)
            self._opening = None
        self._stage, self._total, self._unit, self._amount = stage, total, unit, 0
        self._begin = time.monotonic()
        if not self._drawn and self._terminal.shows_notes:
            self._log = LogProgress(self._terminal.note, SECONDS_BETWEEN_LINES)
            self._log.start(stage, total, unit)
        self._task = self._bars.add_task(stage, total=total, unit=unit)

    def advance(self, amount: int, status: str = "") -> None:
        """Add to the amount of work done in this stage."""
        self._amount += amount
        if self._task is not None:
            self._bars.advance(self._task, amount)
            if self._total is not None and self._amount > self._total:  # it was an estimate
                self._total = self._amount
                self._bars.update(self._task, total=self._total)
        if not self._drawn and self._terminal.shows_notes:
            self._log.advance(amount)

    def end_pass(self, summary: str) -> None:
        """Show nothing: the bar of the stage continues."""

    def note(self, message: Message | str) -> None:
        """Print a note above the bars, with the options of the command."""
        note = render_note(message, self._terminal.command)
        self.shown_notes.append(str(message))
        self._rendered[str(message)] = note
        if self._terminal.shows_notes:
            self._console.print(f"note: {note}", soft_wrap=True)

    def name_options(self, record: Any) -> Any:
        """Return a record whose notes name options of the command instead of parameters."""
        return replace(record, notes=[self._rendered.get(note, note) for note in record.notes])

    def _end_stage(self, finished: bool) -> None:
        self._log.stop()
        if self._task is None:
            return
        self._bars.remove_task(self._task)
        self._task = None
        if finished and self._drawn:
            amount = f"{plain.count(self._amount)} {self._unit}, " if self._amount else ""
            seconds = plain.duration(time.monotonic() - self._begin)
            self._console.print(f"{self._stage}: {amount}{seconds}", style="dim")
