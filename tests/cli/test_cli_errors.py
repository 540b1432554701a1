"""Errors: exit codes, the problem, the remedy with options, and JSON records."""

import errno
import inspect
import json
from importlib import import_module

import click
import pytest

from kernelmill.cli.commands import fit
from kernelmill.cli.program import group
from kernelmill.cli.program.errors import CommandError, Interrupted, report_error
from kernelmill.cli.program.options import Command
from kernelmill.cli.program.terminal import Terminal
from kernelmill.cli.render.messages import render_message
from kernelmill.cli.render.progress import ProgressBars
from kernelmill.errors import ArgumentError, Message, Remedy
from kernelmill.installation import checks
from kernelmill.io import open_table
from kernelmill.workflows import TableModel, compare_table, diagnose_table, fit_table


@pytest.fixture
def failing(monkeypatch):
    """Make `kernelmill doctor` raise."""

    def fail_with(error):
        def raise_it():
            raise error

        monkeypatch.setattr(checks, "list_versions", raise_it)

    return fail_with


@pytest.mark.parametrize(
    ("arguments", "message", "remedy"),
    [
        (["fot"], "there is no command 'fot'", "fit"),
        (["xyzzy"], "there is no command 'xyzzy'", "kernelmill --help"),
        (["--jsno"], "there is no option --jsno", "--json"),
        (
            ["fit", "a.csv", "--targte", "x"],
            "there is no option --targte",
            "--target",
        ),
        (["fit"], "DATA is missing", "kernelmill fit --help"),
        (["predict", "m", "d"], "--out is missing", "--out FILE, or --out - for standard output"),
        (["fit", "a.csv", "--seed", "x"], "invalid value for '--seed'", "kernelmill fit --help"),
        (
            ["fit", "a.csv", "--map", "fastfod"],
            "invalid value for '--map'",
            "kernelmill fit --help",
        ),
        (["doctor", "what"], "got unexpected extra argument", "kernelmill doctor --help"),
    ],
)
def test_wrong_usage_exits_with_2_and_a_remedy(run, arguments, message, remedy):
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    first, second = err.splitlines()
    assert first.startswith(f"error: {message}")
    assert second.startswith(f"try: {remedy}")
    code, out, _ = run(*arguments, "--json")
    assert code == 2
    error = json.loads(out)["error"]
    assert error["exit_code"] == 2
    assert error["message"].startswith(message)
    assert error["try"].startswith(remedy)


@pytest.mark.parametrize(
    ("error", "message", "remedy"),
    [
        (ArgumentError("must be even", "add 1", parameter="n"), "n must be even\n", "add 1"),
        (ValueError("alpha=1 is bad; sorry."), "alpha=1 is bad; sorry\n", None),
        (MemoryError(), "there is not enough memory", "close other programs"),
        (MemoryError("Unable to allocate 8 GiB."), "Unable to allocate 8 GiB", "close"),
        (
            PermissionError(errno.EACCES, "Permission denied", "x.csv"),
            "x.csv: permission",
            "change",
        ),
        (OSError(errno.ENOSPC, "No space left", "x.csv"), "x.csv: no space left", "free some"),
        (OSError("another library's words; sorry"), "another library's words; sorry\n", None),
        (CommandError("bad file", "fix it"), "bad file", "fix it"),
        (click.ClickException("bad file"), "bad file", None),
    ],
)
def test_failed_work_exits_with_1_without_a_traceback(run, failing, error, message, remedy):
    failing(error)
    code, out, err = run("doctor")
    assert code == 1
    assert out == ""
    assert err.startswith(f"error: {message}")
    assert "Traceback" not in err
    tries = [line for line in err.splitlines() if line.startswith("try: ")]
    assert len(tries) == (remedy is not None)
    assert all(line.startswith(f"try: {remedy}") for line in tries)


def test_unexpected_exceptions_suggest_debug(run, failing):
    failing(ZeroDivisionError("division by zero"))
    code, _, err = run("doctor", "--quiet")
    assert code == 1
    assert err.splitlines() == [
        "error: unexpected error: ZeroDivisionError: division by zero",
        "try: kernelmill doctor --quiet --debug  (shows the traceback)",
    ]
    code, _, err = run("doctor", "--debug")
    assert code == 1
    assert err.startswith("Traceback (most recent call last)")
    assert "error: unexpected error: ZeroDivisionError" in err


@pytest.mark.parametrize("before", [True, False])
def test_general_options_go_before_or_after_the_command(run, failing, before):
    failing(ValueError("bad"))
    code, out, _ = run("--json", "doctor") if before else run("doctor", "--json")
    assert code == 1
    assert json.loads(out) == {
        "error": {"kind": "ValueError", "message": "bad", "try": None, "exit_code": 1}
    }


def test_interrupts_exit_with_130(run, failing):
    failing(KeyboardInterrupt())
    code, out, err = run("doctor")
    assert (code, out) == (130, "")
    assert "error: interrupted" in err
    failing(Interrupted("interrupted: checkpoint kept", "run again with --resume"))
    code, _, err = run("doctor")
    assert code == 130
    assert err.splitlines() == [
        "error: interrupted: checkpoint kept",
        "try: run again with --resume",
    ]


def test_broken_pipes_are_silent(run, failing):
    failing(BrokenPipeError())
    assert run("doctor") == (141, "", "")


def test_warnings_are_one_line(run, monkeypatch):
    import warnings

    def warn():
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("take care", UserWarning, stacklevel=1)
        return {}

    monkeypatch.setattr(checks, "list_versions", warn)
    assert run("doctor")[2] == "warning: take care\n"
    assert run("doctor", "--quiet")[2] == ""


