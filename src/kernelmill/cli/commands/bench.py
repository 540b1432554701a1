"""`kernelmill bench`: measure speed, compared with scikit-learn and the limits of the machine."""

from __future__ import annotations

import time

import click
from rich.table import Table

from kernelmill.cli.program.options import Command, general_options
from kernelmill.cli.program.terminal import get_terminal
from kernelmill.cli.render.progress import ProgressBars
from kernelmill.formatting import plain
from kernelmill.installation.speed import Benchmark, list_benchmarks
from kernelmill.runtime import get_isa, get_num_threads

__all__ = ["command"]


@click.command(
    "bench",
    cls=Command,
    short_help="Measure speed on this machine, compared with scikit-learn.",
    examples=[
        ("kernelmill bench --quick", "a few seconds"),
        ("OMP_NUM_THREADS=1 kernelmill bench", "one thread for all libraries"),
    ],
)
@click.option("--quick", is_flag=True, help="Smaller problems and fewer repetitions.")
@general_options
@click.pass_context
def command(context: click.Context, quick: bool) -> None:
    """Measure the speed of kernelmill on this machine.

    For comparison, scikit-learn and the limits of the machine (filling and copying the output
    array) are timed in the same run; ratios are more reliable than times. All results are checked,
    and the exit code is 1 if one is wrong. Takes less than 30 seconds.
    """
    terminal = get_terminal(context)
    begin = time.perf_counter()
    with ProgressBars(terminal) as progress:
        benchmarks = []
        for name, run in list_benchmarks(quick):
            progress.start(name)
            benchmarks.append(run())
    record = {
        "instruction_set": get_isa(),
        "threads": get_num_threads(),
        "seconds": time.perf_counter() - begin,
        "benchmarks": [each.as_json() for each in benchmarks],
    }
    threads = get_num_threads()
    first = f"{get_isa()}, {plain.count(threads, 'thread')}; best of several rounds; "
    first += "ratio: time divided by that of kernelmill"
    terminal.give(record, first, *(part for each in benchmarks for part in ("", _render(each))))


def _render(benchmark: Benchmark) -> Table:
    table = Table(title=benchmark.title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("", min_width=34)
    table.add_column("time", justify="right")
    table.add_column("rows/s", justify="right")
    table.add_column("ratio", justify="right")
    table.add_column(benchmark.error_name, justify="right")
    ours = benchmark.timings[0].seconds
    for each in benchmark.timings:
        table.add_row(
            each.name,
            plain.duration(each.seconds),
            plain.count(benchmark.n_rows / each.seconds),
            f"{each.seconds / ours:.2g}x",
            "" if each.error is None else plain.number(each.error, 3),
        )
    return table
