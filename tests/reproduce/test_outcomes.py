"""Intervals, verdicts and checked statements."""

from dataclasses import replace

import numpy as np
import pytest

from reproduce import (
    EXPERIMENTS,
    Cell,
    Outcome,
    Published,
    Results,
    Scale,
    judge,
)
from reproduce.claims import (
    claim_ratio,
    claim_rows,
    claim_slope,
    claim_value,
    mean_ratio,
)
from reproduce.running import PartResult, new_record


@pytest.mark.representative
def test_intervals_cover_the_mean_as_often_as_they_should():
    """1000 intervals of 4 runs each: fewer than 970 covered has probability 1e-7 at 99 %."""
    runs = np.random.default_rng(0).normal(3.0, 1.0, (1000, 4))
    intervals = [Cell("a", "b", tuple(each)).interval for each in runs]
    covered = sum(each.low <= 3.0 <= each.high for each in intervals)
    assert 970 <= covered < 1000


def test_single_runs_have_the_interval_that_they_give():
    assert not Cell("a", "b", (1.0,)).interval.known
    interval = Cell("a", "b", (1.0,), half_width=0.25).interval
    assert (interval.low, interval.high) == (0.75, 1.25)


@pytest.mark.parametrize(
    ("text", "value", "spread", "rounding"),
    [
        ("0.231", 0.231, 0, 0.0005),
        ("78.87±0.06", 78.87, 0.06, 0.005),
        ("24x", 24, 0, 0.5),
        ("n.a.", None, 0, 0),
        ("", None, 0, 0),
    ],
)
def test_published_figures_are_read_as_printed(text, value, spread, rounding):
    figure = Published(text)
    assert figure.value == value
    assert figure.spread == spread
    assert figure.rounding == pytest.approx(rounding)


def test_every_published_figure_is_a_number_or_not_available():
    for experiment in EXPERIMENTS.values():
        names = {each.name for each in experiment.columns}
        for (row, column), text in experiment.published.items():
            assert column in names, (experiment.name, column)
            assert text == "n.a." or Published(text).value is not None, (experiment.name, row)


@pytest.mark.parametrize(
    ("cell", "word"),
    [
        (Cell("a", "error", (0.40, 0.41, 0.42)), "better"),
        (Cell("a", "error", (0.45, 0.50, 0.55)), "same"),
        (Cell("a", "error", (0.61, 0.60, 0.62)), "worse"),
        (Cell("a", "error", (0.504,)), "same"),  # rounding
        (Cell("a", "error", (0.506,)), "worse"),
        (Cell("a", "error", (0.4, 0.4), deviation="fewer rows"), "other settings"),
        (Cell("a", "accuracy", (81.0,), 0.1), "same"),  # the paper's interval is ± 1.03
        (Cell("a", "accuracy", (82.0,), 0.1), "better"),
        (Cell("a", "accuracy", (78.0,), 0.1), "worse"),
        (Cell("a", "time", (1.0,)), "not compared"),
        (Cell("b", "error", (1.0,)), "not compared"),
        (Cell("c", "error", (1.0,)), "not compared"),
    ],
)
def test_verdicts(cell, word, make_experiment):
    experiment = make_experiment()
    verdict = judge(experiment, Results([cell]), cell.row, cell.column)
    assert verdict.word == word
    if word in ("better", "worse"):
        assert verdict.reason == "Because of a."
    assert judge(experiment, Results(), cell.row, cell.column).word == "not measured"


def test_published_values_vary_as_the_runs_here_do(make_experiment):
    """A single run of the paper may be 2.8 standard deviations off, the mean of 25 may not."""
    runs = tuple(np.random.default_rng(0).normal(0.60, 0.05, 100))
    results = Results([Cell("a", "error", runs)])
    words = [
        judge(make_experiment(published_runs=n), results, "a", "error").word for n in (0, 1, 25)
    ]
    assert words == ["worse", "same", "worse"]


def test_ratios_of_columns():
    noise = np.exp(np.random.default_rng(0).normal(0, 0.05, (5, 10)))
    cells = [Cell(n, "a", tuple(2 * n * noise[k])) for k, n in enumerate((1, 10))]
    cells += [Cell(n, "b", tuple(n * noise[2 + k])) for k, n in enumerate((1, 10, 100))]
    results = Results(cells)
    ratio = mean_ratio(results, "a", "b")
    assert ratio.low < ratio.mean < ratio.high
    assert 1.85 < ratio.mean < 2.15  # four standard deviations

    def word(**limits):
        return claim_ratio("", "a", "b", **limits).check(results).word

    assert word(at_least=1.0) == "confirmed"
    assert word(at_least=ratio.mean * 1.001) == "within chance"
    assert word(at_most=ratio.mean * 1.001) == "within chance"
    assert word(at_least=3.0) == "not confirmed"
    assert word(at_most=1.0) == "not confirmed"
    assert claim_ratio("", "a", "c").check(results).word == "not measured"


