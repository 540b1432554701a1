"""The page as text: complete, closed, the same for the same records, and safe with any names."""

import html
import os
import re
import stat
from dataclasses import replace
from html.parser import HTMLParser

import matplotlib as mpl
import pytest

from kernelmill.report import render, write_report
from kernelmill.report.plots.drawing import COLOURS

from .conftest import make_samples

VOID = {"meta", "br", "link", "img", "hr", "input"}


class Elements(HTMLParser):
    """All elements of a page with their attributes; complains about tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.all = []
        self._open = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        self.all.append((tag, dict(attrs), tuple(self._open)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.all.append((tag, dict(attrs), tuple(self._open)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def named(self, tag):
        return [attributes for name, attributes, _ in self.all if name == tag]


@pytest.mark.parametrize(
    "page_text",
    [
        pytest.param(name, marks=[pytest.mark.representative] * (name in ("two_classes", "wide")))
        for name in sorted(make_samples())
    ],
    indirect=True,
)
def test_elements_match_and_refer_to_nothing_outside(page_text):
    page = Elements(page_text)
    allowed = {"html", "head", "meta", "title", "style", "body", "main", "header", "footer"}
    allowed |= {"section", "div", "p", "h1", "h2", "h3", "ul", "li", "dl", "dt", "dd", "figure"}
    allowed |= {"figcaption", "details", "summary", "table", "thead", "tbody", "tr", "th", "td"}
    allowed |= {"pre", "code", "strong", "bdi"}
    allowed |= {"svg", "g", "path", "text", "tspan", "use", "defs", "clippath", "rect", "style"}
    for tag, attributes, _ in page.all:
        assert tag in allowed
        assert not any(name.startswith("on") or name == "src" for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")
        assert "http" not in (attributes.get("style") or "")


def test_ids_are_unique_and_references_are_met(page_text):
    ids = [attributes["id"] for _, attributes, _ in Elements(page_text).all if "id" in attributes]
    assert len(ids) == len(set(ids))
    # Inside tags: names of the data may look like references, too.
    tags = "".join(re.findall(r"<[^>]*>", page_text))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]*)', tags)) <= set(ids)


def test_every_plot_has_its_words_and_numbers(page_text):
    page = Elements(page_text)
    plots = page.named("svg")
    assert len(plots) == len(page.named("figcaption")) == len(page.named("details"))
    assert len(plots) == sum(
        1 for tag, _, inside in page.all if tag == "table" and "details" in inside
    )
    for attributes in plots:
        assert attributes["role"] == "img"
        assert len(attributes["aria-label"]) > 30
        assert attributes["viewbox"].startswith("0 0 380 ")
    for words in re.findall(r"<figcaption>(.*?)</figcaption>", page_text, re.DOTALL):
        assert words.endswith(".")


PLOTS = {
    "two_classes": [
        "evaluation-confusion", "evaluation-calibration", "held-out-confusion",
        "held-out-calibration", "fit-learning", "fit-tuning-1", "fit-tuning-2", "fit-kernel",
        "fit-time", "columns-relevance", "columns-dependence",
    ],
    "regression": [
        "held-out-predicted", "held-out-residuals", "held-out-coverage", "fit-learning",
        "fit-tuning-1", "fit-kernel", "fit-time", "columns-relevance", "columns-dependence",
    ],
    "no_coverage": ["evaluation-predicted", "evaluation-residuals"],
    "comparison": [
        "comparison-features", "comparison-time", "comparison-kernel", "comparison-memory",
    ],
    "bare": [],
    "unknown": ["evaluation-confusion"],
}  # fmt: skip


@pytest.mark.parametrize("name", PLOTS)
def test_plots_are_those_there_are_numbers_for(rendered, name):
    headings = Elements(rendered(name)).named("h3")
    assert [each["id"] for each in headings if "id" in each] == PLOTS[name]


def test_plots_have_the_colours_of_the_page_only(page_text):
    for plot in re.findall(r"<svg.*?</svg>", page_text, re.DOTALL):
        tags = "".join(re.findall(r"<[^>]*>", plot.partition(">")[2]))
        used = set(re.findall(r"var\(--(\w+)\)", tags))
        assert used <= set(COLOURS)
        assert used
        assert not re.findall(r"(?:fill|stroke): #", tags)
        assert "font:" not in tags


def test_names_are_text_whatever_they_hold(rendered):
    text = rendered("malicious")
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "$x_1$" in text  # not taken for a formula
    assert "#1a66a8" in text  # a class, not a colour
    assert "日本語" in text
    assert not re.search("[\x00\ud800\u202e]", text)
    text.encode()


def test_the_policy_of_the_page_allows_no_scripts_and_no_network(samples):
    (policy,) = [
        attributes["content"]
        for attributes in Elements(render(**samples["bare"])).named("meta")
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_same_records_same_bytes_whatever_the_settings_of_matplotlib(samples, rendered):
    before = rendered("regression")
    settings = {"lines.linewidth": 9, "font.size": 30, "axes.grid": False, "svg.hashsalt": "x"}
    settings |= {"text.usetex": True, "savefig.bbox": "tight", "axes.prop_cycle": "cycler(c='rgb')"}
    with mpl.rc_context(settings):
        assert render(**samples["regression"]) == before


def test_records_that_were_stored_give_the_same_page(samples, rendered):
    stored = {
        name: type(record).from_record(record.to_record())
        for name, record in samples["two_classes"].items()
    }
    assert render(**stored) == rendered("two_classes")


def test_something_to_report_is_needed():
    with pytest.raises(ValueError, match="pass at least one"):
        render(title="Nothing")


def test_file_holds_the_page_and_can_be_read_by_others(samples, tmp_path):
    path = write_report(str(tmp_path / "page.html"), **samples["bare"])
    assert path.read_text(encoding="utf-8") == render(**samples["bare"])
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)


def test_failed_writing_leaves_the_old_file_and_nothing_else(samples, tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("old")

    def full(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_report(path, **samples["bare"])
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_missing_folder_is_named(samples, tmp_path):
    with pytest.raises(FileNotFoundError, match="must lie in an existing folder"):
        write_report(tmp_path / "none" / "page.html", **samples["bare"])


def test_model_file_is_quoted_for_shell_and_python(samples):
    text = render(**samples["bare"], model="my model's.kmill")
    shown = text.replace("&#39;", "'").replace("&#34;", '"')
    assert "kernelmill predict 'my model'\"'\"'s.kmill' new.csv" in shown
    assert 'kernelmill.load("my model\'s.kmill")' in shown


def test_the_stage_of_tuning_that_decides_rings_the_chosen_setting(samples, rendered):
    fit = samples["two_classes"]["fit"]
    worst = max((p for p in fit.tuning if p.criterion == "log loss"), key=lambda p: p.error)
    chosen = replace(fit, length_scale=worst.length_scale, alpha=worst.alpha)
    first, second = (
        figure for figure in captions(render(fit=chosen)) if "on validation rows" in figure
    )
    assert "The smallest, ringed" in first
    assert "first of two stages" in first
    assert f"The chosen setting, ringed, is at length scale {worst.length_scale:g}" in second
    assert "second of two stages" in second
    (only,) = (
        figure for figure in captions(rendered("regression")) if "on validation rows" in figure
    )
    assert "stages" not in only


def test_columns_that_are_not_drawn_are_summed_up(rendered):
    text = html.unescape(rendered("wide"))
    assert "The relevance of the other 180 columns is at most 0.54." in text
    assert text.count("column number 199 ") == 2  # in the tables of relevance and of inputs
    assert "the most relevant are ‘column number 0 ’ (1)" in text  # noqa: RUF001
    assert "of the other" not in rendered("two_classes")


def test_one_length_scale_is_reported(rendered):
    note = "All columns have the same length scale"
    assert note in rendered("one_scale")
    assert "Column relevance" not in rendered("one_scale")
    assert note not in rendered("two_classes") + rendered("bare")


def captions(text):
    return [html.unescape(each) for each in re.findall(r"<figcaption>(.*?)</figcaption>", text)]
