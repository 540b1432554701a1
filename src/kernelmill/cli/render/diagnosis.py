"""The diagnosis of a table in a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType

from kernelmill.cli.render.results import make_pairs_table, make_table, render_notes
from kernelmill.formatting import plain

if TYPE_CHECKING:
    from kernelmill.diagnostics import FeatureRequirement
    from kernelmill.workflows.records import Diagnosis, Interval

__all__ = ["render_diagnosis"]


def render_diagnosis(
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
        "relative error": f"{_interval(errors['capped_relative'])}, mean over the "
        f"{plain.percent(errors['share_capped'].value)} of the pairs whose "
        "error is at most 100 %",
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


def _interval(interval: Interval) -> str:
    text = plain.number(interval.value, 3)
    if interval.low is None or interval.high is None:
        return text
    return f"{text} ({plain.number(interval.low, 3)} to {plain.number(interval.high, 3)})"
