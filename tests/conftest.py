"""Fixtures that several test files share."""

import pytest

from kernelmill import runtime


@pytest.fixture(params=runtime.available_isas())
def isa(request):
    """Run a test once on every instruction set that this machine has."""
    before = runtime.get_isa()
    runtime.set_isa(request.param)
    yield request.param
    runtime.set_isa(before)
