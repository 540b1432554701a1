"""What goes wrong: exit codes, one clear line, the next move, and JSON for machines."""

import errno
import json

import click
import pytest

from kernelmill.cli.commands import doctor
from kernelmill.cli.program import group
from kernelmill.cli.program.errors import Interrupted, report_error
from kernelmill.cli.render.option_words import in_words_of_options


@pytest.fixture
def failing(monkeypatch):
    """Make `kernelmill doctor` raise."""

    def fail_with(error):
        def raise_it():
            raise error

        monkeypatch.setattr(doctor, "versions", raise_it)

    return fail_with


@pytest.mark.parametrize(
    ("arguments", "message", "move"),
    [
        (["fot"], "there is no command 'fot'", "did you mean fit"),
        (["xyzzy"], "there is no command 'xyzzy'", "kernelmill --help"),
        (["--jsno"], "there is no option --jsno", "did you mean --json?"),
        (
            ["fit", "a.csv", "--targte", "x"],
            "there is no option --targte",
            "did you mean --target?",
        ),
        (["fit"], "DATA is missing", "kernelmill fit --help"),
        (["predict", "m", "d"], "--out is missing", "kernelmill predict --help"),
        (["fit", "a.csv", "--seed", "x"], "invalid value for '--seed'", "kernelmill fit --help"),
        (
            ["fit", "a.csv", "--map", "fastfod"],
            "invalid value for '--map'",
            "kernelmill fit --help",
        ),
        (["doctor", "what"], "got unexpected extra argument", "kernelmill doctor --help"),
    ],
)
def test_wrong_usage_exits_with_2_and_names_the_move(run, arguments, message, move):
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    first, second = err.splitlines()
    assert first.startswith(f"error: {message}")
    assert second.startswith(f"try: {move}")
    code, out, _ = run(*arguments, "--json")
    assert code == 2
    error = json.loads(out)["error"]
    assert error["exit_code"] == 2
    assert error["message"].startswith(message)
    assert error["try"].startswith(move)


@pytest.mark.parametrize(
    ("error", "message", "move"),
    [
        (ValueError("alpha must be positive, got -1; raise it."), "--alpha must be", "raise it"),
        (ValueError("no move here"), "no move here", None),
        (MemoryError(), "there is not enough memory", "fewer features (--n-components)"),
        (MemoryError("Unable to allocate 8 GiB."), "Unable to allocate 8 GiB", "fewer features"),
        (
            PermissionError(errno.EACCES, "Permission denied", "x.csv"),
            "x.csv: permission",
            "change",
        ),
        (OSError(errno.ENOSPC, "No space left", "x.csv"), "x.csv: no space left", "free some"),
        (OSError("the library's own words; do this"), "the library's own words", "do this"),
        (click.ClickException("bad file; mend it"), "bad file", "mend it"),
    ],
)
def test_failed_work_exits_with_1_without_a_traceback(run, failing, error, message, move):
    failing(error)
    code, out, err = run("doctor")
    assert code == 1
    assert out == ""
    assert err.startswith(f"error: {message}")
    assert "Traceback" not in err
    tries = [line for line in err.splitlines() if line.startswith("try: ")]
    assert len(tries) == (move is not None)
    assert all(line.startswith(f"try: {move}") for line in tries)


def test_unknown_exceptions_say_how_to_see_the_traceback(run, failing):
    failing(ZeroDivisionError("division by zero"))
    code, _, err = run("doctor", "--quiet")
    assert code == 1
    assert err.splitlines() == [
        "error: unexpected: ZeroDivisionError: division by zero",
        "try: kernelmill doctor --quiet --debug  (shows the traceback)",
    ]
    code, _, err = run("doctor", "--debug")
    assert code == 1
    assert err.startswith("Traceback (most recent call last)")
    assert "error: unexpected: ZeroDivisionError" in err


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
    failing(Interrupted("interrupted: checkpoint kept; run again with --resume"))
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

    monkeypatch.setattr(doctor, "versions", warn)
    assert run("doctor")[2] == "warning: take care\n"
    assert run("doctor", "--quiet")[2] == ""


