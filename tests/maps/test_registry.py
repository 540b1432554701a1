"""One registry of maps: what is listed elsewhere agrees with it."""

from inspect import Parameter, signature

import pytest

import kernelmill
from kernelmill import maps
from kernelmill.files.fields import declared_fields
from kernelmill.maps.base import FeatureMap
from kernelmill.maps.registry import MAPS, describe_construction, map_name, map_parameters

CHOICES = ("fastfood", "random_fourier")  # they have several constructions


def test_the_packages_export_every_map():
    names = {family.__name__ for family in MAPS.values()}
    for package in (kernelmill, maps):
        exported = {
            name
            for name in package.__all__
            if isinstance(getattr(package, name), type)
            and issubclass(getattr(package, name), FeatureMap)
        }
        assert exported == names


def test_names():
    for name, family in MAPS.items():
        assert map_name(family()) == name
        assert name.replace("_", "") == family.__name__.lower()

    class Custom(kernelmill.Fastfood):
        pass

    assert map_name(Custom()) is None


def test_every_map_is_in_the_table_of_tests(every_map):
    assert {type(each) for each in every_map} == set(MAPS.values())


@pytest.mark.parametrize("name", MAPS)
def test_at_most_one_parameter_is_positional(name):
    kinds = [each.kind for each in signature(MAPS[name]).parameters.values()]
    assert kinds.count(Parameter.KEYWORD_ONLY) >= len(kinds) - 1
    assert {"n_components", "random_state", "n_threads"} <= set(map_parameters(name))


@pytest.mark.parametrize("name", MAPS)
def test_all_parameters_are_stored(name):
    assert set(declared_fields(MAPS[name])) == set(map_parameters(name))


def test_every_construction_has_a_name():
    structures = ("hadamard", "sorf", "dct", "fft")
    variants = [kernelmill.Fastfood(structure=structure) for structure in structures]
    variants += [kernelmill.RandomFourier(sampling=s) for s in ("iid", "orthogonal", "qmc")]
    variants += [family() for name, family in MAPS.items() if name not in CHOICES]
    names = [describe_construction(each) for each in variants]
    assert all(names)
    assert len(set(names)) == len(names)
    assert describe_construction(object()) == ""
