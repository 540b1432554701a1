"""Plots and tables as parts of the page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from markupsafe import Markup, escape
from matplotlib.figure import Figure

from kernelmill.report.plots.drawing import COLOURS, drawing_style

__all__ = [
    "PageTable",
    "Panel",
    "group_pairs",
]


@dataclass(frozen=True)
class PageTable:
    """Columns of text; all but the first `n_names` and those in `prose` hold numbers."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str
    n_names: int = 1
    prose: tuple[int, ...] = ()  # columns of words that wrap
    marked: frozenset[tuple[int, int]] = frozenset()  # (row, column) of emphasized cells


@dataclass(frozen=True)
class Panel:
    """A plot with its heading, its text alternative, how to read it, and its numbers."""

    key: str  # letters, digits and hyphens; unique on the page
    title: str
    figure: Figure = field(repr=False)
    alternative: str
    reading: str
    table: PageTable

    @property
    def svg(self) -> Markup:
        """The plot as an element of the page."""
        return inline_svg(self.figure, self.key, self.alternative)


def group_pairs(
    pairs: Sequence[tuple[float, float]], n_groups: int = 10
) -> list[list[tuple[float, float]]]:
    """Return the sorted pairs in at most `n_groups` groups of about the same size."""
    ordered = sorted(pairs)
    n_groups = min(n_groups, len(ordered))
    ends = [len(ordered) * k // n_groups for k in range(n_groups + 1)]
    return [ordered[a:b] for a, b in pairwise(ends)]


_VARIABLES = {pair[0]: f"var(--{name})" for name, pair in COLOURS.items()}


@drawing_style()
def inline_svg(figure: Figure, key: str, label: str) -> Markup:
    """Return the `<svg>` element of a figure, scaled to its container, in the colours of the page.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Drawn in the colours of the palette.
    key : str
        The prefix of all ids, which makes them unique on the page.
    label : str
        The text alternative.

    Returns
    -------
    markupsafe.Markup
        The same text for the same figure.
    """
    buffer = io.StringIO()
    with warnings.catch_warnings():
        # Names may be in any script: the reader's browser has fonts that matplotlib lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message=".*constrained_layout not applied.*")
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", metadata=nothing)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    box = re.search(r'viewBox="([^"]*)"', text)
    body = text[text.index(">") + 1 : text.rindex("</svg>")]
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    body = _unique_ids(body, key)
    # Inside tags only: a class may be called "#1a66a8".
    body = re.sub(r"<[^>]*>", lambda tag: _page_style(tag[0]), body)
    body = re.sub(r"\s*\n\s*", "\n", body)
    head = f'<svg viewBox="{box[1] if box else ""}" role="img" aria-label="{escape(label)}">'
    return Markup(head + body + "</svg>")  # matplotlib escapes the names in it


def _unique_ids(body: str, key: str) -> str:
    """Prefix the ids that are referred to by `key`, and remove the others."""
    body = body.replace("xlink:href=", "href=")
    used = set(re.findall(r'(?:href="#|url\(#)([\w.-]+)', body))
    body = re.sub(
        r' id="([^"]*)"',
        lambda found: f' id="{key}-{found[1]}"' if found[1] in used else "",
        body,
    )
    return re.sub(r'(href="#|url\(#)', rf"\g<1>{key}-", body)


def _page_style(tag: str) -> str:
    tag = re.sub(r"#[0-9a-f]{6}\b", lambda found: _VARIABLES.get(found[0], found[0]), tag)
    # "font: 10px 'DejaVu Sans', ..." becomes the size; the family is that of the page.
    tag = re.sub(r"font: (?:\w+ )*?([\d.]+)px [^;\"]*", r"font-size: \1px", tag)
    return re.sub(r"(\d+\.\d\d)\d+", r"\1", tag)
