"""Where words go: results to stdout, everything else to stderr, or one JSON object for machines."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import IO, Any

import click
from rich.console import Console, RenderableType
from rich.segment import Segment, Segments

__all__ = ["Terminal", "terminal_of"]


class _Console(Console):
    """Text is printed as it is: names of columns may look like markup, paths like emoji."""

    def __init__(self, file: IO[str], color: bool) -> None:
        super().__init__(
            file=file, markup=False, emoji=False, highlight=False, no_color=None if color else True
        )

    def on_broken_pipe(self) -> None:
        # Rich would exit with code 1 here; the program decides that, in one place.
        raise BrokenPipeError


@dataclass
class Terminal:
    """What the user wants to see, and where it goes.

    Attributes
    ----------
    quiet : bool
        Nothing but errors.
    json : bool
        One JSON object on stdout instead of tables, and nothing but errors on stderr.
    debug : bool
        Errors come with their traceback.
    color : bool
        False for none; with True it is still left out where the output is not a terminal, or
        ``NO_COLOR`` is set.

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

    @property
    def talks(self) -> bool:
        """Whether notes and bars are wanted on stderr."""
        return not (self.quiet or self.json)

    def out(self) -> Console:
        """A console on stdout, as it is now."""
        return _Console(sys.stdout, self.color)

    def err(self) -> Console:
        """A console on stderr, as it is now."""
        return _Console(sys.stderr, self.color)

    def give(self, record: dict[str, Any], *shown: RenderableType) -> None:
        """Print the result of a command: `record` for machines, `shown` for people.

        Strings are not wrapped, so that commands and paths can be copied from the terminal.
        """
        if self.json:
            sys.stdout.write(json.dumps(record, indent=2, allow_nan=False) + "\n")
        elif not self.quiet:
            console = self.out()
            for each in shown:
                if isinstance(each, str):
                    console.print(each, soft_wrap=True)
                else:
                    console.print(_without_trailing_blanks(console, each), end="")

    def show(self, *shown: RenderableType) -> None:
        """Print a part of the result for people; machines wait for `give`."""
        if not self.json:
            self.give({}, *shown)

    def note(self, message: str) -> None:
        """Say something on stderr that is not a result."""
        if self.talks:
            self.err().print(message, soft_wrap=True)


def _without_trailing_blanks(console: Console, shown: RenderableType) -> Segments:
    """Tables fill their lines with blanks, which get in the way of copying and comparing."""
    parts: list[Segment] = []
    for line in console.render_lines(shown, pad=False):
        while line and not line[-1].text.strip():
            line.pop()
        if line:
            line[-1] = Segment(line[-1].text.rstrip(), line[-1].style)
        parts += [*line, Segment.line()]
    return Segments(parts)


def terminal_of(context: click.Context) -> Terminal:
    """The terminal of a run of the program, made by whoever asks first."""
    return context.find_root().ensure_object(Terminal)
