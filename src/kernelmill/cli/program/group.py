"""The program `kernelmill`: finds the command, runs it, and turns what goes wrong into words."""

from __future__ import annotations

import io
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import version
from typing import Any

import click

from kernelmill.cli.program.errors import BROKEN_PIPE, FAILED, ErrorReport, report_error
from kernelmill.cli.program.options import general_options, write_examples
from kernelmill.cli.program.signals import unwind_on_termination
from kernelmill.cli.program.terminal import Terminal, discard_stdout, prepare_streams

__all__ = ["program", "run"]

# The modules of the commands are imported when they are needed, and themselves import what takes
# long (scikit-learn, pyarrow) when they run: help and completion stay quick.
COMMANDS = {
    "fit": "kernelmill.cli.commands.fit",
    "predict": "kernelmill.cli.commands.predict",
    "evaluate": "kernelmill.cli.commands.evaluate",
    "inspect": "kernelmill.cli.commands.inspect",
    "compare": "kernelmill.cli.commands.compare",
    "transform": "kernelmill.cli.commands.transform",
    "bench": "kernelmill.cli.commands.bench",
    "demo": "kernelmill.cli.commands.demo",
    "doctor": "kernelmill.cli.commands.doctor",
    "completion": "kernelmill.cli.commands.completion",
}

EXAMPLES = (
    ("kernelmill demo", "see it work on handwritten digits"),
    ("kernelmill fit adult.data --target 14 --missing impute", "train, and write adult.kmill"),
    ("kernelmill evaluate adult.kmill adult-test.csv", "how good it is on rows it has not seen"),
    ("kernelmill predict adult.kmill new.csv --out answers.csv", "use it"),
)


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = get_close_matches(name, COMMANDS, n=2)
            move = f"did you mean {' or '.join(near)}?" if near else "kernelmill --help"
            raise click.UsageError(f"there is no command {name!r}; {move}", ctx)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(EXAMPLES, formatter)
        super().format_options(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text(
            "kernelmill COMMAND --help has the options and examples of a command. Exit codes: 0 "
            "good, 1 the work failed, 2 wrong usage, 130 interrupted."
        )


@click.group(
    cls=_Group,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@general_options
@click.version_option(version("kernelmill"), prog_name="kernelmill")
@click.pass_context
def program(context: click.Context) -> None:
    """Kernel machines at linear cost: from a data file to a model to predictions."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code; see :func:`kernelmill.cli.main`."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    terminal = Terminal()
    if not prepare_streams(quiet="--quiet" in given):
        return FAILED
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # for terminals that know ASCII only
    try:
        with _show_warnings_as_notes(terminal), unwind_on_termination():
            code = program.main(given, prog_name="kernelmill", standalone_mode=False, obj=terminal)
        sys.stdout.flush()
    except BrokenPipeError:
        discard_stdout()
        return BROKEN_PIPE
    except (Exception, KeyboardInterrupt) as error:  # every one becomes a message and a code
        # A wrong option is found before the general ones are taken.
        terminal.json |= "--json" in given
        terminal.debug |= "--debug" in given
        try:
            return _print_error(report_error(error, given), error, terminal)
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
def _show_warnings_as_notes(terminal: Terminal) -> Iterator[None]:
    """Warnings without the lines of code that they come from, unless these are asked for."""
    with warnings.catch_warnings():
        in_full = warnings.showwarning

        def show(message: Warning | str, *args: Any, **settings: Any) -> None:
            if terminal.debug:
                in_full(message, *args, **settings)
            else:
                terminal.note(f"warning: {message}")

        warnings.showwarning = show
        yield
