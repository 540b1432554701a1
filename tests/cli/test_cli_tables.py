"""Results in the terminal: readable at 80 columns and without colour."""

import io

import pytest
from rich.console import Console

from kernelmill.cli.program.terminal import Terminal
from kernelmill.cli.render.results import (
    render_columns,
    render_comparison,
    render_evaluation,
    render_relevance,
    render_summary,
)
from kernelmill.formatting import plain
from kernelmill.workflows.records import (
    Calibration,
    ColumnRelevance,
    ComparedModel,
    Comparison,
    Coverage,
    Evaluation,
    FitSummary,
    InputColumn,
)


@pytest.fixture
def printed(capsys, monkeypatch):
    """What a terminal of 80 columns shows."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def show(*parts):
        Terminal().give({}, *parts)
        text = capsys.readouterr().out
        assert not [line for line in text.splitlines() if line != line.rstrip()]
        return text

    return show


def classification(n_classes, count=100, **changes):
    confusion = [
        [count if i == j else (7 if j == i + 1 else 0) for j in range(n_classes)]
        for i in range(n_classes)
    ]
    values = {
        "task": "classification",
        "source": "adult.test",
        "n_rows": sum(map(sum, confusion)),
        "metrics": {
            "error": 0.146,
            "error_low": 0.135,
            "error_high": 0.159,
            "balanced_error": 0.2,
            "log_loss": 0.3214567,
            "auc": None,
        },
        "seconds": 0.5,
        "classes": [f"class {i}" for i in range(n_classes)],
        "confusion": confusion,
    }
    return Evaluation(**(values | changes))


def fits(text):
    return max(len(line) for line in text.splitlines()) <= 80


@pytest.mark.parametrize("n_classes", [1, 2, 3, 10, 12])
@pytest.mark.parametrize("count", [3, 1234])
@pytest.mark.parametrize("name", ["", "class "])
def test_confusion_matrices_are_shown_whole(printed, n_classes, count, name):
    classes = [f"{name}{i}" for i in range(n_classes)]
    text = printed(*render_evaluation(classification(n_classes, count, classes=classes)))
    assert fits(text)
    assert text.startswith("error 14.6 % on ")
    assert "(95 % interval 13.5 % to 15.9 %)" in text
    lines = text[text.index("Confusion matrix: ") :].splitlines()
    rows = [line.replace(name, "").split()[-n_classes - 3 :] for line in lines[3:]]
    assert len(rows) == n_classes
    for i, row in enumerate(rows):
        assert row[0] == str(i)
        entries = [0 if cell == "·" else int(cell) for cell in row[1:-2]]
        assert entries == [count if i == j else 7 * (j == i + 1) for j in range(n_classes)]
        assert row[-2:] == plain.percent(count / sum(entries)).split()


def test_matrices_that_are_too_wide_show_the_worst_pairs(printed):
    text = printed(*render_evaluation(classification(12, 1_000_000)))
    assert fits(text)
    assert "Most frequent errors among 12 classes" in text


def test_many_classes_show_the_worst_pairs(printed):
    evaluation = classification(40)
    evaluation.confusion[3][5] = 50
    text = printed(*render_evaluation(evaluation))
    assert fits(text)
    assert "Most frequent errors among 40 classes" in text
    first = next(line for line in text.splitlines() if line.split()[:2] == ["class", "3"])
    assert first.split()[:5] == ["class", "3", "class", "5", "50"]


def test_metrics_without_values_are_left_out(printed):
    text = printed(*render_evaluation(classification(2)))
    assert "log loss" in text
    assert "0.3215" in text
    assert "ROC" not in text
    assert "None" not in text


def test_long_and_odd_names_do_not_break_tables(printed):
    names = ["[bold red]x[/]", "a very long name of a class that goes on and on", ":smile:"]
    text = printed(*render_evaluation(classification(3, classes=names)))
    assert fits(text)
    assert "[bold red]x[/]" in text
    assert ":smile:" in text
    assert "2 a very long n…" in text


def test_calibration_and_coverage(printed):
    calibration = Calibration([0.55, 0.95], [0.5, 0.96], [20, 1000])
    text = printed(*render_evaluation(classification(2, calibration=calibration)))
    assert ["95.0", "%", "96.0", "%", "1,000"] in [line.split() for line in text.splitlines()]
    metrics = {"rmse": 0.61234, "mae": 0.5, "r2": 0.4, "target_std": 0.88}
    regression = Evaluation(
        "regression", "w.csv", 490, metrics, 0.1, coverage=Coverage([0.9], [0.913])
    )
    text = printed(*render_evaluation(regression))
    assert text.startswith("root mean squared error 0.6123 on 490 rows (std of the target: 0.88)")
    assert ["90.0", "%", "91.3", "%"] in [line.split() for line in text.splitlines()]
    assert fits(text)


def summary(**changes):
    values = {
        "task": "classification",
        "source": "adult.data",
        "target": "income",
        "n_rows": 29305,
        "n_held_out": 3256,
        "columns": [
            InputColumn("age", "numeric", 1, 0, "mean 38.6, std 13.6"),
            InputColumn("a name that is very long " * 3, "category", 16, 1836, "16 categories"),
        ],
        "n_inputs": 17,
        "map_name": "fastfood",
        "kernel": "Gaussian()",
        "n_components": 4096,
        "length_scale": 3.21987,
        "alpha": 1e-5,
        "loss": "log_loss",
        "seed": 0,
        "seconds": {"train": 125.0, "read": 0.41, "tune": 3.1},
        "peak_memory": 312_000_000,
        "classes": [f"c{i}" for i in range(30)],
        "held_out": classification(2, source="adult.data: held-out rows"),
        "notes": ["no header: columns are numbered"],
        "version": "0.1",
        "created": "2026-11-16T08:00:00Z",
    }
    return FitSummary(**(values | changes))


def test_summaries_say_what_the_model_is(printed):
    text = printed(*render_summary(summary()), *render_columns(summary().columns))
    assert fits(text)
    assert text.startswith("Held out: error 14.6 % on")
    assert "note: no header: columns are numbered" in text
    assert "29,305 for training, 3,256 held out" in text
    assert "30: c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, …" in text
    assert "fastfood, Gaussian kernel, 4,096 features, length scale 3.22" in text
    assert "read 0.41 s, tune 3.1 s, train 2 min 5 s" in text
    assert "312 MB" in text
    assert "1,836" in text


def test_notes_are_not_repeated(printed):
    made = summary(notes=["shown before", "new"])
    text = printed(*render_summary(made, shown_notes=["shown before"]))
    assert "shown before" not in text
    assert "note: new" in text


def test_summaries_leave_out_what_is_not_there(printed):
    bare = summary(classes=None, held_out=None, length_scale=None, peak_memory=None, n_held_out=0)
    text = printed(*render_summary(bare))
    for word in ("Held out", "classes", "length scale", "peak", "None"):
        assert word not in text


def test_relevance_is_a_short_table(printed):
    columns = [
        ColumnRelevance(f"column {k}" + " with a long name" * 8 * (k == 1), 0.9**k, 0.8**k, 0.95**k)
        for k in range(200)
    ]
    text = printed(*render_relevance(summary(column_relevance=columns)))
    assert fits(text)
    assert "Column relevance: the first 10" in text
    assert ["column", "2", "0.81", "0.64", "to", "0.9"] in [x.split() for x in text.splitlines()]
    assert "190 other columns: at most 0.35" in text
    assert len(text.splitlines()) < 22
    three = columns[2:5]
    text = printed(*render_summary(summary(column_relevance=three)))
    assert "Most relevant: column 2 (0.81), column 3 (0.73), column 4 (0.66)" in text
    assert "length scale 3.22 (mean over columns)" in " ".join(text.split())
    given = [ColumnRelevance("a", 1.0)]
    assert "None" not in printed(*render_relevance(summary(column_relevance=given)))


def test_one_length_scale_for_all_columns(printed):
    assert "all columns have the same length scale" in printed(*render_relevance(summary()))
    assert "Most relevant" not in printed(*render_summary(summary()))
    assert list(render_relevance(summary(length_scale=None))) == []


def test_tables_of_many_columns_end(printed):
    columns = [InputColumn(f"pixel {i}", "numeric", 1) for i in range(784)]
    text = printed(*render_columns(columns))
    assert "the first 40 of 784" in text
    assert len(text.splitlines()) < 50


def comparison(task="classification"):
    models = [
        ComparedModel("linear", "linear", None, 1000, 0.11, 0.01, 0.001, 10_000_000),
        ComparedModel("fastfood", "features", 256, 1000, 0.05, 0.2, 0.002, 20_000_000),
        ComparedModel("fastfood", "features", 4096, 1000, 0.02, 1.5, 0.02, None),
        ComparedModel("exact kernel", "exact", None, 500, 0.02, 12.0, 1.0, 900_000_000, "SVC"),
    ]
    name = "error" if task == "classification" else "rmse"
    return Comparison(task, "digits.csv", "digit", 1000, 500, name, models, notes=["half of rows"])


def test_comparisons_mark_the_best(printed):
    text = printed(*render_comparison(comparison()))
    assert fits(text)
    lines = {tuple(line.split()[:2]): line for line in text.splitlines() if line.strip()}
    assert "10 ms*" in lines["linear", "1,000"]
    assert "10 MB*" in lines["linear", "1,000"]
    assert "2.0 %*" in lines["fastfood", "4,096"]
    assert "2.0 %*" in lines["exact", "kernel"]
    assert "*" not in lines["fastfood", "256"]
    assert "exact kernel: SVC" in text
    assert "note: half of rows" in text
    assert "rmse" in printed(*render_comparison(comparison("regression")))


def test_contenders_that_failed_are_not_the_best(printed):
    made = comparison()
    made.models.append(ComparedModel("x", "exact", None, 1, float("nan"), 1.0, 1.0, None))
    text = printed(*render_comparison(made))
    assert "2.0 %*" in text


def test_no_colour_means_none(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    Terminal(color=False).err().print("x", style="red")
    assert "\x1b[31m" not in capsys.readouterr().err
    Terminal(color=True).err().print("x", style="red")
    assert "\x1b[31m" in capsys.readouterr().err


def test_tables_survive_ascii():
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="replace")
    console = Console(file=file, width=80)
    for part in render_evaluation(classification(3)):
        console.print(part)
    file.flush()
    text = file.buffer.getvalue().decode("ascii")
    assert "Confusion matrix" in text


def test_tables_are_not_cut_in_narrow_terminals(run, fitted, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    narrow = run("evaluate", fitted / "rings.kmill", fitted / "rings.csv")
    monkeypatch.setenv("COLUMNS", "80")
    wide = run("evaluate", fitted / "rings.kmill", fitted / "rings.csv")
    rows = [line for line in wide[1].splitlines() if line.startswith(("in ", "out "))]
    assert rows
    assert all(row in narrow[1].splitlines() for row in rows)
