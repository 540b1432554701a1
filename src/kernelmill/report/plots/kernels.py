"""Plots of estimated against exact kernel values, as in Sivertsen (2014), Figure 4.1."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from kernelmill.formatting import html
from kernelmill.report.plots.drawing import draw_against, drawing_style, finite_pairs
from kernelmill.report.plots.panel import PageTable, Panel, group_pairs
from kernelmill.workflows.records import KernelCheck

__all__ = [
    "kernel_check_panel",
    "kernel_check_plot",
]


@drawing_style()
def kernel_check_plot(check: KernelCheck) -> Figure:
    """Plot the estimated against the exact kernel value of each pair of rows.

    Parameters
    ----------
    check : KernelCheck
        With at least one pair.

    Returns
    -------
    matplotlib.figure.Figure
        With at most 2000 points, evenly chosen.

    Examples
    --------
    >>> from kernelmill.report import kernel_check_plot
    >>> from kernelmill.workflows.records import KernelCheck
    >>> check = KernelCheck([0.1, 0.5, 1.0], [0.12, 0.47, 1.0], rms_error=0.02, n_components=512)
    >>> kernel_check_plot(check).axes[0].get_xlabel()
    'exact kernel value'
    """
    pairs = finite_pairs(check.exact, check.estimated)
    return draw_against(pairs, "exact kernel value", "estimate from features")


def kernel_check_panel(key: str, check: KernelCheck | None) -> Panel | None:
    """Return the panel of `kernel_check_plot`; None without pairs."""
    pairs = finite_pairs(check.exact, check.estimated) if check else []
    if not check or not pairs:
        return None
    rows = []
    for group in group_pairs(pairs):
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
        kernel_check_plot(check),
        f"Scatter plot of {html.count(len(pairs), 'pair')} of rows: kernel values estimated by "
        f"{features} features against exact values; root mean squared error "
        f"{html.number(check.rms_error, 2)}.",
        f"Each point is a pair of rows. On the dashed line, the estimate from {features} "
        f"features is exact. Root mean squared error: {html.number(check.rms_error, 2)}.",
        PageTable(
            ["exact values", "pairs", "mean exact", "mean estimate", "RMS error"],
            rows,
            "The points, grouped by exact value",
        ),
    )
