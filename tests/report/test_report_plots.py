"""The plots show what the records hold, in colours with enough contrast."""

import re
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import pytest
from matplotlib.path import Path

from kernelmill import report
from kernelmill.report.plots.drawing import (
    COLOURS,
    SERIES,
    label_ends,
    log_ticks,
    new_figure,
    thin_ticks,
)
from kernelmill.report.plots.evaluation import MAX_OPACITY, most_confused
from kernelmill.report.plots.fit import fit_panels
from kernelmill.workflows.records import (
    Calibration,
    ColumnRelevance,
    Coverage,
    Evaluation,
    KernelCheck,
    LearningPoint,
    PartialDependence,
    TuningPoint,
)

NAN = float("nan")


def lines_of(axes):
    return [[list(map(float, v)) for v in line.get_data()] for line in axes.get_lines()]


def test_kernel_check_draws_pairs_that_are_numbers():
    check = KernelCheck([0.1, NAN, 0.9, 0.5], [0.2, 0.5, NAN, 0.4], 0.1, 64)
    (axes,) = report.kernel_check_plot(check).axes
    assert lines_of(axes)[1] == [[0.1, 0.5], [0.2, 0.4]]
    assert axes.get_xlim() == axes.get_ylim()


def test_many_points_are_thin_ticks():
    values = [k / 9999 for k in range(9999)]
    (axes,) = report.kernel_check_plot(KernelCheck(values, values, 0.0, 64)).axes
    assert 1000 <= len(lines_of(axes)[1][0]) <= 2000


def test_error_by_features(samples):
    comparison = samples["comparison"]["comparison"]
    (axes,) = report.error_by_features_plot(comparison).axes
    drawn = lines_of(axes)
    assert [line[0] for line in drawn[:3]] == [[256.0, 1024.0, 4096.0]] * 3
    assert drawn[0][1] == [m.error for m in comparison.models if m.name == "fastfood"]
    assert drawn[3] == [[1024.0], [0.09]]  # Nyström
    others = [m for m in comparison.models if m.n_components is None]
    assert [line[1] for line in drawn[4:]] == [[m.error, m.error] for m in others]
    names = {text.get_text() for text in axes.texts}
    assert names == {m.name for m in comparison.models}
    colours = [line.get_color() for line in axes.lines]
    assert len(set(colours)) == len(names)


def test_one_size_of_features_can_be_drawn(samples):
    comparison = samples["comparison"]["comparison"]
    models = [m for m in comparison.models if m.n_components in (None, 1024)]
    (axes,) = report.error_by_features_plot(replace(comparison, models=models)).axes
    assert lines_of(axes)[0][0] == [1024.0]
    low, high = axes.get_xlim()
    assert low < 1024 < high


def test_each_setting_of_tuning_is_listed_once(samples):
    first = TuningPoint(2.0, 0.1, 0.5, kernel="gaussian")
    again = TuningPoint(2.0 + 1e-12, 0.1, 0.4, kernel="gaussian")
    others = [
        replace(first, per_column=True),
        replace(first, n_components=64),
        replace(first, alpha=0.2),
        replace(first, kernel="matern"),
        replace(first, variant="steps, weight 10"),
    ]
    fit = replace(samples["regression"]["fit"], tuning=[first, *others, again])
    (panel,) = [each for each in fit_panels(fit) if each.key == "fit-tuning-1"]
    rows = panel.table.rows
    assert [row[-1] for row in rows] == ["0.4", *5 * ["0.5"]]
    assert len({tuple(row) for row in rows}) == 6
    assert panel.table.headings[:2] == ["kernel", "variant"]
    plain = replace(fit, tuning=[each for each in fit.tuning if not each.variant])
    (panel,) = [each for each in fit_panels(plain) if each.key == "fit-tuning-1"]
    assert "variant" not in panel.table.headings  # it does not vary


