"""Choosing an instruction set, by function and by environment variable."""

import os
import subprocess
import sys

import pytest

from kernelmill import _native, runtime

pytestmark = pytest.mark.representative

SHOW = "import kernelmill; print(kernelmill.runtime.get_isa())"


def run(environment):
    return subprocess.run(
        [sys.executable, "-c", SHOW],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_strongest_is_the_default():
    assert run({"KERNELMILL_ISA": ""}).stdout.strip() == runtime.available_isas()[-1]


def test_the_environment_variable_forces_one(isa):
    assert run({"KERNELMILL_ISA": isa}).stdout.strip() == isa


def test_an_unknown_name_raises_with_the_list():
    result = run({"KERNELMILL_ISA": "mmx"})
    assert result.returncode != 0
    names = ", ".join(runtime.available_isas())
    message = f"ValueError: The value of KERNELMILL_ISA 'mmx' is unknown; choose one of: {names}."
    assert message in result.stderr
    with pytest.raises(ValueError, match=f"The instruction set 'mmx' is unknown.*{names}"):
        runtime.set_isa("mmx")


def test_one_that_the_cpu_lacks_raises_with_the_list():
    lacking = [i for i in _native.built_isas() if i not in runtime.available_isas()]
    if not lacking:
        pytest.skip("this CPU runs every instruction set of the build")
    with pytest.raises(ValueError, match="not supported by this CPU; choose one of"):
        runtime.set_isa(lacking[0])