def test_missing_files_have_near_names(tmp_path):
    (tmp_path / "adult.data").touch()
    wanted = str(tmp_path / "adlut.data")
    problem = report_error(FileNotFoundError(errno.ENOENT, "No such file or directory", wanted))
    assert problem.message == f"{wanted}: no such file or directory"
    assert problem.remedy == f"did you mean {tmp_path / 'adult.data'}?"
    nowhere = str(tmp_path / "no" / "x.csv")
    problem = report_error(FileNotFoundError(errno.ENOENT, "No such file or directory", nowhere))
    assert "does not exist either" in problem.remedy
    other = str(tmp_path / "zzz")
    problem = report_error(FileNotFoundError(errno.ENOENT, "No such file or directory", other))
    assert problem.remedy == f"look at what is there: ls {tmp_path}"


@pytest.mark.parametrize(
    ("library", "ours"),
    [
        ("set missing='impute'", "set --missing impute"),
        ("feature_map must be known", "--map must be known"),
        ("random_state=3 or n_threads=2", "--seed 3 or --threads 2"),
        ("header=True, tune=False", "--header, --no-tune"),
        ("categorical=['age', 'zip code']", "--categorical age --categorical 'zip code'"),
        ("say task='regression' (--task regression).", "say --task regression."),
        ("categorical=['age'] / --categorical age)", "--categorical age)"),
        ("the target 'kernel=x' is text", "the target 'kernel=x' is text"),
        ("name its format: format=... / --format.", "name its format: --format."),
        ("Give target (--target), one of: a, b.", "Give --target, one of: a, b."),
        ("my_alpha=3 is no option", "my_alpha=3 is no option"),
        ("leave it out: drop=['when'] (--drop when).", "leave it out: --drop when."),
        ("leave it out (drop=['when'], --drop 'when').", "leave it out (--drop when)."),
        ("set categorical=['b'] (--categorical b), or", "set --categorical b, or"),
        ("skip_rows=2 (--skip-rows 2)", "--skip-rows 2"),
        ("skip_rows=2 (--skip-rows 2) or skip_rows=21", "--skip-rows 2 or --skip-rows 21"),
        ("drop=['a', 'b c'] (--drop a --drop 'b c')", "--drop a --drop 'b c'"),
        ("drop=['m (kg)', 'x]'], --drop 'm (kg)' --drop 'x]'", "--drop 'm (kg)' --drop 'x]'"),
        ("categorical=['zip code'] / --categorical zip code.", "--categorical 'zip code'."),
        ("drop=['x'] / --drop xylophone", "--drop x / --drop xylophone"),
        ("drop=[3] (--drop 3)", "--drop 3"),
        ("delimiter='\\t' (--delimiter tab)", "--delimiter tab"),
        ("tune=False (--no-tune)", "--no-tune"),
        ("keep_columns=True (--keep-columns) or std=True", "--keep-columns or --std"),
    ],
)
def test_parameters_become_options(library, ours):
    assert in_words_of_options(library) == ours


def test_the_move_is_after_the_last_semicolon_outside_of_quotes():
    problem = report_error(ValueError("line 3: 'a; b' has one; too few; use \"x; y\"."))
    assert problem.message == "line 3: 'a; b' has one; too few"
    assert problem.remedy == 'use "x; y"'


def test_answers_to_questions_are_moves():
    problem = report_error(ValueError("x.csv: which column? Give target (--target), one of: a, b."))
    assert problem.message == "x.csv: which column?"
    assert problem.remedy == "give --target, one of: a, b"


def test_every_command_has_a_module():
    from importlib import import_module

    for name, module in group.COMMANDS.items():
        assert import_module(module).command.name == name
