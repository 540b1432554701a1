"""The plots of how a model was made."""

from __future__ import annotations

import math

from kernelmill.formatting import clean_text, html, is_number
from kernelmill.report.kernel_check_figure import finite_pairs, kernel_check_figure
from kernelmill.report.panel import Panel, Table, grouped_pairs
from kernelmill.report.training_figures import (
    best_penalties,
    finite_tuning,
    learning_curve_figure,
    ringed_point,
    time_figure,
    timed_stages,
    tuning_figure,
)
from kernelmill.workflows.records import FitSummary, KernelCheck, TuningPoint

__all__ = ["fit_panels", "kernel_check_panel"]


def fit_panels(fit: FitSummary) -> list[Panel]:
    """The plots that the record has the numbers for."""
    panels = [
        _learning_curve(fit),
        *_tuning(fit),
        kernel_check_panel("fit-kernel", fit.kernel_check),
        _time(fit),
    ]
    return [panel for panel in panels if panel]


def kernel_check_panel(key: str, check: KernelCheck | None) -> Panel | None:
    """Estimated against exact kernel values."""
    pairs = finite_pairs(check.exact, check.estimated) if check else []
    if not check or not pairs:
        return None
    rows = []
    for group in grouped_pairs(pairs):
        off = [estimate - exact for exact, estimate in group]
        rms = math.sqrt(sum(each * each for each in off) / len(off))
        mean_exact = sum(exact for exact, _ in group) / len(group)
        mean_estimate = sum(estimate for _, estimate in group) / len(group)
        rows.append(
            [
                f"{html.number(group[0][0], 3)} to {html.number(group[-1][0], 3)}",
                html.count(len(group)),
                html.number(mean_exact, 3),
                html.number(mean_estimate, 3),
                html.number(rms, 2),
            ]
        )
    features = html.count(check.n_components)
    return Panel(
        key,
        "Estimated against exact kernel values",
        kernel_check_figure(check),
        f"Scatter plot of {html.count(len(pairs), 'pair')} of rows: kernel values estimated by "
        f"{features} features against exact ones; root mean squared error "
        f"{html.number(check.rms_error, 2)}.",
        f"Each point is a pair of rows. On the dashed line the {features} features give the kernel "
        f"exactly; they are off by {html.number(check.rms_error, 2)} (root mean square).",
        Table(
            ["exact values", "pairs", "mean exact", "mean estimate", "RMS error"],
            rows,
            "The points, in groups of the exact value",
        ),
    )


def _learning_curve(fit: FitSummary) -> Panel | None:
    points = [p for p in fit.learning_curve if is_number(p.loss) or is_number(p.error)]
    if not points:
        return None
    form = html.percent if fit.task == "classification" else html.number
    has_loss = any(is_number(p.loss) for p in points)
    has_error = any(is_number(p.error) for p in points)
    last = points[-1]
    ends = [f"loss {html.number(last.loss, 3)}"] if is_number(last.loss) else []
    ends += [f"held-out error {form(last.error)}"] if is_number(last.error) else []
    reading = "Rows are counted again in every epoch."
    if has_loss:
        reading += " A loss that still falls at the right end would gain from more epochs."
    if has_error:
        reading += " An error that rises again says that training went on for too long."
    step = -(-len(points) // 60)
    # Backwards, so that the last point is in the table whatever the step.
    rows = [[html.count(p.rows), html.number(p.loss), form(p.error)] for p in points[::-1][::step]][
        ::-1
    ]
    shown = "" if step == 1 else f", one of {step} points"
    return Panel(
        "fit-learning",
        "Learning curve",
        learning_curve_figure(points, fit.task),
        f"Line plot of training over {html.count(last.rows, 'row')}, ending at "
        f"{' and '.join(ends)}.",
        reading,
        Table(["rows seen", "loss", "held-out error"], rows, f"Training, point by point{shown}", 0),
    )


def _tuning(fit: FitSummary) -> list[Panel]:
    """A plot for each criterion, in the order in which they were used."""
    points = finite_tuning(fit.tuning)
    criteria = dict.fromkeys(point.criterion for point in points)
    return [
        _tuning_by(
            criterion,
            [p for p in points if p.criterion == criterion],
            (fit.length_scale, fit.alpha),
            stage=index + 1,
            n_stages=len(criteria),
        )
        for index, criterion in enumerate(criteria)
    ]


_STAGES = (
    " This is the first of two stages: ridge regression finds the region, in which the model's own "
    "loss decides.",
    " This is the second of two stages, the one that decides: ridge regression has found the "
    "region, the model's own loss chooses in it.",
)


def _tuning_by(
    criterion: str,
    points: list[TuningPoint],
    chosen: tuple[float | None, float],
    *,
    stage: int,
    n_stages: int,
) -> Panel:
    form = html.percent if criterion == "error" else html.number
    name = clean_text(criterion)
    # Penalties of ridge regressions have another scale than those of another loss.
    decides = stage == n_stages
    ringed, is_chosen = ringed_point(points, chosen if decides else None)
    n_penalties = len({point.alpha for point in points})
    n_drawn = len(best_penalties(points, ringed))
    lines = (
        "A line for each penalty" if n_penalties > 1 else f"Penalty {html.number(ringed.alpha, 2)}"
    )
    lines += "" if n_drawn == n_penalties else f" ({n_drawn} of {n_penalties})"
    of_what = " of a ridge regression" if criterion == "squared error" else ""
    found = (
        f"length scale {html.number(ringed.length_scale, 3)} and penalty "
        f"{html.number(ringed.alpha, 2)}: {form(ringed.error)}"
    )
    scales = [point.length_scale for point in points]
    at_edge = decides and len(set(scales)) > 2 and ringed.length_scale in (min(scales), max(scales))
    which = "chosen one" if is_chosen else "least"
    of_two = _STAGES[stage - 1] if n_stages == 2 else ""
    wider = " That is the edge of what was tried: a wider search may gain."
    return Panel(
        f"fit-tuning-{stage}",
        f"Tuning by {name}",
        tuning_figure(points, chosen if decides else None),
        f"Line plot of the {name} against the length scale for "
        f"{html.count(n_drawn, 'penalty', 'penalties')}; the {which} of "
        f"{html.count(len(points), 'setting')} is at {found}.",
        f"{lines}: the {name}{of_what} on rows held out for tuning. The {which}, ringed, is at "
        f"{found}.{wider if at_edge else ''}{of_two}",
        Table(
            ["length scale", "penalty", name],
            [
                [html.number(p.length_scale), html.number(p.alpha, 3), form(p.error)]
                for p in sorted(points, key=lambda p: p.error)
            ],
            "All settings, the least first",
            0,
        ),
    )


def _time(fit: FitSummary) -> Panel | None:
    stages = timed_stages(fit)
    if not stages:
        return None
    total = sum(time for _, time in stages)
    longest, most = max(stages, key=lambda stage: stage[1])
    return Panel(
        "fit-time",
        "Where the time went",
        time_figure(fit),
        f"Stacked bar of {html.duration(total)}: "
        + ", ".join(f"{stage} {html.duration(time)}" for stage, time in stages)
        + ".",
        f"Of {html.duration(total)} in all, {longest} took the most: {html.percent(most / total)}.",
        Table(
            ["stage", "time", "share"],
            [[stage, html.duration(time), html.percent(time / total)] for stage, time in stages],
            "The stages in order",
        ),
    )
