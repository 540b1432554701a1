"""`kernelmill doctor`: what this installation runs on, and whether it works."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click
from rich.table import Table

from kernelmill.cli.figures import size
from kernelmill.cli.machine import blas_libraries, core, memory, versions
from kernelmill.cli.program.options import Command, general_options
from kernelmill.cli.program.terminal import Terminal, get_terminal
from kernelmill.cli.self_test import Check, self_test

__all__ = ["command"]

OLDEST_PYTHON = (3, 11)
LEAST_DISK = 100e6  # bytes; models and predictions need some


@click.command(
    "doctor",
    cls=Command,
    short_help="Show versions, instruction set, threads; test that it works.",
    examples=[("kernelmill doctor --json > doctor.json", "what to attach to a report of a fault")],
)
@general_options
@click.pass_context
def command(context: click.Context) -> None:
    """Show what this installation runs on, and test that it works.

    Versions, instruction set, threads, BLAS, memory and disk; then a self-test of a few seconds:
    random bits against stored ones, equal bits on every instruction set, the error of a kernel
    approximation against its bound, a model saved and loaded. Exit code 1 if something fails.
    """
    terminal = get_terminal(context)
    found = versions()
    parts = {**core(), "BLAS": blas_libraries(), **memory(), "terminal": _screen(terminal)}
    checks = [_all_there(found), _enough_disk(), *self_test()]
    record = {
        "versions": found,
        "machine": parts,
        "checks": [vars(check) for check in checks],
        "good": all(check.good for check in checks),
    }
    terminal.give(record, _pairs(found), "", _pairs(parts), "", _results(checks), *_advice(checks))
    if not record["good"]:
        if terminal.quiet:
            terminal.err().print(*_advice(checks), sep="\n", soft_wrap=True)
        context.exit(1)


def _all_there(found: dict[str, str]) -> Check:
    missing = [name for name, number in found.items() if number == "missing"]
    if missing:
        move = f"pip install {' '.join(missing)}"
        return Check("packages", False, f"missing: {', '.join(missing)}", move)
    return Check("packages", True, "all there")


def _enough_disk() -> Check:
    free = shutil.disk_usage(Path.cwd()).free
    move = "free some space, or work in a folder on another disk"
    return Check("disk", free >= LEAST_DISK, f"{size(free)} free here", move)


def _screen(terminal: Terminal) -> str:
    console = terminal.out()
    kind = "a terminal" if console.is_terminal else "not a terminal"
    colour = console.color_system if console.color_system and not console.no_color else "no colour"
    name = os.environ.get("TERM", "")
    return f"stdout is {kind}, {console.width} columns, {colour}, {sys.stdout.encoding} {name}"


def _pairs(values: dict[str, str]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in values.items():
        table.add_row(name, value)
    return table


def _results(checks: list[Check]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        table.add_row("good" if check.good else "FAILED", check.name, check.finding)
    return table


def _advice(checks: list[Check]) -> list[str]:
    failed = [check for check in checks if not check.good]
    if not failed:
        return ["", "Everything works."]
    moves: dict[str, list[str]] = {}
    for check in failed:
        moves.setdefault(check.move, []).append(check.name)
    lines = [""]
    for move, names in moves.items():
        lines += [f"error: failed: {', '.join(names)}", f"try: {move}"]
    return lines
