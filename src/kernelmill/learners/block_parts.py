"""What a block of rows consists of."""

from __future__ import annotations

from typing import Any

__all__ = ["unpacked"]


def unpacked(block: Any, number: int) -> tuple[Any, Any, Any]:
    """X, y and weights (or None) of one item of an iterable of blocks."""
    if not isinstance(block, (tuple, list)) or len(block) not in (2, 3):
        what = f"{len(block)} items" if isinstance(block, (tuple, list)) else type(block).__name__
        raise TypeError(
            f"Each block must be a tuple (X, y) or (X, y, sample_weight), got {what} as block "
            f"{number}."
        )
    X, y, *rest = block
    return X, y, rest[0] if rest else None
