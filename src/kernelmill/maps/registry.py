"""The feature maps by name: learners, model files, the command line and tests look them up here."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from kernelmill.errors import ArgumentError, ArgumentTypeError, Remedy
from kernelmill.maps.additive_fourier import AdditiveFourier
from kernelmill.maps.base import FeatureMap
from kernelmill.maps.dot_product_fastfood import DotProductFastfood
from kernelmill.maps.fastfood import Fastfood
from kernelmill.maps.gaussian_templates import GaussianTemplates
from kernelmill.maps.nystroem import Nystroem
from kernelmill.maps.principal_fourier import PrincipalFourier
from kernelmill.maps.random_fourier import RandomFourier
from kernelmill.maps.random_maclaurin import RandomMaclaurin
from kernelmill.maps.taylor_sketch import TaylorSketch
from kernelmill.maps.tensor_sketch import CountSketch, TensorSketch
from kernelmill.random import Stream

__all__ = [
    "MAPS",
    "AdditiveFourier",
    "CountSketch",
    "DotProductFastfood",
    "Fastfood",
    "GaussianTemplates",
    "Nystroem",
    "PrincipalFourier",
    "RandomFourier",
    "RandomMaclaurin",
    "TaylorSketch",
    "TensorSketch",
    "describe_construction",
    "make_feature_map",
    "map_name",
    "map_parameters",
]

MAPS: dict[str, type[FeatureMap]] = {
    family.name: family
    for family in (
        Fastfood,
        RandomFourier,
        Nystroem,
        AdditiveFourier,
        PrincipalFourier,
        TaylorSketch,
        GaussianTemplates,
        TensorSketch,
        DotProductFastfood,
        RandomMaclaurin,
        CountSketch,
    )
}

_COMPONENTS = 2048
"""The number of components of a map that is given by its name."""


def describe_construction(feature_map: object) -> str:
    """Return a short description of a map; "" for objects that are not maps of kernelmill.

    Examples
    --------
    >>> from kernelmill import Fastfood, RandomFourier
    >>> from kernelmill.maps.registry import describe_construction
    >>> describe_construction(Fastfood()), describe_construction(Fastfood(structure="sorf"))
    ('Fastfood (Walsh-Hadamard)', 'SORF (Walsh-Hadamard)')
    >>> describe_construction(RandomFourier(sampling="orthogonal"))
    'dense orthogonal matrix'
    """
    if not isinstance(feature_map, FeatureMap) or map_name(feature_map) is None:
        return ""
    return feature_map._describe()


def map_name(feature_map: object) -> str | None:
    """Return the name of a map's class; None for subclasses and other objects.

    Examples
    --------
    >>> from kernelmill import Fastfood
    >>> from kernelmill.maps.registry import map_name
    >>> map_name(Fastfood(n_components=10))
    'fastfood'
    """
    family = type(feature_map)  # subclasses may have other code
    return next((name for name, each in MAPS.items() if each is family), None)


def map_parameters(name: str) -> tuple[str, ...]:
    """Return the names of the parameters of a map.

    Examples
    --------
    >>> from kernelmill.maps.registry import map_parameters
    >>> map_parameters("count_sketch")
    ('hashing', 'n_components', 'n_threads', 'random_state')
    """
    return MAPS[name]._parameter_names()


def make_feature_map(feature_map: Any, stream: Stream | None, n_threads: int | None) -> Any:
    """Return an unfitted copy of the map; a name stands for that map with 2048 components.

    A seed that the map leaves open is drawn from the stream of the learner, if there is one, so
    that one seed makes the whole learner repeatable. `n_threads` is filled in the same way.
    """
    from sklearn.base import clone  # noqa: PLC0415 # maps from files are used without scikit-learn

    if isinstance(feature_map, str):
        if feature_map not in MAPS:
            known = ", ".join(map(repr, MAPS))
            raise ArgumentError(
                f"must be one of {known}, or a transformer such as Fastfood(n_components=4096), "
                f"got {feature_map!r}",
                *(
                    Remedy("use the map with a similar name", feature_map=each)
                    for each in get_close_matches(feature_map.lower(), MAPS, n=1)
                ),
                parameter="feature_map",
            )
        copy = MAPS[feature_map](n_components=_COMPONENTS)
    elif isinstance(feature_map, type) or not (
        hasattr(feature_map, "fit") and hasattr(feature_map, "transform")
    ):
        raise ArgumentTypeError(
            "must be a name such as 'fastfood', or a transformer with fit and transform such as "
            f"Fastfood(n_components=4096), got {feature_map!r}",
            parameter="feature_map",
        )
    else:
        copy = clone(feature_map)
    _fill(copy, "n_threads", n_threads)
    if stream is not None:
        _fill(copy, "random_state", int(stream.substream("feature map").integers(1, 2**31)[0]))
    return copy


def _fill(transformer: Any, name: str, value: object) -> None:
    """Set each parameter of this name that is None, also in nested transformers."""
    if value is None or not hasattr(transformer, "get_params"):
        return
    parameters = transformer.get_params(deep=True)
    missing = {
        key: value
        for key, current in parameters.items()
        if (key == name or key.endswith(f"__{name}")) and current is None
    }
    if missing:
        transformer.set_params(**missing)
