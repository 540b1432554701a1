"""Options that several commands share: what to print, and how to read a table."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from kernelmill.cli.program.terminal import get_terminal

__all__ = [
    "Command",
    "Option",
    "drop_option",
    "general_options",
    "missing_option",
    "new_table_options",
    "report_option",
    "seed_range",
    "table_options",
    "task_option",
    "thread_range",
    "write_examples",
]

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

GENERAL = "Output"
_TABLE = "Reading tables"
MISSING = ["error", "impute"]

seed_range = click.IntRange(min=0, max=2**63 - 1)
thread_range = click.IntRange(min=1, max=1024)


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


def task_option(section: str) -> Callable[..., Any]:
    """``--task``, in this section of the help."""
    return click.option(
        "--task",
        cls=Option,
        section=section,
        type=click.Choice(["auto", "classification", "regression"]),
        default="auto",
        show_default=True,
        help="What to predict.",
    )


def missing_option(section: str) -> Callable[..., Any]:
    """``--missing``, in this section of the help."""
    return click.option(
        "--missing",
        cls=Option,
        section=section,
        type=click.Choice(MISSING),
        default="error",
        show_default=True,
        help="What a missing value does: stop, or be filled in and marked; with impute, rows "
        "without a target are left out.",
    )


def drop_option(section: str) -> Callable[..., Any]:
    """``--drop``, in this section of the help."""
    return click.option(
        "--drop",
        cls=Option,
        section=section,
        metavar="COL",
        multiple=True,
        help="A column to leave out, such as an identifier. Repeat for more.",
    )


def general_options(function: Decorated) -> Decorated:
    """Add ``--quiet``, ``--json``, ``--debug`` and ``--no-color``, before or after the command."""
    for option, attribute, value, text in (
        ("--no-color", "color", False, "No colours (so does the variable NO_COLOR)."),
        ("--debug", "debug", True, "Show the traceback of an error."),
        ("--json", "json", True, "One JSON object on stdout, for programs."),
        ("--quiet", "quiet", True, "Print errors only."),
    ):
        function = click.option(
            option,
            cls=Option,
            section=GENERAL,
            is_flag=True,
            expose_value=False,
            help=text,
            callback=functools.partial(_setting, attribute, value),
        )(function)
    return function


def _setting(
    attribute: str, value: bool, context: click.Context, _: click.Parameter, given: bool
) -> None:
    if given:
        setattr(get_terminal(context), attribute, value)


def table_options(function: Decorated) -> Decorated:
    """Add the options of tables to train on, which `function` gets as one dict `table`.

    Only those that were given are in it: what is left out is found out from the file.
    """
    return _with_table(function, [*_FILE_OPTIONS, *_KIND_OPTIONS])


def new_table_options(function: Decorated) -> Decorated:
    """Add the options of tables for a model, which knows the kinds of the columns."""
    return _with_table(function, _FILE_OPTIONS)


def _with_table(function: Decorated, options: list[Callable[..., Any]]) -> Decorated:
    @functools.wraps(function)
    def with_table(*args: Any, **settings: Any) -> Any:
        taken = {name: settings.pop(name) for name in _TABLE_SETTINGS if name in settings}
        given = {name: value for name, value in taken.items() if value not in (None, (), 0)}
        # `header=False` is a setting, though it equals 0.
        if taken["header"] is not None:
            given["header"] = taken["header"]
        if "delimiter" in given:
            given["delimiter"] = _delimiter(given["delimiter"])
        if "table_format" in given:
            given["format"] = given.pop("table_format")
        return function(*args, table=given, **settings)

    for option in reversed(options):
        with_table = option(with_table)
    return with_table  # type: ignore[return-value] # the options are passed on as one dict


_TABLE_SETTINGS = (
    *("table_format", "delimiter", "decimal", "header", "skip_rows"),
    *("categorical", "numeric"),
)
_FORMATS = ["csv", "parquet", "arrow", "npy", "npz", "idx", "svmlight"]

_FILE_OPTIONS = [
    click.option(
        "--format",
        "table_format",
        cls=Option,
        section=_TABLE,
        type=click.Choice(_FORMATS),
        help="Format of DATA, if its name does not tell.",
    ),
    click.option(
        "--delimiter",
        cls=Option,
        section=_TABLE,
        metavar="CHAR",
        help="Between values, such as ';' or tab. Found out by default.",
    ),
    click.option(
        "--decimal",
        cls=Option,
        section=_TABLE,
        type=click.Choice([",", "."]),
        help="The decimal point of numbers in text. Found out by default.",
    ),
    click.option(
        "--header/--no-header",
        cls=Option,
        section=_TABLE,
        default=None,
        help="Whether the first line has the names of the columns. Found out by default.",
    ),
    click.option(
        "--skip-rows",
        cls=Option,
        section=_TABLE,
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="Lines to leave out at the start of each file.",
    ),
]

_KIND_OPTIONS = [
    click.option(
        "--categorical",
        cls=Option,
        section=_TABLE,
        metavar="COL",
        multiple=True,
        help="A column of categories, though it looks like numbers. Repeat for more.",
    ),
    click.option(
        "--numeric",
        cls=Option,
        section=_TABLE,
        metavar="COL",
        multiple=True,
        help="A column of numbers, though it looks like text. Repeat for more.",
    ),
]


def _page(_: click.Context, __: click.Parameter, given: str | None) -> str | None:
    if given is not None and not given.lower().endswith((".html", ".htm")):
        raise click.BadParameter(
            f"the page must end in .html or .htm, got {given!r}; browsers print pages as PDF"
        )
    return given


report_option = click.option(
    "--report",
    callback=_page,
    cls=Option,
    section=GENERAL,
    metavar="FILE.html",
    help="Also write an HTML page with plots.",
)


def _delimiter(given: str) -> str:
    """The character; shells make it hard to type a tab."""
    return {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}.get(
        given.lower(), given
    )