def test_similar_names_of_missing_files_are_suggested(tmp_path):
    (tmp_path / "adult.data").touch()
    wanted = str(tmp_path / "adlut.data")
    report = report_error(FileNotFoundError(errno.ENOENT, "No such file or directory", wanted))
    assert report.message == f"{wanted}: no such file or directory"
    assert report.remedy == str(tmp_path / "adult.data")
    nowhere = str(tmp_path / "no" / "x.csv")
    report = report_error(FileNotFoundError(errno.ENOENT, "No such file or directory", nowhere))
    assert "does not exist either" in report.remedy
    other = str(tmp_path / "zzz")
    report = report_error(FileNotFoundError(errno.ENOENT, "No such file or directory", other))
    assert report.remedy == f"list the folder: ls {tmp_path}"


COMMAND = Command(
    "fit",
    params=[
        click.Argument(["source"], metavar="DATA...", nargs=-1),
        click.Option(["--seed", "random_state"], type=int),
        click.Option(["--n-components", "-n"], type=int),
        click.Option(["--header/--no-header"], default=None),
        click.Option(["--std"], is_flag=True),
        click.Option(["--drop"], multiple=True),
        click.Option(["--map-option", "map_options"], multiple=True),
        next(each for each in fit.command.params if each.name == "delimiter"),
    ],
)


@pytest.mark.parametrize(
    ("settings", "rendered"),
    [
        ({"random_state": 3, "n_components": 8}, "--seed 3, --n-components 8"),
        ({"n_components": ...}, "--n-components"),
        ({"random_state": None}, "without --seed"),
        ({"header": True}, "--header"),
        ({"header": False}, "--no-header"),
        ({"std": True}, "--std"),
        ({"std": False}, "without --std"),
        ({"drop": ["age", "zip code"]}, "--drop age --drop 'zip code'"),
        (
            {"drop": ("m (kg)", "it's", "--x]")},
            """--drop 'm (kg)' --drop 'it'"'"'s' --drop '--x]'""",
        ),
        ({"drop": [3]}, "--drop 3"),
        ({"drop": []}, "without --drop"),
        ({"drop": "kernel=x"}, "--drop kernel=x"),
        ({"map_options": {"degree": 3}}, "--map-option degree=3"),
        ({"delimiter": "\t"}, "--delimiter tab"),
        ({"delimiter": ";"}, "--delimiter ';'"),
        ({"source": "a b.csv"}, "'a b.csv'"),
        ({"source": ...}, "DATA"),
        ({"degree": 3}, "degree: 3"),
        ({"degree": ...}, "degree"),
        ({"names": ["a", "b"]}, "names: a, b"),
    ],
)
def test_settings_of_remedies_become_options(settings, rendered):
    message = Message("no", Remedy("do it", **settings))
    assert render_message(message, COMMAND).remedy == f"do it ({rendered})"


@pytest.mark.parametrize(
    ("parameter", "name"),
    [("random_state", "--seed"), ("source", "DATA"), ("header", "--header"), ("degree", "degree")],
)
def test_parameters_of_problems_become_options(parameter, name):
    message = Message("must be known", parameter=parameter)
    assert render_message(message, COMMAND) == (f"{name} must be known", None)
    assert render_message(message, None) == (f"{parameter} must be known", None)


def test_remedies_are_alternatives():
    error = ArgumentError("bad; worse", Remedy("skip it", drop=["a"]), "stop")
    report = report_error(error, COMMAND)
    assert (report.message, report.remedy) == ("bad; worse", "skip it (--drop a), or stop")
    assert (report.kind, report.exit_code) == ("ArgumentError", 1)


def test_notes_name_options(capsys):
    terminal = Terminal(command=COMMAND)
    with ProgressBars(terminal) as progress:
        progress.note(Message("3 columns are constant", Remedy("leave one out", drop=["a"])))
        progress.note("as it is")
    assert capsys.readouterr().err.splitlines() == [
        "note: 3 columns are constant; leave one out (--drop a).",
        "note: as it is",
    ]
    assert progress.shown_notes[0].endswith("leave one out (drop=['a']).")


@pytest.mark.parametrize(
    ("function", "name"),
    [(fit_table, "fit"), (compare_table, "compare"), (TableModel.predict_table, "predict")],
)
def test_options_have_the_names_of_the_librarys_parameters(function, name):
    known = {*inspect.signature(function).parameters, *inspect.signature(open_table).parameters}
    command = import_module(f"kernelmill.cli.commands.{name}").command
    names = {parameter.name for parameter in command.params if parameter.expose_value}
    # `precision` (its `weights`) and `uncertainty` are for `TableModel.save`, `max_memory` is for
    # `load`.
    of_files = {"precision", "uncertainty", "max_memory"}
    assert names - known - of_files <= {"model", "out", "report", "resume", "help"}


@pytest.mark.parametrize(
    ("function", "name"),
    [(fit_table, "fit"), (compare_table, "compare"), (diagnose_table, "diagnose")],
)
def test_options_have_the_defaults_of_the_librarys_parameters(function, name):
    """They are written twice: `--help` must not import the library."""
    given = inspect.signature(function).parameters
    command = import_module(f"kernelmill.cli.commands.{name}").command
    defaults = {
        option.name: option.default
        for option in command.params
        if option.name in given and isinstance(option.default, (bool, int, float, str))
    }
    assert len(defaults) >= 3
    assert defaults == {key: given[key].default for key in defaults}


def test_every_command_has_a_module():
    for name in group.COMMANDS:
        assert import_module(f"kernelmill.cli.commands.{name}").command.name == name
