"""The section Parameters that draws share, whether or not the compiler dedents docstrings."""

import inspect

import pytest

from kernelmill.random import Stream
from kernelmill.random.docstrings import PARAMETERS, describes_parameters

DRAWS = [
    name
    for name, method in inspect.getmembers(Stream, inspect.isfunction)
    if not name.startswith("_") and set(inspect.signature(method).parameters) & set(PARAMETERS)
]


def read_sections(text):
    """The lines under each underlined heading; those before the first under the empty heading."""
    sections, heading = {"": []}, ""
    lines = text.splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line and below == "-" * len(line):
            heading = line
            sections[heading] = []
        elif not (heading and line == "-" * len(heading)):
            sections[heading].append(line)
    return sections


@pytest.mark.representative
@pytest.mark.parametrize("name", DRAWS)
def test_sections_of_draws(name):
    method = getattr(Stream, name)
    sections = read_sections(inspect.getdoc(method))
    assert list(sections) == ["", "Parameters", "Examples"]
    summary, blank, *_ = sections[""]
    assert summary.endswith(".")
    assert not blank
    described = [line.split(" : ")[0] for line in sections["Parameters"] if " : " in line]
    assert described == [p for p in inspect.signature(method).parameters if p != "self"]
    assert all(line.startswith("    ") for line in sections["Parameters"][1:-1:2])
    assert sections["Parameters"][-1] == "", "a blank line before the examples"
    assert all(line.startswith((">>>", " ", "array", "True", "(")) for line in sections["Examples"])


def test_draws_are_found():
    assert {"uniforms", "normals", "integers", "sphere", "permutation", "sign_hash"} <= set(DRAWS)


@pytest.mark.representative
def test_indentation_does_not_matter():
    """Compilers up to Python 3.12 keep the indentation of docstrings, later ones remove it."""
    indented = (
        "Draw.\n\n        More.\n\n        Examples\n        --------\n        >>> 1\n        "
    )

    def draw(self, size, *, start=0):
        pass

    texts = []
    for text in (indented, inspect.cleandoc(indented) + "\n"):
        draw.__doc__ = text
        texts.append(describes_parameters()(draw).__doc__)
    assert texts[0] == texts[1]
    assert list(read_sections(texts[0])) == ["", "Parameters", "Examples"]
    assert "\nsize : int or tuple of int\n    The shape" in texts[0]
