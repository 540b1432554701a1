"""Help, version and completion: their content, and that they import little."""

import json
import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import kernelmill
from kernelmill.cli.program.group import COMMANDS, program

HEAVY = {"sklearn", "pyarrow", "matplotlib", "scipy.linalg", "scipy.sparse", "jinja2", "pandas"}


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_lists_every_command_with_examples(run, arguments):
    code, out, err = run(*arguments)
    assert code == 0
    assert err == ""
    for name in COMMANDS:
        assert f"\n  {name} " in out
    assert "kernelmill fit adult.data --target 14" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_commands_fits_80_columns_and_has_examples(run, name):
    code, out, _ = run(name, "--help")
    assert code == 0
    assert f"Usage: kernelmill {name}" in out
    assert f"\n  kernelmill {name}" in out or f" kernelmill {name}" in out.split("Examples")[1]
    assert max(map(len, out.splitlines())) <= 80
    for option in ("--quiet", "--json", "--debug", "--no-color"):
        assert option in out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help(name):
    command = program.get_command(click.Context(program), name)
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


def test_version(run):
    assert run("--version") == (0, f"kernelmill, version {kernelmill.__version__}\n", "")


def modules_after(code, **variables):
    """What is imported at the end of a process that runs the code."""
    show = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
    done = subprocess.run(
        [sys.executable, "-c", show + code],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env=os.environ | variables,
    )
    assert done.stdout
    return set(done.stderr.split())


def test_help_imports_nothing_heavy():
    calls = [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)]
    calls += [["completion", "zsh"]]
    modules = modules_after(
        "from kernelmill.cli import main; "
        f"sys.exit(max(main(arguments) for arguments in {calls!r}))"
    )
    assert "kernelmill.cli.commands.fit" in modules  # the list is there
    assert not modules & HEAVY


def test_completion_imports_nothing_heavy():
    modules = modules_after(
        "from kernelmill.cli import main; main([])",
        _KERNELMILL_COMPLETE="bash_complete",
        COMP_WORDS="kernelmill fit --ma",
        COMP_CWORD="2",
    )
    assert "kernelmill.cli.commands.fit" in modules
    assert not modules & HEAVY


def completions(words, monkeypatch):
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    monkeypatch.setenv("_KERNELMILL_COMPLETE", "bash_complete")
    done = CliRunner().invoke(program, [], prog_name="kernelmill")
    return [line.partition(",")[2] for line in done.output.split()]


def test_completes_commands_options_and_values(monkeypatch):
    assert completions("kernelmill e", monkeypatch) == ["evaluate"]
    assert completions("kernelmill fit --n", monkeypatch) == [
        "--n-components",
        "--no-uncertainty",
        "--no-tune",
        "--no-column-scales",
        "--no-header",
        "--not-missing",
        "--numeric",
        "--no-color",
    ]
    assert completions("kernelmill fit --map tay", monkeypatch) == ["taylor_sketch"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_script_and_its_place(run, shell):
    code, out, err = run("completion", shell)
    assert code == 0
    assert "_KERNELMILL_COMPLETE" in out
    assert "put this into ~/" in err
    assert json.loads(run("completion", shell, "--json")[1])["script"] in out


def test_completion_script_is_accepted_by_bash(run):
    done = subprocess.run(
        ["bash", "-n"],
        input=run("completion", "bash")[1],
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
