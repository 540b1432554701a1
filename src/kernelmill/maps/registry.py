"""The feature maps by name: learners, model files, the command line and tests look them up here."""

from __future__ import annotations

from typing import Any

from kernelmill.formatting import plain
from kernelmill.maps.additive_fourier import AdditiveFourierMap
from kernelmill.maps.base import FeatureMap
from kernelmill.maps.dot_product_fastfood import DotProductFastfoodMap
from kernelmill.maps.fastfood import FastfoodMap
from kernelmill.maps.gaussian_templates import GaussianTemplatesMap
from kernelmill.maps.nystroem import NystroemMap
from kernelmill.maps.principal_fourier import PrincipalFourierMap
from kernelmill.maps.random_fourier import RandomFourierMap
from kernelmill.maps.random_maclaurin import RandomMaclaurinMap
from kernelmill.maps.taylor_sketch import TaylorSketchMap
from kernelmill.maps.tensor_sketch import CountSketchMap, TensorSketchMap

__all__ = ["FAMILIES", "describe_construction", "map_name", "map_parameters"]

FAMILIES: dict[str, type[FeatureMap]] = {
    "fastfood": FastfoodMap,
    "random_fourier": RandomFourierMap,
    "nystroem": NystroemMap,
    "additive_fourier": AdditiveFourierMap,
    "principal_fourier": PrincipalFourierMap,
    "taylor_sketch": TaylorSketchMap,
    "gaussian_templates": GaussianTemplatesMap,
    "tensor_sketch": TensorSketchMap,
    "dot_product_fastfood": DotProductFastfoodMap,
    "random_maclaurin": RandomMaclaurinMap,
    "count_sketch": CountSketchMap,
}

_CONSTRUCTIONS = {  # by the name of the map, and by its parameter of constructions if it has one
    ("fastfood", "hadamard"): "Fastfood (Walsh-Hadamard)",
    ("fastfood", "sorf"): "SORF (Walsh-Hadamard)",
    ("fastfood", "dct"): "Fastfood with DCT",
    ("fastfood", "fft"): "Fastfood with FFT",
    ("random_fourier", "iid"): "dense matrix",
    ("random_fourier", "orthogonal"): "dense orthogonal matrix",
    ("random_fourier", "qmc"): "dense matrix of quasi-Monte Carlo points",
    ("nystroem", ""): "kernel values at landmarks (Nyström)",
    ("additive_fourier", ""): "random features, and steps of single columns",
    ("principal_fourier", ""): "random features of principal components",
    ("taylor_sketch", ""): "tensor sketches of a Taylor series",
    ("gaussian_templates", ""): "Gaussian bumps around random centres",
    ("tensor_sketch", ""): "products of count sketches (FFT)",
    ("dot_product_fastfood", ""): "polynomials of Fastfood directions",
    ("random_maclaurin", ""): "products of random signs",
    ("count_sketch", ""): "count sketch",
}


def describe_construction(feature_map: Any) -> str:
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
    name = map_name(feature_map)
    if name is None:
        return ""
    if getattr(feature_map, "factors", None) is not None:
        return "Fastfood with custom factors"
    if name == "nystroem" and feature_map.linear:
        return "kernel values at landmarks (Nyström), with a linear kernel"
    directions = getattr(feature_map, "directions_", None)
    if directions is not None:
        return f"random features of {plain.count(len(directions), 'principal component')}"
    steps = getattr(feature_map, "steps_", None)
    if steps is not None:
        shown = f"{plain.count(len(steps), 'step')} of single columns"
        return f"random features, and {shown} with weight {plain.number(feature_map.weight)}"
    variant = {"fastfood": "structure", "random_fourier": "sampling"}.get(name, "")
    return _CONSTRUCTIONS[name, getattr(feature_map, variant, "")]


def map_name(feature_map: Any) -> str | None:
    """Return the name of a map's class; None for subclasses and other objects.

    Examples
    --------
    >>> from kernelmill import Fastfood
    >>> from kernelmill.maps.registry import map_name
    >>> map_name(Fastfood(n_components=10))
    'fastfood'
    """
    if not type(feature_map).__module__.startswith("kernelmill.maps."):
        return None  # subclasses may have other code
    return next(
        (name for name, family in FAMILIES.items() if isinstance(feature_map, family)), None
    )


def map_parameters(name: str) -> tuple[str, ...]:
    """Return the names of the parameters of a map.

    Examples
    --------
    >>> from kernelmill.maps.registry import map_parameters
    >>> map_parameters("count_sketch")
    ('hashing', 'n_components', 'n_threads', 'random_state')
    """
    return FAMILIES[name]._parameter_names()