def test_ratios_take_runs_in_pairs():
    """What runs share, such as their data, cancels; repeated rows add no certainty."""
    shared = np.exp(np.random.default_rng(0).normal(0, 1.0, 8))
    cells = [Cell(n, "a", tuple(2 * shared)) for n in (1, 2, 3)]
    cells += [Cell(n, "b", tuple(shared)) for n in (1, 2, 3)]
    ratio = mean_ratio(Results(cells), "a", "b")
    assert ratio.high - ratio.low < 1e-9
    alone = [Cell(n, "a", tuple(shared)) for n in (1, 2, 3)]
    alone += [Cell(n, "b", (1.0,) * 8) for n in (1, 2, 3)]
    wide, single = (mean_ratio(Results(part), "a", "b") for part in (alone, alone[::3]))
    assert wide == single


def test_ratios_of_unequal_numbers_of_runs():
    results = Results([Cell(1, "a", (2.0, 2.2, 1.8)), Cell(1, "b", (1.0,))])
    ratio = mean_ratio(results, "a", "b")
    assert ratio.low < 2 < ratio.high
    assert not mean_ratio(Results([Cell(1, "a", (2.0,)), Cell(1, "b", (1.0,))]), "a", "b").known


def test_ratios_of_single_runs_have_the_intervals_of_their_test_rows():
    """Errors of 1 % and 2 % half-width: that of the ratio is their root of squares."""
    cells = [Cell("x", "a", (2.0,), half_width=0.02), Cell("y", "a", (1.0,), half_width=0.02)]
    columns = Results([replace(cell, row="", column=str(cell.row)) for cell in cells])
    ratio = mean_ratio(columns, "x", "y")
    assert np.log(ratio.high / ratio.mean) == pytest.approx(np.hypot(0.01, 0.02))
    found = claim_rows("", "a", "x", "y", at_least=1.97).check(Results(cells))
    assert (found.word, "(" in found.found) == ("within chance", True)


def test_interval_of_ratios_covers():
    """300 ratios of means of 5 runs: fewer than 285 covered has probability 1e-6 at 99 %."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(300):
        runs = rng.normal(1.0, 0.1, (2, 5))
        results = Results([Cell(1, "a", tuple(runs[0])), Cell(1, "b", tuple(runs[1]))])
        ratio = mean_ratio(results, "a", "b")
        covered += ratio.low <= 1 <= ratio.high
    assert covered >= 285


def test_ratios_are_of_equal_settings():
    """A machine on fewer training rows is not compared with one on all of them."""
    cells = [Cell(1, "a", (2.0, 2.1)), Cell(1, "b", (1.0, 1.1), deviation="10 of 20 rows")]
    assert claim_ratio("", "a", "b").check(Results(cells)).word == "not measured"
    cells += [Cell(2, "a", (4.0, 4.0)), Cell(2, "b", (2.0, 2.0))]
    assert mean_ratio(Results(cells), "a", "b").mean == pytest.approx(2.0)


def test_number_of_runs_is_stated(make_experiment):
    experiment = make_experiment()
    record = new_record(experiment.name, Scale.TEST, 0)
    part = next(iter(experiment.parts))
    for cells, text in (
        ((), ""),
        ((Cell("a", "error", (0.5,)),), "1 run of each value"),
        ((Cell("a", "error", (0.5,)), Cell("b", "error", (0.5, 0.4))), "1 to 2 runs of each value"),
    ):
        record.parts[part] = PartResult(1.0, cells)
        assert Outcome(experiment, record).n_runs == text


def test_exponents_and_values():
    results = Results([Cell(n, "a", (n**-0.5, 1.02 * n**-0.5)) for n in (10, 100, 1000)])
    assert claim_slope("", "a", -0.6, -0.4).check(results).word == "confirmed"
    assert claim_slope("", "a", -1.1, -0.9).check(results).word == "not confirmed"
    assert claim_slope("", "b", 0, 1).check(results).word == "not measured"
    assert claim_value("", 10, "a", at_most=1.0).check(results).word == "confirmed"
    assert claim_value("", 10, "a", at_least=2.0).check(results).word == "not confirmed"
    assert claim_value("", 11, "a").check(results).word == "not measured"


def test_reasons_are_given_for_what_is_not_confirmed(make_experiment):
    """A statement that holds needs none."""
    claims = tuple(
        replace(claim_value(text, "a", "error", at_most=limit), reason="Because.")
        for text, limit in (("small", 0.1), ("large", 0.9))
    )
    experiment = make_experiment(claims=claims)
    record = new_record(experiment.name, Scale.TEST, 0)
    part = next(iter(experiment.parts))
    record.parts[part] = PartResult(1.0, (Cell("a", "error", (0.5,), 0.01),))
    found = dict(Outcome(experiment, record).checks)
    assert [found[text].word for text in ("small", "large")] == ["not confirmed", "confirmed"]
    assert found["small"].explained == "error at a: 0.5 (0.49 to 0.51). Because."
    assert "Because" not in found["large"].explained


def test_scales_choose():
    assert [scale.choose("full", "quick", "test") for scale in Scale] == ["full", "quick", "test"]
