"""A figure as SVG text to be put into a page."""

from __future__ import annotations

import io
import re
import warnings

from markupsafe import Markup, escape
from matplotlib.figure import Figure

from kernelmill.report.drawing import drawing_style
from kernelmill.report.palette import COLOURS

__all__ = ["inline_svg"]

_VARIABLES = {pair[0]: f"var(--{name})" for name, pair in COLOURS.items()}


@drawing_style()
def inline_svg(figure: Figure, key: str, label: str) -> Markup:
    """The `<svg>` element of a figure: as wide as its place, in the colours of the page.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Drawn in the colours of the palette.
    key : str
        In front of all ids, so that several figures get on in one page.
    label : str
        The text alternative.

    Returns
    -------
    markupsafe.Markup
        The same text for the same figure.
    """
    buffer = io.StringIO()
    with warnings.catch_warnings():
        # Names may be written in any script: the reader's browser has fonts that matplotlib lacks.
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
    """Ids that something refers to begin with `key`; the others go."""
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
    # "font: 10px 'DejaVu Sans', ..." becomes the size alone; the family is that of the page.
    tag = re.sub(r"font: (?:\w+ )*?([\d.]+)px [^;\"]*", r"font-size: \1px", tag)
    return re.sub(r"(\d+\.\d\d)\d+", r"\1", tag)
