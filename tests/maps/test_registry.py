"""One registry of maps: what is listed elsewhere agrees with it."""

import pytest

import kernelmill
from kernelmill import maps
from kernelmill.maps.base import FeatureMap
from kernelmill.maps.registry import describe_construction, map_name, map_parameters
from kernelmill.maps.transformers import MAPS

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
def test_all_parameters_are_stored(name):
    assert set(MAPS[name]._stored_parameters) == set(map_parameters(name))


def test_every_construction_has_a_name():
    structures = ("hadamard", "sorf", "dct", "fft")
    variants = [kernelmill.Fastfood(structure=structure) for structure in structures]
    variants += [kernelmill.RandomFourier(sampling=s) for s in ("iid", "orthogonal", "qmc")]
    variants += [family() for name, family in MAPS.items() if name not in CHOICES]
    names = [describe_construction(each) for each in variants]
    assert all(names)
    assert len(set(names)) == len(names)
    assert describe_construction(object()) == ""
