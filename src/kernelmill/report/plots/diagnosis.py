"""Plots of a diagnosis: errors against the number of features, and over the range of the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from kernelmill.errors import ArgumentError
from kernelmill.formatting import clean_text, html, is_number
from kernelmill.report.plots.drawing import (
    MARKERS,
    drawing_style,
    format_axis,
    legend_below,
    light,
    log_axis,
    log_ticks,
    new_figure,
    series_colour,
    thin_ticks,
)
from kernelmill.report.plots.kernels import kernel_check_panel
from kernelmill.report.plots.panel import PageTable, Panel

if TYPE_CHECKING:
    from kernelmill.diagnostics import FeatureRequirement, Measured
    from kernelmill.workflows.diagnosis import Diagnosis

__all__ = [
    "diagnosis_panels",
    "error_over_range_plot",
    "gram_error_plot",
    "kernel_error_by_features_plot",
]


@drawing_style()
def kernel_error_by_features_plot(diagnosis: Diagnosis) -> Figure:
    """Plot the measured errors of each map against the number of features, both logarithmic.

    A horizontal line is the tolerance; the line of a map is dotted where it is extrapolated.
    """
    shown = _maps_with_errors(diagnosis)
    if not shown:
        problem = "must hold a map with measured errors, got none"
        raise ArgumentError(problem, parameter="diagnosis")
    figure = new_figure(height=300)
    axes = figure.subplots()
    axes.set_yscale("log")
    sizes: list[float] = []
    values: list[float] = [diagnosis.tolerance]
    for index, (each, points) in enumerate(shown):
        x, y = [size for size, _ in points], [error.value or 0.0 for _, error in points]
        colour = series_colour(index)
        marker = MARKERS[index % len(MARKERS)]
        axes.plot(x, y, color=colour, marker=marker, label=each.label)
        for size, error in points:
            axes.plot([size, size], _ends(error), color=colour, linewidth=1)
        if each.is_extrapolated and each.measured is not None:
            ends = ([x[-1], each.measured], [y[-1], diagnosis.tolerance])
            axes.plot(*ends, color=colour, linestyle=":")
            x = [*x, each.measured]
        sizes += x
        values += y
    axes.axhline(diagnosis.tolerance, color=light("ink"), linewidth=1, dashes=(4, 3))
    log_axis(axes, sizes, html.compact)
    axes.set_yticks(log_ticks(min(values), max(values)))
    axes.set_yticks([], minor=True)
    format_axis(axes.yaxis, lambda value: html.number(value, 2))
    axes.set(xlabel="features", ylabel="error of a kernel value")
    legend_below(figure, axes)
    return figure


@drawing_style()
def error_over_range_plot(diagnosis: Diagnosis) -> Figure:
    """Plot the mean absolute error in sections of the range of kernel values, with intervals."""
    shown = [each for each in diagnosis.ranges if is_number(each.absolute.value)]
    if not shown:
        problem = "must hold errors over the range of the kernel, got none"
        raise ArgumentError(problem, parameter="diagnosis")
    figure = new_figure(height=270)
    axes = figure.subplots()
    for each in shown:
        low, high = _ends(each.absolute)
        center = (each.low + each.high) / 2
        width = 0.86 * (each.high - each.low)
        axes.bar([center], [each.absolute.value or 0.0], width=width or 0.01, color=light("blue"))
        axes.plot([center, center], [low, high], color=light("ink"), linewidth=1.2)
    axes.set(xlabel="exact kernel value", ylabel="mean absolute error")
    axes.set_ylim(bottom=0)
    axes.grid(axis="x", visible=False)
    axes.locator_params(nbins=6)
    format_axis(axes.yaxis, lambda value: html.number(value, 2))
    return figure


@drawing_style()
def gram_error_plot(diagnosis: Diagnosis) -> Figure:
    """Plot relative errors of the Gram matrix against the number of features, with intervals.

    If there is a target, also the relative change of the fitted values of a ridge regression.
    """
    lines = _gram_lines(diagnosis)
    if not lines:
        problem = "must hold errors of Gram matrices, got none"
        raise ArgumentError(problem, parameter="diagnosis")
    figure = new_figure(height=300)
    axes = figure.subplots()
    axes.set_yscale("log")
    values: list[float] = []
    for index, (name, points) in enumerate(lines.items()):
        colour = series_colour(index)
        x, y = [size for size, _ in points], [each.value or 0.0 for _, each in points]
        axes.plot(x, y, color=colour, marker=MARKERS[index % len(MARKERS)], label=name)
        for size, each in points:
            low, high = _ends(each)
            if low > 0:
                axes.plot([size, size], [low, high], color=colour, linewidth=1.2)
                values += [low, high]
        values += y
    sizes = [float(each.n_components) for each in diagnosis.gram]
    log_axis(axes, sizes, html.compact, thin_ticks(sorted(set(sizes))))
    axes.set_yticks(log_ticks(min(values), max(values)))
    axes.set_yticks([], minor=True)
    format_axis(axes.yaxis, lambda value: html.number(value, 2))
    axes.set(xlabel="features", ylabel="relative error")
    legend_below(figure, axes)
    return figure


def _gram_lines(diagnosis: Diagnosis) -> dict[str, list[tuple[int, Measured]]]:
    """Return relative errors of the Gram matrix and ridge regression, by number of features."""
    lines: dict[str, list[tuple[int, Measured]]] = {}
    for each in diagnosis.gram:
        errors = {
            "spectral norm": each.spectral / each.kernel_spectral,
            "Frobenius norm": each.frobenius / each.kernel_frobenius,
            "ridge regression": each.fit_change,
        }
        for name, error in errors.items():
            if error is not None and is_number(error.value) and error.value > 0:
                lines.setdefault(name, []).append((each.n_components, error))
    return lines


def _maps_with_errors(
    diagnosis: Diagnosis,
) -> list[tuple[FeatureRequirement, list[tuple[int, Measured]]]]:
    """Return the maps that have positive, finite errors, with these errors."""
    found = []
    for each in diagnosis.requirements:
        points = [
            (size, error)
            for size, error in each.points
            if is_number(error.value) and error.value > 0
        ]
        if points:
            found.append((each, points))
    return found


def _ends(measured: Measured) -> tuple[float, float]:
    if not is_number(measured.low) or not is_number(measured.high):
        return measured.value, measured.value
    return max(0.0, measured.low), measured.high


def diagnosis_panels(diagnosis: Diagnosis) -> list[Panel]:
    """Return the plots that the record has numbers for."""
    panels = [
        _by_features(diagnosis),
        kernel_check_panel("diagnosis-kernel", diagnosis.kernel_check),
        _over_range(diagnosis),
        _gram(diagnosis),
    ]
    return [panel for panel in panels if panel]


def _by_features(diagnosis: Diagnosis) -> Panel | None:
    shown = _maps_with_errors(diagnosis)
    if not shown:
        return None
    ends = [
        f"{each.label} {html.number(points[-1][1].value, 2)} with {html.count(points[-1][0])}"
        for each, points in shown
    ]
    return Panel(
        "diagnosis-features",
        "Error against features",
        kernel_error_by_features_plot(diagnosis),
        "Line plot of the error of a kernel value against the number of features: "
        + clean_text("; ".join(ends))
        + ".",
        f"The {html.percent(diagnosis.probability)} quantile of the errors of kernel values, in "
        "units of the mean of k(x, x), with 95 % intervals. The dashed line is the tolerance. "
        "Four times as many features halve the error, unless the map becomes exact.",
        PageTable(
            ["map", "features", "error", "95 % interval"],
            [
                [
                    clean_text(each.label),
                    html.count(size),
                    html.number(error.value, 3),
                    f"{html.number(error.low, 3)}{html.range_dash}{html.number(error.high, 3)}",
                ]
                for each, points in shown
                for size, error in points
            ],
            "Measured errors",
        ),
    )


def _gram(diagnosis: Diagnosis) -> Panel | None:
    lines = _gram_lines(diagnosis)
    if not lines or diagnosis.recommended is None:
        return None
    gram = diagnosis.gram[-1]
    label = clean_text(diagnosis.requirements[diagnosis.recommended].label)
    ends = [f"{name} {html.number(points[-1][1].value, 2)}" for name, points in lines.items()]
    return Panel(
        "diagnosis-gram",
        "Errors of the Gram matrix",
        gram_error_plot(diagnosis),
        f"Line plot of relative errors of the Gram matrix against the number of features; with "
        f"{html.count(gram.n_components)}: {', '.join(ends)}.",
        f"Norms of the error of the Gram matrix of {html.count(gram.n_rows, 'row')}, relative to "
        f"those of the matrix, for {label}, with 95 % intervals."
        + (
            " Ridge regression: the relative change of the fitted values at penalty "
            f"{html.number(gram.alpha, 3)}, where "
            f"{html.number(gram.effective_dimension.value, 3)} parameters are in effect."
            if "ridge regression" in lines
            else ""
        ),
        PageTable(
            ["quantity", "features", "relative error"],
            [
                [name, html.count(size), html.number(error.value, 3)]
                for name, points in lines.items()
                for size, error in points
            ],
            "Relative errors",
        ),
    )


def _over_range(diagnosis: Diagnosis) -> Panel | None:
    shown = [each for each in diagnosis.ranges if is_number(each.absolute.value)]
    if not shown:
        return None
    values = [each.absolute.value or 0.0 for each in shown]
    return Panel(
        "diagnosis-range",
        "Error over the range of kernel values",
        error_over_range_plot(diagnosis),
        f"Bar chart of the mean absolute error in {len(shown)} sections of the range of kernel "
        f"values, from {html.number(min(values), 2)} to {html.number(max(values), 2)}.",
        "Mean absolute error of the pairs whose exact kernel value is in a section, with 95 % "
        "intervals. Similar rows have values near the right end.",
        PageTable(
            ["exact values", "pairs", "absolute error", "relative error"],
            [
                [
                    f"{html.number(each.low, 3)} to {html.number(each.high, 3)}",
                    html.count(each.n_pairs),
                    html.number(each.absolute.value, 3),
                    html.percent(each.relative.value),
                ]
                for each in shown
            ],
            "Errors by section",
        ),
    )
