"""The cost of `import kernelmill`, and the stub of the extension module."""

import ast
import builtins
import subprocess
import sys
from pathlib import Path

import pytest

import kernelmill
from kernelmill import _native

pytestmark = pytest.mark.representative

HEAVY = {"matplotlib", "pandas", "pyarrow", "dask", "sklearn", "IPython"}


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    ).stdout


def test_is_light():
    """No more modules than numpy, scipy.linalg and scikit-learn's base load, and no heavy ones."""
    show = "import sys; print('\\n'.join(sys.modules))"
    base = run("import numpy, scipy.linalg, sklearn.base; " + show).split()
    ours = run("import kernelmill; " + show).split()
    assert not {m.split(".")[0] for m in ours} & HEAVY
    assert len(ours) <= len(base)


def test_modules_import_only_the_native_module_from_the_package_itself():
    """Not visible to the import contract: `from kernelmill import name` inside the package."""
    package = Path(kernelmill.__file__).parent
    for path in package.rglob("*.py"):
        if path == package / "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "kernelmill":
                assert [alias.name for alias in node.names] == ["_native"], path
            if isinstance(node, ast.Import):
                assert "kernelmill" not in [alias.name for alias in node.names], path


def test_every_class_has_a_name_of_its_own():
    package = Path(kernelmill.__file__).parent
    homes = {}
    for path in package.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(str(path.relative_to(package)))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_public_names_exist():
    for module in (kernelmill, kernelmill.random, kernelmill.runtime, kernelmill.transforms):
        for name in module.__all__:
            assert getattr(module, name) is not None
        assert list(module.__all__) == sorted(module.__all__)


def test_star_import_hides_neither_modules_of_the_standard_library_nor_builtins():
    """`import io, random` before it, and `from kernelmill import io` still work."""
    package = Path(kernelmill.__file__).parent
    taken = {*sys.stdlib_module_names, *dir(builtins)} - {"__doc__"}
    for path in package.rglob("__init__.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                assert not taken & set(ast.literal_eval(node.value)), path
    names = {}
    exec("import io, random\nfrom kernelmill import *", names)
    assert names["io"].StringIO
    assert names["random"].randrange
    assert {"io", "random"} <= set(dir(kernelmill))
    for name in ("io", "random"):
        assert getattr(kernelmill, name).__name__ == f"kernelmill.{name}"


def test_version_is_that_of_the_installed_package():
    from importlib.metadata import version

    assert version("kernelmill") == kernelmill.__version__


def test_stub_names_every_native_function():
    stub = Path(kernelmill.__file__).with_name("_native.pyi")
    described = {n.name for n in ast.parse(stub.read_text()).body if isinstance(n, ast.FunctionDef)}
    actual = {n for n in dir(_native) if not n.startswith("__") and callable(getattr(_native, n))}
    assert described == actual
