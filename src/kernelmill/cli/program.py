"""The program `kernelmill`: finds the command, runs it, and turns what goes wrong into words."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any

import click

from kernelmill.cli.errors import BROKEN_PIPE, FAILED, Problem, problem_of
from kernelmill.cli.help_pages import write_examples
from kernelmill.cli.options import general_options
from kernelmill.cli.terminal import Terminal

__all__ = ["program", "run"]

# The modules of the commands are imported when they are needed, and themselves import what takes
# long (scikit-learn, pyarrow) when they run: help and completion stay quick.
COMMANDS = {
    "fit": "kernelmill.cli.fit",
    "predict": "kernelmill.cli.predict",
    "evaluate": "kernelmill.cli.evaluate",
    "inspect": "kernelmill.cli.inspect_model",
    "compare": "kernelmill.cli.compare",
    "transform": "kernelmill.cli.transform",
    "bench": "kernelmill.cli.bench",
    "demo": "kernelmill.cli.demo",
    "doctor": "kernelmill.cli.doctor",
    "completion": "kernelmill.cli.completion",
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
    if not _has_streams(quiet="--quiet" in given):
        return FAILED
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # for terminals that know ASCII only
    try:
        with _warnings_as_notes(terminal), _unwinding_when_terminated():
            code = program.main(given, prog_name="kernelmill", standalone_mode=False, obj=terminal)
        sys.stdout.flush()
    except BrokenPipeError:
        _leave_stdout()
        return BROKEN_PIPE
    except (Exception, KeyboardInterrupt) as error:  # every one becomes a message and a code
        # A wrong option is found before the general ones are taken.
        terminal.json |= "--json" in given
        terminal.debug |= "--debug" in given
        try:
            return _tell(problem_of(error, given), error, terminal)
        except BrokenPipeError:
            _leave_stdout()
            return BROKEN_PIPE
    return code if isinstance(code, int) else 0


def _tell(problem: Problem, error: BaseException, terminal: Terminal) -> int:
    console = terminal.err()
    if terminal.debug:
        console.print("".join(traceback.format_exception(error)), soft_wrap=True, end="")
    console.print(f"error: {problem.message}", soft_wrap=True, style="red")
    if problem.move is not None:
        console.print(f"try: {problem.move}", soft_wrap=True)
    if terminal.json:
        terminal.give(problem.as_json())
    return problem.exit_code


@contextmanager
def _warnings_as_notes(terminal: Terminal) -> Iterator[None]:
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


@contextmanager
def _unwinding_when_terminated() -> Iterator[None]:
    """Let SIGTERM and SIGHUP remove temporary files on the way out, as Ctrl-C does."""

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP: let it
                before[number] = signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _has_streams(quiet: bool) -> bool:
    """Whether there is a stdout for results, if any are wanted; closed streams go nowhere."""
    # Not `with`: they are the streams of the process until it ends. Opened in this order, they take
    # the numbers 1 and 2 that no data file should get.
    has_results = quiet or sys.stdout is not None
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    if not has_results:
        sys.stderr.write("error: stdout is closed, so there is no place for results\n")
        sys.stderr.write("try: leave out >&-, or say --quiet\n")
    return has_results


def _leave_stdout() -> None:
    """The reader has gone: let the interpreter's last flush go nowhere instead of failing."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):  # stdout is no file of the system, as in tests
        pass
    finally:
        os.close(nowhere)