def test_errors_of_other_numbers_of_features_are_not_compared(samples):
    few = [TuningPoint(2.0, alpha, 0.1 + alpha, "log loss", n_components=512) for alpha in (0.1, 1)]
    many = [
        TuningPoint(2.0, 1.0, 0.41, "log loss", n_components=1024, chosen=True),
        TuningPoint(2.0, 0.1, 0.409, "log loss", n_components=1024),
        TuningPoint(2.0, 1.0, 0.3, "log loss", n_components=1024, variant="linear kernel"),
    ]
    fit = replace(samples["two_classes"]["fit"], tuning=[*few, *many], length_scale=2.0, alpha=1.0)
    (panel,) = [each for each in fit_panels(fit) if each.key == "fit-tuning-1"]
    assert "with 1,024 features, ringed, is at length scale 2 and penalty 1: 0.41." in panel.reading
    assert "smallest value of its line is 0.409: a weaker penalty" in panel.reading
    assert "same number of features are comparable" in panel.reading
    assert lines_of(panel.figure.axes[0])[-1] == [[1.0], [0.41]]
    # Files of earlier releases have no mark: the last setting with the values of the model.
    unmarked = [replace(point, chosen=False) for point in [*few, *many[:2]]]
    (axes,) = report.tuning_plot(unmarked, chosen=(2.0, 1.0)).axes
    assert lines_of(axes)[-1] == [[1.0], [0.41]]
    (axes,) = report.tuning_plot(unmarked).axes
    assert lines_of(axes)[-1] == [[0.1], [0.409]]


def test_a_penalty_that_was_not_tried_is_named(samples):
    points = [TuningPoint(2.0, 0.1, 0.5, chosen=True), TuningPoint(4.0, 0.1, 0.4)]
    fit = replace(samples["regression"]["fit"], tuning=points, length_scale=2.0, alpha=0.3)
    (panel,) = [each for each in fit_panels(fit) if each.key == "fit-tuning-1"]
    assert "penalty 0.1: 0.5. The model has the penalty 0.3." in panel.reading


def test_tuning_draws_the_best_lines():
    points = [TuningPoint(s, 10.0**-a, 0.1 * s + 0.01 * a) for s in range(1, 10) for a in (1, 2)]
    points.append(TuningPoint(1.0, 0.1, 0.7, kernel="matern"))  # a line of its own, not the best
    (axes,) = report.tuning_plot([*points, TuningPoint(3.0, 1.0, NAN)]).axes
    assert len(lines_of(axes)) == 6 + 1
    assert lines_of(axes)[0] == [[0.01, 0.1], pytest.approx([0.12, 0.11])]
    assert lines_of(axes)[-1] == [[0.1], [pytest.approx(0.11)]]  # the ring around the least
    (axes,) = report.tuning_plot(points, chosen=(9.0, 0.01)).axes
    assert lines_of(axes)[-1] == [[0.01], [pytest.approx(0.92)]]  # though it is the worst
    assert len(lines_of(axes)) == 6 + 1
    (axes,) = report.tuning_plot(points, chosen=(2.5, 1e-8)).axes  # not one of them
    assert lines_of(axes)[-1] == [[0.1], [pytest.approx(0.11)]]
    with pytest.raises(ValueError, match="one criterion"):
        report.tuning_plot([*points, TuningPoint(3.0, 1.0, 0.5, "log loss")])


def test_tuning_stages_are_lines_of_their_own():
    points = [TuningPoint(2.0, 0.1, 0.3, n_components=size) for size in (512, 1024)]
    (axes,) = report.tuning_plot(points).axes
    labels = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert [label.rpartition(", ")[2] for label in labels[:2]] == ["1024 features", "512 features"]


def test_learning_curve_leaves_out_what_is_not_known():
    points = [LearningPoint(10, 0.5), LearningPoint(20, NAN, 0.2), LearningPoint(30, 0.3, None)]
    above, below = report.learning_curve_plot(points).axes
    assert lines_of(above) == [[[10.0, 30.0], [0.5, 0.3]]]
    assert lines_of(below) == [[[20.0], [0.2]]]
    assert len(report.learning_curve_plot(points[:1]).axes) == 1


