"""The program `kernelmill`: find the command, run it, print errors, return the exit code."""

from __future__ import annotations

import io
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from kernelmill.cli.program.errors import (
    BROKEN_PIPE,
    FAILED,
    ErrorReport,
    UsageError,
    report_error,
)
from kernelmill.cli.program.options import general_options, write_examples
from kernelmill.cli.program.signals import ignore_interrupts, unwind_on_termination
from kernelmill.cli.program.terminal import (
    Terminal,
    discard_stdout,
    prepare_streams,
    stdout_errors,
)

__all__ = ["COMMANDS", "program", "run"]

# The module of a command is imported when the command is needed, and imports what takes long
# (scikit-learn, pyarrow) when the command runs: help and completion stay fast.
COMMANDS = (
    *("fit", "predict", "evaluate", "inspect", "compare", "diagnose", "transform"),
    *("bench", "demo", "doctor", "completion"),
)

EXAMPLES = (
    ("kernelmill demo", "a tour with handwritten digits"),
    ("kernelmill fit adult.data --target 14 --missing impute", "train; writes adult.kmill"),
    ("kernelmill evaluate adult.kmill adult-test.csv", "measure the error on new rows"),
    ("kernelmill predict adult.kmill new.csv --out predictions.csv", "predict"),
)


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"kernelmill.cli.commands.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            similar = get_close_matches(name, COMMANDS, n=2)
            remedy = " or ".join(similar) if similar else "kernelmill --help"
            raise UsageError(f"there is no command {name!r}", remedy)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(EXAMPLES, formatter)
        super().format_options(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text(
            "kernelmill COMMAND --help shows the options and examples of a command. Exit codes: "
            "0 success, 1 failure, 2 usage error (a wrong option or value), 130 interrupted."
        )


@click.group(
    cls=_Group,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@general_options
@click.version_option(package_name="kernelmill", prog_name="kernelmill")
@click.pass_context
def program(context: click.Context) -> None:
    """Kernel machines at linear cost: from a data file to a model to predictions."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def run(
    arguments: Sequence[str] | None = None,
    command: click.Command = program,
    name: str = "kernelmill",
) -> int:
    """Run a program and return its exit code; see :func:`kernelmill.cli.main`."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    terminal = Terminal()
    try:
        return _run(given, terminal, command, name)
    except KeyboardInterrupt as error:  # a second one, while the first was handled
        with ignore_interrupts():
            return _print_error(report_error(error), error, terminal)


def _run(given: list[str], terminal: Terminal, command: click.Command, name: str) -> int:
    if not prepare_streams(quiet="--quiet" in given):
        return FAILED
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # for terminals that know ASCII only
    try:
        with _print_warnings_as_notes(terminal), unwind_on_termination():
            code = command.main(given, prog_name=name, standalone_mode=False, obj=terminal)
        with stdout_errors():
            sys.stdout.flush()
    except BrokenPipeError:
        discard_stdout()
        return BROKEN_PIPE
    except (Exception, KeyboardInterrupt) as error:  # each becomes a message and an exit code
        # A wrong option is detected before the general options have been processed.
        terminal.json |= "--json" in given
        terminal.debug |= "--debug" in given
        with ignore_interrupts():
            try:
                return _print_error(report_error(error, terminal.command, given), error, terminal)
            except BrokenPipeError:
                discard_stdout()
                return BROKEN_PIPE
    return code if isinstance(code, int) else 0


def _print_error(report: ErrorReport, error: BaseException, terminal: Terminal) -> int:
    console = terminal.err()
    if terminal.debug:
        console.print("".join(traceback.format_exception(error)), soft_wrap=True, end="")
    console.print(f"error: {report.message}", soft_wrap=True, style="red")
    if report.remedy is not None:
        console.print(f"try: {report.remedy}", soft_wrap=True)
    if terminal.json:
        terminal.give(report.as_json())
    return report.exit_code


@contextmanager
def _print_warnings_as_notes(terminal: Terminal) -> Iterator[None]:
    """Print warnings without the source line they come from, unless ``--debug`` is given."""
    with warnings.catch_warnings():
        show_in_full = warnings.showwarning

        def show(message: Warning | str, *args: Any, **settings: Any) -> None:
            if terminal.debug:
                show_in_full(message, *args, **settings)
            else:
                terminal.note(f"warning: {message}")

        warnings.showwarning = show
        yield
