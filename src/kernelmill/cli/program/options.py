"""Click commands and options: help with examples and sections, and options that commands share.

The Python name of a click parameter is the name of the library's parameter (``--seed`` is
``random_state``), by which messages of the library find the option.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from kernelmill.cli.program.errors import UsageError
from kernelmill.cli.program.files import InputPath, OutputPath, check_files
from kernelmill.cli.program.terminal import get_terminal
from kernelmill.encoding import MISSING, TASKS
from kernelmill.encoding.monotone import TRANSFORMS
from kernelmill.io.sources import FORMATS
from kernelmill.maps.base import MAX_MEMORY

__all__ = [
    "Command",
    "Option",
    "cluster_option",
    "data_argument",
    "drop_option",
    "general_options",
    "groups_option",
    "holdout_last_option",
    "max_memory_option",
    "missing_option",
    "model_argument",
    "new_table_options",
    "report_option",
    "seed_option",
    "table_options",
    "task_option",
    "threads_option",
    "transform_option",
    "write_examples",
]

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

GENERAL = "Output"
_TABLE = "Reading tables"


class Option(click.Option):
    """An option that is listed in a section of the help."""

    def __init__(self, *args: Any, section: str = "Options", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.section = section


class Command(click.Command):
    """A command whose help has examples, and its options in sections.

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

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; from here on, messages are rendered with this command's options.

        Options of tables that were given become one parameter, the dict `table`.
        """
        get_terminal(ctx).command = self
        rest = super().parse_args(ctx, args)
        taken = {name: ctx.params.pop(name) for name in _TABLE_SETTINGS if name in ctx.params}
        if taken:
            # Not `value not in (None, (), 0)`: `header=False` is a setting, though it equals 0.
            ctx.params["table"] = {
                name: value
                for name, value in taken.items()
                if value is False or value not in (None, (), 0)
            }
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, after a check of all files that it reads and writes."""
        check_files(self.params, ctx.params)
        return super().invoke(ctx)

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
    """Write command lines, each under a comment that explains it."""
    if not examples:
        return
    with formatter.section(title):
        for line, purpose in examples:
            indent = " " * formatter.current_indent
            formatter.write(f"{indent}# {purpose}\n{indent}{line}\n")


class _Delimiter(click.ParamType):  # type: ignore[type-arg] # generic in new versions only
    """A character; those that are hard to type in a shell have names."""

    name = "char"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        names = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}
        return names.get(value.lower(), value)

    def spell(self, value: str) -> str:
        """Return the name to type for the character, if it is invisible."""
        return {"\t": "tab", " ": "space"}.get(value, value)


class _Size(click.ParamType):  # type: ignore[type-arg] # generic in new versions only
    """A number of bytes, or of kB, MB, GB or TB, with powers of 1024."""

    name = "size"
    units = "KMGT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(
            r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?([KMGT]?)I?B?", value.strip().upper()
        )
        size = 0
        if found is not None:
            power = 1 + self.units.index(found[2]) if found[2] else 0
            size = int(float(found[1]) * 1024**power)
        if size < 1:
            self.fail(f"must be a size such as 16G or 500M, got {value!r}", param, ctx)
        return size

    def spell(self, value: int) -> str:
        """Return the size in gigabytes, rounded up."""
        return f"{-(-value // 2**30)}G"


def max_memory_option(section: str) -> Callable[..., Any]:
    """Return the option ``--max-memory``, in this section of the help."""
    return click.option(
        "--max-memory",
        cls=Option,
        section=section,
        type=_Size(),
        default=_Size().spell(MAX_MEMORY),
        show_default=True,
        metavar="SIZE",
        help="Memory limit for MODEL's map, since a small file can request any amount. A value "
        "above the default also removes the limit on the time per row.",
    )


