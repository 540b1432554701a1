"""`kernelmill doctor`: show versions and hardware, and test the installation."""

from __future__ import annotations

import os
import sys

import click
from rich.table import Table

from kernelmill.cli.program.errors import FAILED
from kernelmill.cli.program.options import Command, general_options
from kernelmill.cli.program.terminal import Terminal, get_terminal
from kernelmill.cli.render.results import make_pairs_table
from kernelmill.installation import checks
from kernelmill.installation.checks import CheckResult

__all__ = ["command"]


@click.command(
    "doctor",
    cls=Command,
    short_help="Show versions and hardware, and test the installation.",
    examples=[("kernelmill doctor --json > doctor.json", "attach this to a bug report")],
)
@general_options
@click.pass_context
def command(context: click.Context) -> None:
    """Show versions and hardware, and test the installation.

    Prints versions, instruction set, threads, BLAS, memory and disk space. The self-test takes a
    few seconds. It checks that random numbers equal stored ones, that all instruction sets give
    the same results, that the error of a kernel approximation is within its bound, and that a
    saved model makes the same predictions. The exit code is 1 if a test fails.
    """
    terminal = get_terminal(context)
    versions = checks.list_versions()
    machine = {
        **checks.describe_core(),
        "BLAS": checks.describe_blas(),
        **checks.describe_memory(),
        "terminal": _describe_terminal(terminal),
    }
    results = [checks.check_packages(versions), checks.check_disk(), *checks.run_self_test()]
    record = {
        "versions": versions,
        "machine": machine,
        "checks": [vars(check) for check in results],
        "passed": all(check.passed for check in results),
    }
    terminal.give(
        record,
        make_pairs_table(versions),
        "",
        make_pairs_table(machine),
        "",
        _render_checks(results),
        *_render_conclusion(results),
    )
    if not record["passed"]:
        if terminal.quiet:
            terminal.err().print(*_render_conclusion(results), sep="\n", soft_wrap=True)
        context.exit(FAILED)


def _describe_terminal(terminal: Terminal) -> str:
    console = terminal.out()
    kind = "a terminal" if console.is_terminal else "not a terminal"
    color = console.color_system if console.color_system and not console.no_color else "no color"
    name = os.environ.get("TERM", "")
    return f"stdout is {kind}, {console.width} columns, {color}, {sys.stdout.encoding} {name}"


def _render_checks(results: list[CheckResult]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in results:
        table.add_row("ok" if check.passed else "FAILED", check.name, check.finding)
    return table


def _render_conclusion(results: list[CheckResult]) -> list[str]:
    failed = [check for check in results if not check.passed]
    if not failed:
        return ["", "Everything works."]
    names_by_remedy: dict[str, list[str]] = {}
    for check in failed:
        names_by_remedy.setdefault(check.remedy, []).append(check.name)
    lines = [""]
    for remedy, names in names_by_remedy.items():
        lines += [f"error: failed: {', '.join(names)}", f"try: {remedy}"]
    return lines
