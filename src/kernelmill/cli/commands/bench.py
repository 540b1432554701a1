"""`kernelmill bench`: speed on this machine, beside scikit-learn and what the machine allows."""

from __future__ import annotations

import time

import click
from rich.table import Table

from kernelmill.cli.figures import counted, duration, number, significant
from kernelmill.cli.program.options import Command, general_options
from kernelmill.cli.program.terminal import get_terminal
from kernelmill.cli.render.progress import ProgressBars
from kernelmill.installation.speed import Contest, contests
from kernelmill.runtime import get_isa, get_num_threads

__all__ = ["command"]


@click.command(
    "bench",
    cls=Command,
    short_help="Measure speed here, beside scikit-learn and the limits.",
    examples=[
        ("kernelmill bench --quick", "a few seconds"),
        ("OMP_NUM_THREADS=1 kernelmill bench", "with one thread for everything"),
    ],
)
@click.option("--quick", is_flag=True, help="Smaller problems and fewer rounds.")
@general_options
@click.pass_context
def command(context: click.Context, quick: bool) -> None:
    """Measure the speed of kernelmill on this machine.

    Beside it, in turns in the same run: scikit-learn doing the same, and the limits of the
    machine (filling the output array, copying it). Ratios hold where times do not. Answers are
    checked: a wrong one is an error, exit code 1. Under 30 seconds.
    """
    terminal = get_terminal(context)
    begin = time.perf_counter()
    with ProgressBars(terminal) as progress:
        made = []
        for name, run in contests(quick):
            progress.start(name)
            made.append(run())
    record = {
        "instruction_set": get_isa(),
        "threads": get_num_threads(),
        "seconds": time.perf_counter() - begin,
        "contests": [contest.as_json() for contest in made],
    }
    threads = get_num_threads()
    first = f"{get_isa()}, {counted(threads, 'thread')}; best of several rounds in turns"
    first += "; ratio: time over that of kernelmill"
    terminal.give(record, first, *(part for contest in made for part in ("", _table(contest))))


def _table(contest: Contest) -> Table:
    table = Table(title=contest.title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("", min_width=34)
    table.add_column("time", justify="right")
    table.add_column("rows/s", justify="right")
    table.add_column("ratio", justify="right")
    table.add_column(contest.answer_name, justify="right")
    ours = contest.contenders[0].seconds
    for each in contest.contenders:
        table.add_row(
            each.name,
            duration(each.seconds),
            number(contest.n_rows / each.seconds),
            f"{each.seconds / ours:.2g}x",
            "" if each.answer is None else significant(each.answer, 3),
        )
    return table
