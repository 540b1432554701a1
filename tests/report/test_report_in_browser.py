"""The page in a real browser: nothing sticks out, nothing is fetched, nothing goes wrong."""

from dataclasses import replace

import pytest

from kernelmill.report import render
from kernelmill.report.plots.drawing import COLOURS

PAGES = ("malicious", "ten_classes", "regression", "forty_classes", "wide")

# Content may be wider than its scrolling box: the box is checked, not its content.
STICKING_OUT = """
(() => {
  const wrong = [];
  for (const e of document.body.querySelectorAll('*')) {
    if (e.parentElement.closest('.scroll, pre, svg')) continue;
    const box = e.getBoundingClientRect();
    if (box.width && (box.left < -0.5 || box.right > innerWidth + 0.5))
      wrong.push(e.tagName + '.' + e.className + ' ' + box.left + ' to ' + box.right);
  }
  return wrong;
})()
"""

CUT_OFF = """
(() => {
  const wrong = [];
  for (const text of document.querySelectorAll('svg text')) {
    const box = text.getBoundingClientRect();
    const around = text.closest('figure').getBoundingClientRect();
    if (box.left < around.left || box.right > around.right || box.bottom > around.bottom)
      wrong.push(text.textContent + ' ' + box.left + ' to ' + box.right);
  }
  return wrong;
})()
"""

BOTH_FOUND_WHERE_THEY_ARE = """
document.querySelector('h1').style.width = '3000px';
document.querySelector('svg text').setAttribute('transform', 'translate(5000 0)');
"""


@pytest.fixture(scope="module")
def pages(rendered, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name in PAGES:
        (folder / f"{name}.html").write_text(rendered(name), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in PAGES}


def rgb(colour):
    return "rgb({}, {}, {})".format(*(int(colour[k : k + 2], 16) for k in (1, 3, 5)))


@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (1400, "dark")])
@pytest.mark.parametrize("name", PAGES)
def test_fits_the_window(browser, pages, name, width, scheme):
    browser.open(pages[name], width, scheme)
    browser.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert browser.evaluate("innerWidth") == width
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(STICKING_OUT) == []
    assert browser.evaluate(CUT_OFF) == []
    ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == rgb(COLOURS["page"][scheme == "dark"])
    ink = browser.evaluate("getComputedStyle(document.querySelector('svg text')).fill")
    assert ink == rgb(COLOURS["muted"][scheme == "dark"])
    columns = "getComputedStyle(document.querySelector('.plots')).gridTemplateColumns.split(' ')"
    assert browser.evaluate(f"{columns}.length") == (1 if width == 400 else 2)

    methods = [event["method"] for event in browser.events]
    asked = [
        event["params"]["request"]["url"]
        for event in browser.events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert asked == [pages[name].as_uri()]
    assert "Log.entryAdded" not in methods
    assert "Runtime.consoleAPICalled" not in methods
    assert "Runtime.exceptionThrown" not in methods
    assert "Page.javascriptDialogOpening" not in methods


def test_values_of_tiles_stay_within_one_line(browser, samples, tmp_path):
    fit = replace(samples["two_classes"]["fit"], seconds={"train": 141.2}, n_rows=1_234_567_890)
    path = tmp_path / "page.html"
    path.write_text(render(fit=fit), encoding="utf-8")
    for width in (320, 400, 800, 1400):
        browser.open(path, width, "light")
        tiles = browser.evaluate("""
[...document.querySelectorAll('.tiles .value')].map(e => {
  const lines = e.clientHeight / parseFloat(getComputedStyle(e).lineHeight);
  return [e.textContent, Math.round(lines), e.scrollWidth, e.clientWidth];
})
""")
        assert "2 min 21 s" in [text.replace("\N{NO-BREAK SPACE}", " ") for text, *_ in tiles]
        assert all(lines == 1 and needed <= room for _, lines, needed, room in tiles), tiles


def test_what_sticks_out_is_found(browser, pages):
    browser.open(pages["regression"], 400, "light")
    browser.evaluate(BOTH_FOUND_WHERE_THEY_ARE)
    assert len(browser.evaluate(STICKING_OUT)) >= 1
    assert len(browser.evaluate(CUT_OFF)) == 1


def test_requests_and_errors_would_be_seen(browser, pages, tmp_path):
    """The policy of the page stops what the page should not do, and the browser reports it."""
    text = pages["regression"].read_text(encoding="utf-8")
    path = tmp_path / "page.html"
    path.write_text(text.replace("</main>", "<script>alert(1)</script></main>"), encoding="utf-8")
    browser.open(path, 400, "light")
    browser.evaluate("1")
    methods = [event["method"] for event in browser.events]
    assert "Log.entryAdded" in methods
    assert "Page.javascriptDialogOpening" not in methods
