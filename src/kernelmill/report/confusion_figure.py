"""Which classes are taken for which."""

from __future__ import annotations

import math

from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from kernelmill.formatting import html, shorten
from kernelmill.report.drawing import drawing_style, new_figure
from kernelmill.report.palette import light

__all__ = ["MAX_OPACITY", "confusion_figure", "most_confused", "usable_confusion"]

MAX_CLASSES = 60  # of one heat map: above it, a class would be thinner than a line
MAX_NUMBERED = 10
N_LEVELS = 16  # of darkness; cells of one level are one shape, which keeps the page small
MAX_OPACITY = 0.5  # text over a cell keeps its contrast


def usable_confusion(classes: list[str] | None, confusion: list[list[int]] | None) -> bool:
    """Whether there is a square matrix of these classes, with rows in it."""
    return bool(
        classes
        and confusion
        and len(confusion) == len(classes)
        and all(len(row) == len(classes) for row in confusion)
        and any(map(any, confusion))
    )


def most_confused(confusion: list[list[int]], n_classes: int = MAX_CLASSES) -> list[int]:
    """The classes in most wrong predictions, as many as asked for, in their order."""
    wrong = [
        sum(row) + sum(other[k] for other in confusion) - 2 * row[k]
        for k, row in enumerate(confusion)
    ]
    ranked = sorted(range(len(confusion)), key=lambda k: -wrong[k])
    return sorted(ranked[:n_classes])


@drawing_style()
def confusion_figure(classes: list[str], confusion: list[list[int]]) -> Figure:
    """Draw a confusion matrix as a heat map: right answers in blue, wrong ones in orange.

    Parameters
    ----------
    classes : list of str
        Their names.
    confusion : list of list of int
        Numbers of rows, of a true class (row) that were predicted as another (column).

    Returns
    -------
    matplotlib.figure.Figure
        Each cell as strong as its share of the true class. Of more than 60 classes, the 60 with the
        most wrong predictions.

    Examples
    --------
    >>> from kernelmill.report import confusion_figure
    >>> figure = confusion_figure(["no", "yes"], [[40, 2], [5, 20]])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['40', '2', '5', '20']
    """
    if not usable_confusion(classes, confusion):
        raise ValueError(
            "confusion must be a square matrix with a row and a column for each of classes, and "
            f"some rows counted, got {len(confusion)} rows for {len(classes)} classes."
        )
    shown = most_confused(confusion)
    n = len(shown)
    figure = new_figure(height=330)
    axes = figure.subplots()
    cells: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for i, true in enumerate(shown):
        total = sum(confusion[true]) or 1
        for j, guess in enumerate(shown):
            value = confusion[true][guess]
            if value:
                # The root, so that rare mistakes can be seen at all.
                level = math.ceil(N_LEVELS * (value / total) ** 0.5)
                cells.setdefault(("blue" if i == j else "orange", level), []).append((j, i))
            if n <= MAX_NUMBERED and (value or n <= 6):
                text = html.count(value) if n <= 4 else html.compact(value)
                small = 10.5 if n <= 6 else 8.5
                axes.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=small)
    for (colour, level), places in cells.items():
        opacity = 0.04 + (MAX_OPACITY - 0.04) * level / N_LEVELS
        axes.add_patch(
            PathPatch(
                _squares(places),
                facecolor=light(colour),
                edgecolor="none",
                alpha=opacity,
                in_layout=False,
            )
        )
    step = -(-n // 20)
    ticks = [k + 0.5 for k in range(0, n, step)]
    names = [shorten(classes[shown[k]], 12, keep_end=4) for k in range(0, n, step)]
    fontsize = 9.5 if n <= 12 else 8.0
    upright = n > 4 and max(map(len, names)) * n > 30
    axes.set_xticks(ticks, names, rotation=90 if upright else 0, fontsize=fontsize)
    axes.set_yticks(ticks, names, fontsize=fontsize)
    axes.set(xlim=(0, n), ylim=(n, 0), xlabel="predicted", ylabel="true")
    axes.set_aspect("equal")
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[["right", "top"]].set_visible(True)
    return figure


def _squares(places: list[tuple[int, int]]) -> Path:
    """One path of unit squares, with their upper left corners at these places."""
    corners = ((0, 0), (1, 0), (1, 1), (0, 1), (0, 0))
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    return Path([(x + dx, y + dy) for x, y in places for dx, dy in corners], codes * len(places))
