"""Output streams: results go to stdout as text or JSON, everything else to stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment, Segments

from kernelmill.errors import KernelmillError, escape_controls

__all__ = [
    "StdoutError",
    "Terminal",
    "discard_stdout",
    "get_terminal",
    "prepare_streams",
    "stdout_errors",
]

NARROWEST = 80  # characters that tables may take


class _Console(Console):
    """Prints text unchanged: column names may look like markup, paths like emoji."""

    def __init__(self, file: IO[str], color: bool) -> None:
        super().__init__(
            file=file, markup=False, emoji=False, highlight=False, no_color=None if color else True
        )

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        # Styles and cursor movements are not part of the text: all control characters come from
        # data: column names, labels, paths, model files.
        for part in super().render(renderable, options):
            yield part if part.control else part._replace(text=escape_controls(part.text))

    def on_broken_pipe(self) -> None:
        # Rich would exit with code 1 here; `run` decides the exit code.
        raise BrokenPipeError


@dataclass
class Terminal:
    """The output settings of the program, and the streams that it prints to.

    Attributes
    ----------
    quiet : bool
        Print errors only.
    json : bool
        Print one JSON object on stdout instead of tables, and errors only on stderr.
    debug : bool
        Print errors with their traceback.
    color : bool
        Whether colours may be used. They are not if the output is not a terminal or ``NO_COLOR``
        is set.
    command : click.Command or None
        The command that runs; messages name its options.

    Examples
    --------
    >>> Terminal(json=True).give({"rows": 3})
    {
      "rows": 3
    }
    >>> Terminal().give({"rows": 3}, "3 rows")
    3 rows
    >>> Terminal(quiet=True).give({"rows": 3}, "3 rows")
    """

    quiet: bool = False
    json: bool = False
    debug: bool = False
    color: bool = True
    command: click.Command | None = None

    @property
    def shows_notes(self) -> bool:
        """Whether notes and progress bars are wanted on stderr."""
        return not (self.quiet or self.json)

    def out(self) -> Console:
        """Return a console on the current stdout."""
        return _Console(sys.stdout, self.color)

    def err(self) -> Console:
        """Return a console on the current stderr."""
        return _Console(sys.stderr, self.color)

    def give(self, record: dict[str, Any], *shown: RenderableType) -> None:
        """Print the result of a command: `record` as JSON, or `shown` as text.

        Strings are not wrapped, so that commands and paths can be copied from the terminal.
        """
        with stdout_errors():
            if self.json:
                sys.stdout.write(json.dumps(record, indent=2, allow_nan=False) + "\n")
                sys.stdout.flush()
            elif not self.quiet:
                console = self.out()
                for each in shown:
                    if isinstance(each, str):
                        console.print(each, soft_wrap=True)
                    else:
                        console.print(_strip_trailing_blanks(console, each), end="")

    def show(self, *shown: RenderableType) -> None:
        """Print a part of the result as text; with `json` only the final `give` prints."""
        if not self.json:
            self.give({}, *shown)

    def note(self, message: str) -> None:
        """Print a line on stderr that is not a result."""
        if self.shows_notes:
            self.err().print(message, soft_wrap=True)


@contextmanager
def stdout_errors() -> Iterator[None]:
    """Convert an error of the operating system, such as a full disk, to one that names stdout."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_stdout()
        reason = (error.strerror or str(error)).lower()
        raise StdoutError(
            f"the result cannot be written to stdout: {reason}",
            "redirect it to another file",
        ) from None


class StdoutError(KernelmillError):
    """Results cannot be printed."""


def _strip_trailing_blanks(console: Console, shown: RenderableType) -> Segments:
    """Remove trailing blanks from the lines of tables, which make copying and comparing harder."""
    parts: list[Segment] = []
    # Narrower terminals wrap lines themselves; truncated cells would be useless.
    options = console.options.update(width=max(console.width, NARROWEST))
    for line in console.render_lines(shown, options, pad=False):
        while line and not line[-1].text.strip():
            line.pop()
        if line:
            line[-1] = Segment(line[-1].text.rstrip(), line[-1].style)
        parts += [*line, Segment.line()]
    return Segments(parts)


def get_terminal(context: click.Context) -> Terminal:
    """Return the terminal of this run of the program; the first call creates it."""
    return context.find_root().ensure_object(Terminal)


def prepare_streams(quiet: bool) -> bool:
    """Open closed streams on the null device; return False if stdout is closed but needed."""
    # Not `with`: they are the streams of the process until it ends. Opened in this order, they take
    # the descriptors 1 and 2, which then no data file can get.
    is_usable = quiet or sys.stdout is not None
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    if not is_usable:
        sys.stderr.write("error: stdout is closed, so results cannot be printed\n")
        sys.stderr.write("try: remove >&-, or add --quiet\n")
    return is_usable


def discard_stdout() -> None:
    """Redirect stdout to the null device: its reader has ended, and the last flush would fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):  # stdout has no file descriptor, as in tests
        pass
    finally:
        os.close(nowhere)
