"""Numbers and names as people read them."""

import pytest

from kernelmill.report.wording import (
    compact,
    count,
    counted,
    list_of,
    number,
    percent,
    percent_range,
    printable,
    quoted_column,
    seconds,
    shorten,
    size,
)


def plain(text):
    return text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{EN DASH}", "-")


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (count, 0, "0"),
        (count, 1234567, "1,234,567"),
        (count, None, "-"),
        (number, 0.0, "0"),
        (number, 1.0, "1"),
        (number, 10.0, "10"),
        (number, 1200.0, "1,200"),
        (number, 0.1234567, "0.1235"),
        (number, 1e-4, "0.0001"),
        (number, 1.5e-7, "1.5e\N{MINUS SIGN}7"),
        (number, -2.5, "\N{MINUS SIGN}2.5"),
        (number, 123456789.0, "1.235e8"),
        (number, float("nan"), "-"),
        (number, float("inf"), "-"),
        (number, None, "-"),
        (percent, 0.146, "14.6 %"),
        (percent, 0.0, "0.0 %"),
        (percent, 0.0012, "0.12 %"),
        (percent, 0.00999, "1.0 %"),
        (percent, 1.0, "100.0 %"),
        (percent, None, "-"),
        (seconds, 0.0, "0 µs"),
        (seconds, 0.0123, "12 ms"),
        (seconds, 0.5, "0.5 s"),
        (seconds, 12.34, "12.3 s"),
        (seconds, 200.2, "3 min 20 s"),
        (seconds, 7322.0, "2 h 2 min"),
        (seconds, float("nan"), "-"),
        (size, 0, "0 B"),
        (size, 1000, "1.0 kB"),
        (size, 412 * 2**20, "432 MB"),
        (size, 3 * 10**15, "3,000 TB"),
        (size, None, "-"),
        (compact, 1024, "1,024"),
        (compact, 20000, "20k"),
        (compact, 1500000, "1.5M"),
        (compact, 0.5, "0.5"),
    ],
)
def test_values(form, value, text):
    assert plain(form(value)) == text


def test_lengths_of_time_and_sizes_do_not_wrap():
    for text in (seconds(141.0), seconds(7322.0), seconds(0.2), size(10**7), percent(0.1)):
        assert " " not in text


def test_sizes_are_those_of_the_terminal():
    from kernelmill.cli.figures import size as in_terminal

    for n_bytes in (0, 999, 1000, 9_949, 9_951, 123_456, 999_499, 999_500, 10**9, 5 * 10**12):
        assert plain(size(n_bytes)) == in_terminal(n_bytes)


def test_one_is_singular():
    assert counted(1, "row") == "1 row"
    assert counted(0, "row") == "0 rows"
    assert counted(1200, "penalty", "penalties") == "1,200 penalties"
    assert counted(1, "penalty", "penalties") == "1 penalty"


def test_ranges_and_lists():
    assert plain(percent_range(0.1351, 0.1589)) == "13.5-15.9 %"
    assert percent_range(0.1, float("nan")) == percent_range(None, 0.2) == ""
    assert list_of(["a"]) == "a"
    assert list_of(["a", "b", "c"]) == "a, b and c"


def test_names():
    assert quoted_column("14") == "column 14"
    assert quoted_column("a 1")[1:-1] == "a 1"
    assert printable("a\tb\x00\ud800é\u202e") == "a b\ufffd\ufffdé\ufffd"
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdefg", 6) == "abcde…"
    assert shorten("class number 38", 10, keep_end=3) == "class… 38"