def general_options(function: Decorated) -> Decorated:
    """Add ``--quiet``, ``--json``, ``--debug`` and ``--no-color``, before or after the command."""
    for option, attribute, value, text in (
        (
            "--no-color",
            "color",
            False,
            "Print without color, like the environment variable NO_COLOR.",
        ),
        ("--debug", "debug", True, "Show the traceback of an error."),
        ("--json", "json", True, "Print one JSON object on stdout, for programs."),
        ("--quiet", "quiet", True, "Print errors only."),
    ):
        function = click.option(
            option,
            cls=Option,
            section=GENERAL,
            is_flag=True,
            expose_value=False,
            help=text,
            callback=functools.partial(_set_output, attribute, value),
        )(function)
    return function


def _set_output(
    attribute: str, value: bool, context: click.Context, _: click.Parameter, given: bool
) -> None:
    if given:
        setattr(get_terminal(context), attribute, value)


def _take_source(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> str | list[str]:
    return list(given) if len(given) > 1 else given[0]


data_argument = click.argument(
    "source",
    metavar="DATA...",
    nargs=-1,
    required=True,
    type=InputPath(),
    callback=_take_source,
)

model_argument = click.argument("model", type=InputPath())


def task_option(section: str) -> Callable[..., Any]:
    """Return the option ``--task``, in this section of the help."""
    return click.option(
        "--task",
        cls=Option,
        section=section,
        type=click.Choice(TASKS),
        default="auto",
        show_default=True,
        help="What to predict: classes or numbers.",
    )


def missing_option(section: str) -> Callable[..., Any]:
    """Return the option ``--missing``, in this section of the help."""
    return click.option(
        "--missing",
        cls=Option,
        section=section,
        type=click.Choice(MISSING),
        default="error",
        show_default=True,
        help="How to handle missing values: stop with an error, or impute them and add an "
        "indicator column. impute also leaves out rows without a target.",
    )


def transform_option(section: str) -> Callable[..., Any]:
    """Return the option ``--transform``, in this section of the help."""
    return click.option(
        "--transform",
        cls=Option,
        section=section,
        type=click.Choice(TRANSFORMS),
        default="auto",
        show_default=True,
        help="Which numeric columns to replace by the normal scores of their ranks: skewed and "
        "heavy-tailed ones (auto), none, or all (rank). none also one-hot encodes ordered "
        "categories (10-19, 65+).",
    )


def drop_option(section: str) -> Callable[..., Any]:
    """Return the option ``--drop``, in this section of the help."""
    return click.option(
        "--drop",
        cls=Option,
        section=section,
        metavar="COL",
        multiple=True,
        help="Column to leave out, such as an identifier. May be repeated.",
    )


def day_first_option(section: str) -> Callable[..., Any]:
    """Return the options ``--day-first`` and ``--month-first``, in this section of the help."""
    return click.option(
        "--day-first/--month-first",
        cls=Option,
        section=section,
        default=None,
        help="Order of day and month in dates such as 01/02/2023, if it is ambiguous in a column.",
    )


def groups_option(section: str) -> Callable[..., Any]:
    """Return the option ``--group``, in this section of the help."""
    return click.option(
        "--group",
        "groups",
        cls=Option,
        section=section,
        metavar="COL",
        help="Column of groups, such as patients, which is not an input. Rows of a group stay "
        "together in held-out rows, folds and tuning, so the error is that of new groups.",
    )


def holdout_last_option(section: str) -> Callable[..., Any]:
    """Return the option ``--holdout-last``, in this section of the help."""
    return click.option(
        "--holdout-last",
        cls=Option,
        section=section,
        metavar="COL",
        help="Hold out the rows with the latest dates or largest numbers in this column instead "
        "of random rows; tuning and folds are validated in order of time, too.",
    )


def seed_option(section: str) -> Callable[..., Any]:
    """Return the option ``--seed``, in this section of the help."""
    return click.option(
        "--seed",
        "random_state",
        cls=Option,
        section=section,
        type=click.IntRange(min=0, max=2**63 - 1),
        default=0,
        show_default=True,
        metavar="N",
        help="Random seed. The same seed gives the same result.",
    )


def threads_option(section: str) -> Callable[..., Any]:
    """Return the option ``--threads``, in this section of the help."""
    return click.option(
        "--threads",
        "n_threads",
        cls=Option,
        section=section,
        type=click.IntRange(min=1, max=1024),
        metavar="N",
        help="Number of threads of the C++ core. Default: all CPUs.",
    )


def cluster_option(section: str) -> Callable[..., Any]:
    """Return the option ``--cluster``, in this section of the help."""
    return click.option(
        "--cluster",
        cls=Option,
        section=section,
        metavar="ADDRESS",
        help="Run on a Dask cluster: the address of its scheduler (tcp://HOST:PORT), or local "
        "or local:N for N processes on this machine. All workers must be able to read the "
        "files.",
    )


def _check_page(context: click.Context, _: click.Parameter, given: str | None) -> str | None:
    if given is not None and not given.lower().endswith((".html", ".htm")):
        raise UsageError(
            f"must end in .html or .htm, got {given!r}",
            "write HTML; browsers can print it to PDF",
            parameter="report",
        )
    return given


report_option = click.option(
    "--report",
    callback=_check_page,
    type=OutputPath("the report"),
    cls=Option,
    section=GENERAL,
    metavar="FILE.html",
    help="Also write an HTML page with plots.",
)


def table_options(function: Decorated) -> Decorated:
    """Add the options of tables to train on, which `function` gets as one dict `table`.

    The dict contains the options that were given; other properties are detected from the file.
    """
    for option in reversed(_KIND_OPTIONS):
        function = option(function)
    return new_table_options(function)


def new_table_options(function: Decorated) -> Decorated:
    """Add the options of tables for a model, which knows the column kinds."""
    for option in reversed(_FILE_OPTIONS):
        function = option(function)
    return function


_TABLE_SETTINGS = (
    *("format", "delimiter", "decimal", "header", "skip_rows", "encoding", "missing_codes"),
    *("not_missing", "categorical", "numeric", "dates"),
)

_FILE_OPTIONS = [
    click.option(
        "--format",
        cls=Option,
        section=_TABLE,
        type=click.Choice(["csv" if name == "text" else name for name in FORMATS]),
        help="Format of DATA. Detected by default.",
    ),
    click.option(
        "--delimiter",
        cls=Option,
        section=_TABLE,
        type=_Delimiter(),
        metavar="CHAR",
        help="Character between values, such as ';' or tab. Detected by default.",
    ),
    click.option(
        "--decimal",
        cls=Option,
        section=_TABLE,
        type=click.Choice([",", "."]),
        help="Decimal separator of numbers in text files. Detected by default.",
    ),
    click.option(
        "--header/--no-header",
        cls=Option,
        section=_TABLE,
        default=None,
        help="Whether the first line contains the column names. Detected by default.",
    ),
    click.option(
        "--skip-rows",
        cls=Option,
        section=_TABLE,
        type=click.IntRange(min=0),
        default=0,
        metavar="N",
        help="Number of lines to skip at the start of each file.",
    ),
    click.option(
        "--encoding",
        cls=Option,
        section=_TABLE,
        metavar="NAME",
        help="Encoding of text files, such as latin-1 or utf-16. Default: UTF-8.",
    ),
    click.option(
        "--missing-codes",
        cls=Option,
        section=_TABLE,
        metavar="CODES",
        callback=lambda _, __, given: tuple(given.split(",")) if given else (),
        help="Additional codes for missing values, separated by commas: -,-999. The model "
        "stores them.",
    ),
    click.option(
        "--not-missing",
        cls=Option,
        section=_TABLE,
        metavar="WORDS",
        callback=lambda _, __, given: tuple(given.split(",")) if given else (),
        help="Words such as n/a or None that are categories or classes rather than missing values, "
        "separated by commas.",
    ),
]

_KIND_OPTIONS = [
    click.option(
        "--categorical",
        cls=Option,
        section=_TABLE,
        metavar="COL",
        multiple=True,
        help="Treat a column of numbers as categories. May be repeated.",
    ),
    click.option(
        "--numeric",
        cls=Option,
        section=_TABLE,
        metavar="COL",
        multiple=True,
        help="Read a column as numbers even if it appears to contain strings. May be repeated.",
    ),
    click.option(
        "--dates",
        cls=Option,
        section=_TABLE,
        metavar="COL",
        multiple=True,
        help="Read a column as dates even if it was not detected as such. May be repeated.",
    ),
]
