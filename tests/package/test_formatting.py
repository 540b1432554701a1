"""Numbers and names as people read them, in terminals and on pages."""

import pytest

from kernelmill.formatting import clean_text, html, join_words, plain, shorten

CASES = [
    ("count", 0, "0"),
    ("count", 1234567, "1,234,567"),
    ("count", None, "-"),
    ("number", 0.0, "0"),
    ("number", 1.0, "1"),
    ("number", 10.0, "10"),
    ("number", 1200.0, "1,200"),
    ("number", 99999, "99,999"),
    ("number", 0.1234567, "0.1235"),
    ("number", 1e-4, "0.0001"),
    ("number", 1.5e-7, "1.5e-7"),
    ("number", -2.5, "-2.5"),
    ("number", 123456789.0, "1.235e8"),
    ("number", float("nan"), "-"),
    ("number", float("inf"), "-"),
    ("number", None, "-"),
    ("percent", 0.146, "14.6 %"),
    ("percent", 0.0, "0.0 %"),
    ("percent", 0.0012, "0.12 %"),
    ("percent", 0.00999, "1.0 %"),
    ("percent", 1.0, "100.0 %"),
    ("percent", None, "-"),
    ("duration", 0.0, "0 µs"),
    ("duration", 0.0042, "4.2 ms"),
    ("duration", 0.0123, "12 ms"),
    ("duration", 0.0996, "0.1 s"),
    ("duration", 0.5, "0.5 s"),
    ("duration", 12.34, "12.3 s"),
    ("duration", 59.96, "60 s"),
    ("duration", 99.7, "1 min 40 s"),
    ("duration", 200.2, "3 min 20 s"),
    ("duration", 3599.9, "1 h 0 min"),
    ("duration", 7322.0, "2 h 2 min"),
    ("duration", float("nan"), "-"),
    ("size", 0, "0 B"),
    ("size", 999, "999 B"),
    ("size", 1000, "1.0 kB"),
    ("size", 9_949, "9.9 kB"),
    ("size", 9_951, "10 kB"),
    ("size", 999_499, "999 kB"),
    ("size", 999_600, "1.0 MB"),
    ("size", 412 * 2**20, "432 MB"),
    ("size", 3 * 10**15, "3,000 TB"),
    ("size", None, "-"),
    ("compact", 1024, "1,024"),
    ("compact", 20000, "20k"),
    ("compact", 1500000, "1.5M"),
    ("compact", 0.5, "0.5"),
]


@pytest.mark.parametrize(("method", "value", "text"), CASES)
def test_terminal_and_page_differ_in_typography_only(method, value, text):
    assert getattr(plain, method)(value) == text
    on_page = getattr(html, method)(value)
    assert " " not in on_page, "a value and its unit are not separated by a line break"
    for typeset, typed in (("\N{NO-BREAK SPACE}", " "), ("\N{MINUS SIGN}", "-")):
        on_page = on_page.replace(typeset, typed)
    assert on_page.replace("\N{EN DASH}", "-") == text


def test_one_is_singular():
    assert plain.count(1, "row") == "1 row"
    assert plain.count(0, "row") == "0 rows"
    assert html.count(1200, "penalty", "penalties") == "1,200 penalties"
    assert plain.count(1, "penalty", "penalties") == "1 penalty"


def test_ranges_and_lists():
    assert plain.percent_range(0.1351, 0.1589) == "13.5-15.9 %"
    assert html.percent_range(0.1351, 0.1589) == "13.5\N{EN DASH}15.9\N{NO-BREAK SPACE}%"
    assert html.percent_range(0.1, float("nan")) == plain.percent_range(None, 0.2) == ""
    assert join_words(["a"]) == "a"
    assert join_words(["a", "b", "c"]) == "a, b and c"


def test_names():
    assert plain.quote_column("14") == "column 14"
    assert plain.quote_column("a 1") == "'a 1'"
    assert html.quote_column("a 1")[1:-1] == "a 1"
    assert clean_text("a\tb\x00\ud800é\u202e") == "a b\ufffd\ufffdé\ufffd"
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdefg", 6) == "abcde…"
    assert shorten("class number 38", 10, keep_end=3) == "class… 38"
