"""`kernelmill diagnose`: the number of features that each map needs on a table, and their cost."""

# ruff: noqa: PLC0415 # workflows are imported when the command runs
from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import RenderableType

from kernelmill.cli.program.options import (
    Command,
    Option,
    data_argument,
    day_first_option,
    drop_option,
    general_options,
    groups_option,
    missing_option,
    report_option,
    seed_option,
    table_options,
    task_option,
    threads_option,
    transform_option,
)
from kernelmill.cli.program.terminal import get_terminal
from kernelmill.cli.render.progress import ProgressBars
from kernelmill.cli.render.results import build_json, make_pairs_table, make_table, render_notes
from kernelmill.formatting import is_number, plain

if TYPE_CHECKING:
    from kernelmill.diagnostics import FeatureRequirement, Measured
    from kernelmill.workflows.diagnosis import Diagnosis

__all__ = ["command"]

_DIAGNOSIS = "Diagnosis"


class _LengthScale(click.ParamType):  # type: ignore[type-arg] # generic in new versions only
    """A number, or a rule that takes it from the data."""

    name = "length scale"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in ("scale", "median"):
            return value
        try:
            return float(value)
        except ValueError:
            self.fail(f"must be a number, 'scale' or 'median', got {value!r}", param, ctx)


@click.command(
    "diagnose",
    cls=Command,
    short_help="Report how many features each map needs, and what they cost.",
    examples=[
        ("kernelmill diagnose wine.csv --tolerance 0.02", "all columns are inputs"),
        (
            "kernelmill diagnose adult.data -t 14 --missing impute --report d.html",
            "also the effect on ridge regression, and an HTML report",
        ),
        (
            "kernelmill diagnose a.csv --kernel polynomial:degree=2,coef0=1",
            "maps of a polynomial kernel",
        ),
    ],
)
@data_argument
@click.option(
    "--tolerance",
    cls=Option,
    section=_DIAGNOSIS,
    type=float,
    default=0.05,
    show_default=True,
    metavar="X",
    help="Largest allowed error of a kernel value, in units of the mean of k(x, x).",
)
@click.option(
    "--probability",
    cls=Option,
    section=_DIAGNOSIS,
    type=float,
    default=0.95,
    show_default=True,
    metavar="P",
    help="Fraction of the pairs of rows whose error must be within the tolerance.",
)
@click.option(
    "--target",
    "-t",
    cls=Option,
    section=_DIAGNOSIS,
    metavar="COL",
    help="Column to predict, which is not an input: its name, or its index from 0. Default: all "
    "columns are inputs.",
)
@click.option(
    "--kernel",
    cls=Option,
    section=_DIAGNOSIS,
    default="gaussian",
    show_default=True,
    metavar="NAME",
    help="Kernel: gaussian, matern:nu=2.5, laplacian, polynomial:degree=2,coef0=1, ...",
)
@click.option(
    "--length-scale",
    cls=Option,
    section=_DIAGNOSIS,
    type=_LengthScale(),
    metavar="X",
    help="Length scale (bandwidth) of the kernel: a number, scale (the default) or median.",
)
@click.option(
    "--alpha",
    cls=Option,
    section=_DIAGNOSIS,
    type=float,
    default=1.0,
    show_default=True,
    metavar="X",
    help="Penalty of a ridge regression on all rows, for the effective dimension.",
)
@click.option(
    "--rows",
    cls=Option,
    section=_DIAGNOSIS,
    type=click.IntRange(min=2),
    default=2000,
    show_default=True,
    metavar="N",
    help="Maximum number of rows in the sample.",
)
@task_option(_DIAGNOSIS)
@missing_option(_DIAGNOSIS)
@transform_option(_DIAGNOSIS)
@drop_option(_DIAGNOSIS)
@day_first_option(_DIAGNOSIS)
@groups_option(_DIAGNOSIS)
@threads_option(_DIAGNOSIS)
@seed_option(_DIAGNOSIS)
@table_options
@report_option
@general_options
@click.pass_context
def command(
    context: click.Context,
    /,
    source: str | list[str],
    report: Path | None,
    table: dict[str, Any],
    **settings: Any,
) -> None:
    """Measure how well each map approximates a kernel on a sample of DATA.

    Prints the number of features that each map needs to reach the tolerance (by a bound, by the
    theoretical variance, and as measured), and the time and memory that they take for all rows.
    """
    terminal = get_terminal(context)
    from kernelmill.workflows import diagnose_table

    with ProgressBars(terminal) as progress:
        diagnosis = diagnose_table(source, **settings, **table, progress=progress)
    if report is not None:
        from kernelmill.report import write_diagnosis

        write_diagnosis(report, progress.name_options(diagnosis))
    terminal.give(
        {
            "diagnosis": build_json(diagnosis),
            "report": None if report is None else str(report),
        },
        *_render_diagnosis(diagnosis, progress.shown_notes),
        *([] if report is None else ["", f"Report: {report}"]),
    )


