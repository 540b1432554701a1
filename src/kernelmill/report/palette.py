"""The colours of a page and its plots, for light and for dark surroundings.

Figures are drawn in the light colours. Each of them is used for one purpose only, so that the SVG
text of a figure can have them replaced by the CSS variable of that purpose, whose value depends on
what the reader prefers.
"""

from __future__ import annotations

__all__ = ["COLOURS", "SERIES", "css_variables", "light"]

# purpose: (light, dark). Text has a contrast of at least 4.5 to the surfaces, lines at least 3.
COLOURS = {
    "page": ("#f5f6f8", "#101418"),
    "card": ("#ffffff", "#191f25"),
    "sunken": ("#eef1f4", "#222a32"),
    "ink": ("#1b232c", "#e7ebf0"),
    "muted": ("#55606c", "#a3afbb"),
    "line": ("#d9dee4", "#343e48"),
    "grid": ("#e3e7ec", "#2c353e"),
    "accent": ("#0f5c9e", "#7cc0f5"),
    "blue": ("#1a66a8", "#6cb4ee"),
    "orange": ("#b3470e", "#f0975e"),
    "green": ("#0b7459", "#52c69d"),
    "purple": ("#86478f", "#d19bdb"),
    "olive": ("#7a6200", "#d6b945"),
    "rose": ("#b02a5b", "#f28fb2"),
}

# The colours of lines, in order.
SERIES = ("blue", "orange", "green", "purple", "olive", "rose")


def light(purpose: str) -> str:
    """The colour that figures are drawn in for this purpose."""
    return COLOURS[purpose][0]


def css_variables(*, dark: bool) -> str:
    """Declarations of all colours, for one of the two schemes."""
    return " ".join(f"--{name}: {pair[dark]};" for name, pair in COLOURS.items())
