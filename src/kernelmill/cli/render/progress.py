"""Bars on stderr for work that takes long: how far it is, rows a second, time left."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

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

from kernelmill.cli.figures import duration, number, significant
from kernelmill.cli.program.terminal import Terminal
from kernelmill.cli.render.option_words import in_words_of_options
from kernelmill.errors import Message

__all__ = ["ProgressBars"]


class _Rate(ProgressColumn):
    """Such as "12,400 rows/s"; empty until there is a rate."""

    def render(self, task: Task) -> Text:
        if not task.speed:
            return Text("")
        rate = number(task.speed) if task.speed > 9.95 else significant(task.speed, 2)
        return Text(f"{rate} {task.fields['unit']}/s")


class _Done(ProgressColumn):
    """The share that is done, or the amount where the whole is not known."""

    def render(self, task: Task) -> Text:
        if task.total is None:
            return Text(f"{number(task.completed)} {task.fields['unit']}")
        return Text(f"{task.percentage:3.0f} %")


class ProgressBars:
    """Shows the stages of a workflow: a bar for the one that runs, a line for each that is done.

    Bars are drawn in terminals only. Findings are said on any stderr, and nothing with ``--quiet``
    or ``--json``.
    It is what :class:`kernelmill.runtime.progress.Progress` describes; use it in a ``with``
    statement, which leaves the terminal as it was.

    Parameters
    ----------
    terminal : Terminal
    opening : str, optional
        Said when the first stage begins: by then the data were found and opened.

    Attributes
    ----------
    said : list of str
        The findings so far.

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
        self.said: list[str] = []  # not to be repeated with the results
        self._task: TaskID | None = None
        self._stage = ""
        self._unit = "rows"
        self._amount = 0
        self._begin = 0.0

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
        """A stage begins, and the one before it ends."""
        self._end_stage(finished=True)
        if self._opening is not None:
            self._terminal.note(self._opening)
            self._opening = None
        self._stage, self._unit, self._amount = stage, unit, 0
        self._begin = time.monotonic()
        self._task = self._bars.add_task(stage, total=total, unit=unit)

    def advance(self, amount: int, status: str = "") -> None:
        """So much more of the stage is done."""
        self._amount += amount
        if self._task is not None:
            self._bars.advance(self._task, amount)

    def end_pass(self, summary: str) -> None:
        """Show nothing: the bar of the stage goes on."""

    def note(self, message: Message | str) -> None:
        """Show a finding above the bars, in the words of the command line."""
        self.said.append(str(message))
        if self._terminal.shows_notes:
            self._console.print(f"note: {in_words_of_options(str(message))}", soft_wrap=True)

    def _end_stage(self, finished: bool) -> None:
        if self._task is None:
            return
        self._bars.remove_task(self._task)
        self._task = None
        if finished and self._drawn:
            amount = f"{number(self._amount)} {self._unit}, " if self._amount else ""
            seconds = duration(time.monotonic() - self._begin)
            self._console.print(f"{self._stage}: {amount}{seconds}", style="dim")