def test_time_is_one_bar_of_all_stages(samples):
    (axes,) = report.time_plot(samples["regression"]["fit"]).axes
    bars = [(round(p.get_x(), 6), round(p.get_width(), 6)) for p in axes.patches]
    assert bars == [(0, 0.9), (0.9, 11.2), (12.1, 6.4), (18.5, 0.5)]


def test_relevance_has_a_bar_and_an_interval_for_each_column():
    columns = [ColumnRelevance("b", 0.25, 0.1, 0.5), ColumnRelevance("a", 1.0, 0.75, 1.0)]
    (axes,) = report.relevance_plot(
        [*columns, ColumnRelevance("c", 0.0), ColumnRelevance("d", NAN)]
    ).axes
    assert [patch.get_width() for patch in axes.patches] == [1.0, 0.25, 0.0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c"]
    assert lines_of(axes) == [[[0.75, 1.0], [0.0, 0.0]], [[0.1, 0.5], [1.0, 1.0]]]


def test_relevance_of_many_columns_shows_the_first_twenty(samples):
    columns = samples["wide"]["fit"].column_relevance
    (axes,) = report.relevance_plot(columns[::-1]).axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert len(names) == len(axes.patches) == 20
    assert max(map(len, names)) <= 22
    assert len(set(names)) == 20


def test_partial_dependence_has_one_scale(samples):
    dependences = samples["ten_classes"]["fit"].partial_dependence
    numbers, categories, skewed, unused = report.partial_dependence_plot(dependences).axes
    first = dependences[0]
    assert lines_of(numbers) == [[first.values, curve] for curve in first.means]
    assert len(lines_of(numbers)) == 5
    assert lines_of(categories)[0] == [dependences[1].means[0][:8], [float(k) for k in range(8)]]
    assert numbers.get_ylim() == categories.get_xlim() == skewed.get_ylim()
    assert skewed.get_xscale() == "log"
    assert not unused.get_visible()
    plain = replace(first, values=[-1.0, 0.0, *first.values[2:]])
    assert report.partial_dependence_plot([plain]).axes[0].get_xscale() == "linear"


def test_memory_has_a_bar_for_each_that_is_known(samples):
    comparison = samples["comparison"]["comparison"]
    models = [replace(comparison.models[0], peak_memory=None), *comparison.models[1:]]
    (axes,) = report.memory_plot(replace(comparison, models=models)).axes
    assert len(axes.patches) == len(models) - 1


def test_confusion_of_many_classes_shows_the_most_confused():
    n = 70
    matrix = [[10 * (i == j) + (i < 60 and j == (i + 1) % 60) for j in range(n)] for i in range(n)]
    assert most_confused(matrix) == list(range(60))
    (axes,) = report.confusion_plot([str(k) for k in range(n)], matrix).axes
    squares = [list(patch.get_path().codes).count(Path.MOVETO) for patch in axes.patches]
    assert squares == [60, 60]
    assert not axes.texts


@pytest.mark.parametrize("matrix", [[[1]], [[0, 0], [0, 0]], [[1, 2], [3]]])
def test_confusion_of_another_shape_is_rejected(matrix):
    with pytest.raises(ValueError, match="square matrix"):
        report.confusion_plot(["a", "b"], matrix)


def test_nothing_to_draw_is_rejected(samples):
    lost = samples["unknown"]["comparison"]
    nothing = Evaluation("regression", "a.csv", 0, {}, 0.0)
    for draw, record in (
        (report.kernel_check_plot, KernelCheck([], [], NAN, 8)),
        (report.calibration_plot, Calibration([NAN], [0.5], [1])),
        (report.coverage_plot, Coverage([], [])),
        (report.predicted_plot, nothing),
        (report.residuals_plot, nothing),
        (report.tuning_plot, []),
        (report.learning_curve_plot, [LearningPoint(5)]),
        (report.time_plot, samples["bare"]["fit"]),
        (report.relevance_plot, [ColumnRelevance("a", NAN)]),
        (
            report.partial_dependence_plot,
            [PartialDependence("a", "numeric", [1.0], "prediction", ["y"], [[NAN]], 9)],
        ),
        (report.error_by_features_plot, lost),
        (report.error_by_time_plot, lost),
        (report.memory_plot, lost),
    ):
        with pytest.raises(ValueError, match="must hold"):
            draw(record)


@pytest.mark.parametrize("ends", [(1e-3, 1e-3), (0.4, 0.41), (1, 30), (3e-4, 5e7), (250, 4100)])
def test_log_ticks_are_few_and_inside(ends):
    ticks = log_ticks(*ends)
    assert 1 <= len(ticks) <= 6
    assert ticks == sorted(set(ticks))
    assert all(ends[0] * 0.999 <= tick <= ends[1] * 1.001 for tick in ticks)


def test_thin_ticks_keeps_the_last_and_no_neighbours():
    assert thin_ticks([1000, 1024, 4096, 16384, 16400]) == [1024, 4096, 16400]
    assert thin_ticks([7]) == [7]


def test_labels_of_lines_do_not_touch():
    axes = new_figure().subplots()
    axes.set_ylim(0, 1)
    label_ends(axes, [(y, f"{y}", "#000000") for y in (0.0, 0.01, 0.5, 0.99, 1.0, 1.0)])
    heights = sorted(text.get_position()[1] for text in axes.texts)
    gaps = [b - a for a, b in pairwise(heights)]
    assert min(gaps) >= 0.0749
    assert heights[-1] <= 1


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    a, b = sorted([luminance(one), luminance(other)])
    return (b + 0.05) / (a + 0.05)


def blend(colour, ground, opacity):
    mixed = [
        round(opacity * int(colour[k : k + 2], 16) + (1 - opacity) * int(ground[k : k + 2], 16))
        for k in (1, 3, 5)
    ]
    return "#" + "".join(f"{each:02x}" for each in mixed)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_contrast(scheme):
    """WCAG AA: 4.5 for text, and plots use every series' colour for text as well."""
    colours = {name: pair[scheme] for name, pair in COLOURS.items()}
    for ground in ("page", "card", "sunken"):
        for text in ("ink", "muted", "accent"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for text in SERIES:
        assert contrast(colours[text], colours["card"]) >= 4.5, text
    for cell in ("blue", "orange"):
        darkest = blend(colours[cell], colours["card"], MAX_OPACITY)
        assert contrast(colours["ink"], darkest) >= 4.5, cell


def test_each_colour_has_one_purpose():
    lights = [pair[0] for pair in COLOURS.values()]
    assert len(set(lights)) == len(lights)


def test_no_window_system_is_needed():
    """pyplot chooses a backend and keeps every figure alive: reports never load it."""
    code = (
        "import sys; from kernelmill import report; "
        "from kernelmill.workflows.records import *; "
        "report.render(evaluation=Evaluation('regression', 'a', 2, {'rmse': 1.0}, 0.1, "
        "actual=[1.0, 2.0], predicted=[1.0, 3.0])); "
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_calibration_is_judged_by_bins():
    from kernelmill.report.plots.evaluation import judge_calibration

    # Most rows are in a bin that is right: the mean difference is small, but three bins are off.
    bins = [(0.65, 0.55, 400), (0.75, 0.66, 400), (0.85, 0.78, 500), (0.99, 0.99, 20_000)]
    assert re.fullmatch(
        r"the model is overconfident at probabilities of 65\.0.85\.0.%", judge_calibration(bins)
    )
    assert judge_calibration([(0.65, 0.55, 20)]) == "no bin deviates more than chance would explain"
    both = [(0.6, 0.7, 5000), (0.9, 0.8, 5000)]
    assert re.fullmatch(
        r"the model is overconfident at probabilities of 90\.0.% and underconfident at "
        r"probabilities of 60\.0.%",
        judge_calibration(both),
    )


def test_plots_are_drawn_in_notebooks():
    from kernelmill.report import learning_curve_plot
    from kernelmill.workflows.records import LearningPoint

    svg = learning_curve_plot([LearningPoint(10, 0.5), LearningPoint(20, 0.4)])._repr_svg_()
    assert "<svg" in svg
