"""Estimated against exact kernel values, as in Figure 4.1 of Sivertsen's thesis."""

from __future__ import annotations

from matplotlib.figure import Figure

from kernelmill.formatting import is_number
from kernelmill.report.drawing import WIDTH, drawing_style, new_figure
from kernelmill.report.palette import light
from kernelmill.workflows.records import KernelCheck

__all__ = ["draw_against", "finite_pairs", "kernel_check_figure"]

MAX_POINTS = 2000


def finite_pairs(x: list[float], y: list[float]) -> list[tuple[float, float]]:
    """The pairs of which both are numbers."""
    return [(a, b) for a, b in zip(x, y, strict=False) if is_number(a) and is_number(b)]


@drawing_style()
def kernel_check_figure(check: KernelCheck) -> Figure:
    """Draw a point for each pair of rows: the exact value of the kernel and its estimate.

    Parameters
    ----------
    check : KernelCheck
        With at least one pair.

    Returns
    -------
    matplotlib.figure.Figure
        Of which 2000 evenly chosen points are drawn where there are more.

    Examples
    --------
    >>> from kernelmill.report import kernel_check_figure
    >>> from kernelmill.workflows.records import KernelCheck
    >>> check = KernelCheck([0.1, 0.5, 1.0], [0.12, 0.47, 1.0], rms_error=0.02, n_components=512)
    >>> kernel_check_figure(check).axes[0].get_xlabel()
    'exact kernel value'
    """
    pairs = finite_pairs(check.exact, check.estimated)
    return draw_against(pairs, "exact kernel value", "estimate by features")


def draw_against(pairs: list[tuple[float, float]], x_label: str, y_label: str) -> Figure:
    """Points around the diagonal, both axes alike."""
    if not pairs:
        raise ValueError("the record must hold at least one pair of numbers to draw, got none.")
    step = -(-len(pairs) // MAX_POINTS)
    x, y = zip(*pairs[::step], strict=True)
    low, high = min(*x, *y), max(*x, *y)
    margin = 0.04 * (high - low) or 0.5
    figure = new_figure(height=310, width=WIDTH)
    axes = figure.subplots()
    ends = (low - margin, high + margin)
    axes.plot(ends, ends, color=light("ink"), linewidth=1, dashes=(4, 3), zorder=3)
    alpha = 0.75 if len(x) <= 100 else 0.4
    axes.plot(x, y, linestyle="", marker="o", markersize=3.4, color=light("blue"), alpha=alpha)
    axes.set(xlim=ends, ylim=ends, xlabel=x_label, ylabel=y_label)
    axes.set_aspect("equal")
    axes.locator_params(nbins=6)
    return figure
