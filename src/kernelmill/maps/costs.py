"""The cost of a map in a model file, before it is built: memory, and operations per row.

A map is stored as its seed, so a file of a few hundred bytes can request any amount of both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from kernelmill.errors import Remedy
from kernelmill.files import ModelFileError
from kernelmill.formatting import plain

__all__ = ["MOST_MEMORY", "MapCost", "check_cost", "estimate_cost"]

MOST_MEMORY = 8 << 30  # bytes, unless the caller allows more
_MOST_OPERATIONS = 10**10  # for each row: several seconds
_DENSE = (
    *("random_fourier", "additive_fourier"),  # the latter if its kernel is not radial
    *("gaussian_templates", "random_maclaurin", "nystroem"),
)


class MapCost(NamedTuple):
    """Upper estimates: the bytes of a map's coefficients, and the operations of one row."""

    n_bytes: int
    operations: int


def estimate_cost(record: Any) -> MapCost:
    """Estimate the cost of a map from its record; fields that are not integers count as 1.

    Dense maps draw a number for each column and feature, and each degree. Sketches and products of
    Hadamard matrices have some numbers for each column and degree, and for each feature.

    Examples
    --------
    >>> from kernelmill.maps.costs import estimate_cost
    >>> record = {"map": "random_fourier", "parameters": {"n_components": 1000},
    ...           "n_features_in": 50}
    >>> estimate_cost(record)
    MapCost(n_bytes=400000, operations=50000)
    """
    found = record if isinstance(record, dict) else {}
    parameters = found.get("parameters")
    n_features = _integer(parameters.get("n_components") if isinstance(parameters, dict) else 1)
    n_columns = _integer(found.get("n_features_in"))
    degree = max(map(_integer, _degrees(found)), default=1)
    if found.get("map") in _DENSE:
        size = n_columns * n_features * (degree if found.get("map") == "random_maclaurin" else 1)
        return MapCost(8 * size, size)
    transforms = n_features * (1 + math.ceil(math.log2(n_features + 1)))
    copies = degree * (degree if found.get("map") == "taylor_sketch" else 1)
    return MapCost(32 * (copies * n_columns + n_features), copies * (n_columns + 8 * transforms))


def check_cost(record: Any, max_memory: int) -> None:
    """Raise a ModelFileError for a map that takes more memory or time than a budget."""
    cost = estimate_cost(record)
    if cost.n_bytes > max_memory:
        raise ModelFileError(
            f"its map would take about {plain.size(cost.n_bytes)} of memory, and the budget is "
            f"{plain.size(max_memory)}",
            Remedy("increase the limit if you trust the file", max_memory=cost.n_bytes),
        )
    if cost.operations > _MOST_OPERATIONS and max_memory <= MOST_MEMORY:
        raise ModelFileError(
            f"its map would take about {cost.operations:.1e} operations for each row, more than "
            f"{_MOST_OPERATIONS:.0e}",
            Remedy("increase the limit if you trust the file", max_memory=2 * MOST_MEMORY),
        )


def _integer(value: Any) -> int:
    return value if type(value) is int and value > 0 else 1


def _degrees(value: Any) -> Iterator[Any]:
    """Return all values of fields called degree in a record, and the lengths of degree lists."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name in ("degree", "max_degree"):
                yield each
            elif name == "columns_of_degrees_" and isinstance(each, list):
                yield len(each)
            yield from _degrees(each)