def _render_diagnosis(
    diagnosis: Diagnosis, shown_notes: Collection[str] = ()
) -> Iterator[RenderableType]:
    """Yield the number of features of each map, the recommendation, and its errors."""
    scale = diagnosis.length_scale
    length_scale = "" if scale is None else f", length scale {plain.number(scale)}"
    yield (
        f"Sample: {plain.count(diagnosis.n_sample)} of {plain.count(diagnosis.n_rows, 'row')}, "
        f"{plain.count(diagnosis.n_inputs, 'input')}, seed {diagnosis.seed}"
    )
    yield f"Kernel: {diagnosis.kernel}{length_scale}"
    share = plain.percent(diagnosis.probability).replace(".0 ", " ")
    yield (
        f"Features for an error of at most {plain.number(diagnosis.tolerance)} in {share} of the "
        "pairs:"
    )
    yield ""
    table = make_table()
    table.add_column("map", overflow="fold")
    for name in ("bound", "variance", "measured", "interval", "time", "memory"):
        table.add_column(name, justify="right")
    for each in diagnosis.requirements:
        table.add_row(*_cells(each))
    yield table
    rows = plain.count(diagnosis.n_rows, "row")
    yield f"time: features of {rows}; memory: coefficients of the map"
    if any(each.is_extrapolated for each in diagnosis.requirements):
        yield "> extrapolated from the largest measured number of features"
    if any(_is_similar(each) for each in diagnosis.requirements):
        yield "~ from the variance of a similar construction"
    yield ""
    yield diagnosis.recommendation
    if diagnosis.errors:
        yield ""
        yield make_pairs_table(_details(diagnosis))
    yield from render_notes(diagnosis.notes, shown_notes)


def _is_similar(requirement: FeatureRequirement) -> bool:
    return requirement.from_variance is not None and not requirement.variance_is_exact


def _cells(each: FeatureRequirement) -> list[str]:
    low, high = each.low, each.high
    interval = "" if low is None or high is None else f"{plain.compact(low)}-{plain.compact(high)}"
    return [
        each.label,
        plain.compact(each.from_bound),
        ("~" if _is_similar(each) else "") + plain.compact(each.from_variance),
        (">" if each.is_extrapolated else "") + plain.compact(each.measured),
        interval,
        plain.duration(each.seconds),
        plain.size(each.map_bytes),
    ]


def _details(diagnosis: Diagnosis) -> dict[str, str]:
    errors, unit = diagnosis.errors, diagnosis.requirements[0].unit
    # The tolerance is in these units; those of kernels of the distance are 1.
    of_unit = "" if abs(unit - 1) < 1e-3 else f"; the mean of k(x, x) is {plain.number(unit, 3)}"
    pairs = {
        "features": plain.count(diagnosis.n_components),
        "absolute error": _interval(errors["absolute"]) + of_unit,
        "relative error": f"{_interval(errors['capped_relative'])}, mean over pairs with an error "
        f"of at most 100 % ({plain.percent(errors['share_capped'].value)} of all)",
    }
    if diagnosis.gram:
        gram = diagnosis.gram[-1]
        pairs["Gram matrix"] = (
            f"spectral error {_interval(gram.spectral)} of {plain.number(gram.kernel_spectral)}, "
            f"{plain.count(gram.n_rows, 'row')}"
        )
        pairs["effective dim."] = (
            f"{_interval(gram.effective_dimension)} of {plain.count(gram.n_rows, 'row')} at "
            f"penalty {plain.number(gram.alpha, 3)}"
        )
        if gram.fit_change is not None:
            pairs["ridge regression"] = f"fitted values change by {_interval(gram.fit_change)}"
    return pairs


def _interval(measured: Measured) -> str:
    text = plain.number(measured.value, 3)
    if not is_number(measured.low) or not is_number(measured.high):
        return text
    return f"{text} ({plain.number(measured.low, 3)} to {plain.number(measured.high, 3)})"
