"""The feature map of a learner: a name, a kernelmill map or any transformer, made ready to fit."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from kernelmill.maps.registry import MAPS
from kernelmill.random import Stream

__all__ = ["unfitted_feature_map"]

COMPONENTS_OF_MAPS = 2048


def unfitted_feature_map(feature_map: Any, stream: Stream | None, n_threads: int | None) -> Any:
    """A copy of the map to be fitted; a name stands for that map with 2048 components.

    Seeds that the map leaves open are drawn from the learner's stream where it has one, so that
    one seed makes the whole learner repeatable; `n_threads` likewise.
    """
    if isinstance(feature_map, str):
        if feature_map not in MAPS:
            known = ", ".join(map(repr, MAPS))
            raise ValueError(
                f"feature_map must be one of {known}, or a transformer such as "
                f"Fastfood(n_components=4096), got {feature_map!r}."
            )
        copy: Any = MAPS[feature_map](n_components=COMPONENTS_OF_MAPS)
    elif isinstance(feature_map, type) or not (
        hasattr(feature_map, "fit") and hasattr(feature_map, "transform")
    ):
        raise TypeError(
            "feature_map must be a name such as 'fastfood', or a transformer with fit and "
            f"transform such as Fastfood(n_components=4096), got {feature_map!r}."
        )
    else:
        copy = clone(feature_map)
    _fill(copy, "n_threads", n_threads)
    if stream is not None:
        _fill(copy, "random_state", int(stream.substream("feature map").integers(1, 2**31)[0]))
    return copy


def _fill(transformer: Any, name: str, value: Any) -> None:
    """Set each parameter of this name, here and in nested transformers, that is None."""
    if value is None or not hasattr(transformer, "get_params"):
        return
    parameters = transformer.get_params(deep=True)
    open_ones = {
        key: value
        for key, current in parameters.items()
        if (key == name or key.endswith(f"__{name}")) and current is None
    }
    if open_ones:
        transformer.set_params(**open_ones)
