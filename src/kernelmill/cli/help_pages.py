"""Help of commands: examples first, options in sections, 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

__all__ = ["Command", "Option"]

GENERAL = "Output"


class Option(click.Option):
    """An option that knows under which heading of the help it belongs."""

    def __init__(self, *args: Any, section: str = "Options", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.section = section


class Command(click.Command):
    """A command whose help has examples, and its options under headings.

    Parameters
    ----------
    examples : sequence of (str, str)
        Command lines, and what they do.
    """

    def __init__(
        self, *args: Any, examples: Sequence[tuple[str, str]] = (), **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self.examples = tuple(examples)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples and the options, the general ones last."""
        write_examples(self.examples, formatter)
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                section = getattr(parameter, "section", GENERAL)
                sections.setdefault(section, []).append(record)
        for name in sorted(sections, key=lambda name: name == GENERAL):
            with formatter.section(name):
                formatter.write_dl(sections[name], col_max=24)


def write_examples(
    examples: Sequence[tuple[str, str]], formatter: click.HelpFormatter, title: str = "Examples"
) -> None:
    """Write command lines, each under what it does."""
    if not examples:
        return
    with formatter.section(title):
        for line, purpose in examples:
            indent = " " * formatter.current_indent
            formatter.write(f"{indent}# {purpose}\n{indent}{line}\n")
