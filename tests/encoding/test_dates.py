"""Dates: their formats, their parts, and what is rejected."""

import datetime as dt
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import kernelmill
from kernelmill import fit_table
from kernelmill.encoding.dates import DateFormats, date_values, find_part
from kernelmill.encoding.encoder import ColumnEncoder
from kernelmill.io import TableError, open_table

QUICK = {"tune": False, "n_components": 128}
NOW = dt.datetime(2024, 2, 29, 13, 5, 9)
SECONDS = NOW.replace(tzinfo=dt.UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "format_", "seconds"),
    [
        ("2024-02-29T13:05:09", "year first", SECONDS),
        ("2024-02-29 13:05:09Z", "year first", SECONDS),
        ("2024-02-29 13:05:09+00", "year first", SECONDS),
        ("2024-02-29 10:05:09.0-03", "year first", SECONDS),
        ("2024-02-29 15:05:09.25+02:00", "year first", SECONDS + 0.25),
        ("2024-02-29 08:35:09-0430", "year first", SECONDS),
        ("29.02.2024 13:05:09", "day first", SECONDS),
        ("29.2.2024, 1:05:09 pm", "day first", SECONDS),
        ("02/29/2024 13:05", "month first", SECONDS - 9),
        ("29 Feb 2024", "name of the month", SECONDS // 86400 * 86400),
        ("29-February-2024", "name of the month", SECONDS // 86400 * 86400),
        ("Feb 29, 2024 12:00 AM", "name of the month", SECONDS // 86400 * 86400),
        ("12:30 AM", "time", 1800.0),
        ("23:59:59", "time", 86399.0),
        ("12:30 PM", "time", 45000.0),
        ("12:30+02:00", "time", 37800.0),
        ("01:30 +0200", "time", 84600.0),  # of the day before
        ("1969-12-31", "year first", -86400.0),
        ("29.02.24 13:05:09", "day first", SECONDS),
        ("2/29/24 1:05 PM", "month first", SECONDS - 9),
        ("29-Feb-24", "name of the month", SECONDS // 86400 * 86400),
        ("31.12.69", "day first", -86400.0),  # as strptime has it: 1969 to 2068
        ("1/1/68", "month first", 35794 * 86400.0),
        ("2024-02-29 13:05:09", "day first", SECONDS),  # cannot be misread
        ("2024-02-29 13:05:09", "name of the month", SECONDS),
    ],
)
def test_seconds(text, format_, seconds):
    assert date_values(pa.array([text, None]), "d", format_)[0] == seconds
    assert np.isnan(date_values(pa.array([text, None]), "d", format_)[1])
    formats = DateFormats("d")
    formats.update(pa.array([text]), file="f", first_row=0)
    assert format_ in formats._formats
    table = open_table({"d": [text] * 3}, dates=["d"])
    assert table.columns[0].kind == "date"


@pytest.mark.parametrize(
    ("text", "format_"),
    [
        ("2023-02-29", "year first"),
        ("2024-13-01", "year first"),
        ("31.04.2024", "day first"),
        ("00.04.2024", "day first"),
        ("25:00", "time"),
        ("12:61", "time"),
        ("5 Foo 2024", "name of the month"),
        ("29.02.2024", "month first"),
        ("29.02.23", "day first"),
        ("2023-02-29", "day first"),
        ("31 May 5 2024", "name of the month"),
        ("May 2024", "name of the month"),
        ("31 May-2024", "name of the month"),
        ("2024-01/05", "year first"),
        ("31.05/2024", "day first"),
        ("5/31-2024", "month first"),
        ("2024-05-31 12:00+99:99", "year first"),
        ("2024-05-31 12:00+14:01", "year first"),
        ("12:00+02:60", "time"),
        ("13:30 AM", "time"),
        ("13:30 PM", "time"),
        ("0:30 AM", "time"),
    ],
)
def test_days_that_do_not_exist(text, format_):
    with pytest.raises(TableError, match=r"f: column 'd' has .* in row 8, which is not a valid"):
        date_values(pa.array([text]), "d", format_, "f", 7)


def test_parts_against_the_standard_library():
    rng = np.random.default_rng(0)
    seconds = rng.integers(-3_000_000_000, 3_000_000_000, 500).astype(float)
    dates = [dt.datetime.fromtimestamp(each, dt.UTC) for each in seconds]
    expected = {
        "year": [each.year for each in dates],
        "month": [each.month - 1 for each in dates],
        "weekday": [each.weekday() for each in dates],
        "time of day": [each.hour * 3600 + each.minute * 60 + each.second for each in dates],
    }
    for part, values in expected.items():
        np.testing.assert_array_equal(find_part(part, seconds), values)


def make_table(n_rows=250, seed=0):
    rng = np.random.default_rng(seed)
    when = np.datetime64("2021-03-01") + rng.integers(0, 800, n_rows)
    month = when.astype("datetime64[M]").astype(int) % 12
    weekend = (when.astype(int) + 3) % 7 >= 5
    y = np.sin(2 * np.pi * month / 12) + 0.5 * weekend + 0.1 * rng.standard_normal(n_rows)
    return when, y


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d %b %Y"])
def test_a_season_is_learned_from_any_format(tmp_path, form):
    when, y = make_table()
    path = tmp_path / "sales.csv"
    days = [each.item().strftime(form) for each in when]
    path.write_text("day;y\n" + "\n".join(f"{a};{b:.3f}" for a, b in zip(days, y, strict=True)))
    model = fit_table(path, "y", **QUICK)
    assert model.summary.held_out.metrics["r2"] > 0.8
    assert model.summary.columns[0].kind == "date"
    assert model.encoder.columns[0].parts == ("year", "month", "weekday", "elapsed time")
    model.save(tmp_path / "model.kmill")
    loaded = kernelmill.load(tmp_path / "model.kmill")
    # Weights are stored in float32; values are about 1.
    np.testing.assert_allclose(loaded.predict(path), model.predict(path), rtol=1e-4, atol=1e-6)
    # A few dates, which alone would be ambiguous, are read as in training.
    few = {"day": [dt.date(2022, 3, 4).strftime(form)]}
    typed = pd.DataFrame({"day": pd.to_datetime(["2022-03-04"])})
    assert model.predict(few) == pytest.approx(model.predict(typed))


def test_ambiguous_dates_are_rejected_unless_the_order_is_given(tmp_path):
    columns = {"day": ["01/02/2023", "03/04/2023"] * 60, "y": np.arange(120.0)}
    with pytest.raises(
        TableError, match=r"may come first.*\(day_first=True\).*\(day_first=False\)"
    ):
        fit_table(columns, "y", dates=["day"], **QUICK)
    for day_first, months in ((True, (1, 3)), (False, (0, 2))):
        model = fit_table(columns, "y", dates=["day"], day_first=day_first, **QUICK)
        (encoding,) = model.encoder.columns
        seconds = date_values(pa.array(columns["day"][:2]), "day", encoding.format)
        assert tuple(find_part("month", seconds)) == months
    shown = dict(columns, day=[*columns["day"][:-1], "30/04/2023"])
    assert fit_table(shown, "y", dates=["day"], **QUICK).encoder.columns[0].format == "day first"


def test_years_first_among_other_dates():
    days = ["01.02.2023", "2023-02-03", "04/05/2023", "2023-02-13"] * 30
    columns = {"day": days, "y": np.arange(120.0)}
    with pytest.raises(TableError, match="may come first"):
        fit_table({**columns, "day": ["01/02/2023", *days[1::2], *days[1::2][:-1]]}, "y", **QUICK)
    model = fit_table(columns, "y", **QUICK)
    assert model.encoder.columns[0].format == "day first"
    assert model.predict({"day": ["2023-02-01"]}) == model.predict({"day": ["01.02.2023"]})
    only = fit_table({**columns, "day": days[1::2] * 2}, "y", **QUICK)
    assert only.encoder.columns[0].format == "year first"


def test_two_digit_years_have_a_note():
    days = [
        f"{day:02}.0{month}.9{year}" for day in range(1, 28) for month in (1, 7) for year in "89"
    ]
    columns = {"day": days, "y": np.arange(len(days), dtype=float)}
    model = fit_table(columns, "y", **QUICK)
    assert any("'01.01.98', are read as 1969 to 2068" in note for note in model.summary.notes)
    with_hyphens = open_table({"day": [day.replace(".", "-") for day in days]})
    assert with_hyphens.columns[0].kind == "category"
    (note,) = map(str, with_hyphens.notes)
    assert "'01-01-98', may be dates with two-digit years" in note
    assert "(dates=['day'])" in note
    assert open_table({"day": ["1/2/3", "4/5/6"]}).columns[0].kind == "category"


def test_mixed_formats_are_named():
    days = ["31/12/2023"] * 50 + ["12/31/2023"] * 50
    with pytest.raises(TableError, match=r"has '12/31/2023' in row 51, which is not a date in the"):
        fit_table({"day": days, "y": np.arange(100.0)}, "y", dates=["day"], **QUICK)


def test_missing_dates_and_typed_columns():
    when, y = make_table()
    frame = pd.DataFrame({"when": when.astype("datetime64[s]"), "y": y})
    frame["for"] = pd.to_timedelta(np.arange(250), "h")
    frame["at"] = [dt.time(each % 24, 30) for each in range(250)]
    frame.loc[::9, "when"] = pd.NaT
    model = fit_table(frame, "y", missing="impute", **QUICK)
    names = model.encoder.input_names()
    assert "when is missing" in names
    assert [each.parts for each in model.encoder.columns[1:]] == [
        ("elapsed time",),
        ("time of day",),
    ]
    assert np.isfinite(model.predict(frame)).all()
    with pytest.raises(TableError, match="column 'when' has no value in row 1"):
        fit_table(frame, "y", **QUICK)


def test_strings_in_memory_and_json_lines_may_be_dates(tmp_path):
    frame = pd.DataFrame({"day": ["31.12.2023", "NA", "01.06.2024"], "word": ["a", "b", "c"]})
    path = tmp_path / "rows.jsonl"
    path.write_text('{"day": "2023-12-31T08:00:00", "word": "a"}\n{"day": null, "word": "b"}\n')
    for source in (frame, pa.Table.from_pandas(frame), path):
        table = open_table(source)
        assert [column.kind for column in table.columns] == ["date", "category"]
        (block,) = table.blocks()
        assert block.data.column("day")[1].as_py() is None
        assert open_table(source, categorical=["day"]).columns[0].kind == "category"
    assert open_table({"day": ["31.12.2023", "soon"]}).columns[0].kind == "category"


def test_a_column_of_equal_dates_is_left_out():
    columns = {"day": ["2024-01-01"] * 120, "x": np.arange(120.0) ** 3, "y": np.arange(120.0) ** 2}
    model = fit_table(columns, "y", dates=["day"], **QUICK)
    assert model.encoder.columns[0].n_columns == 0
    assert "1 constant column is left out: 'day'." in model.summary.notes


def test_times_have_an_offset_from_utc_or_none_has():
    zoned = ["2024-01-05 12:00:00+02", "2024-02-06 12:00Z", "2024-03-07"]
    bare = ["2024-01-05 12:00:00", "2024-02-06 12:00"]
    formats = DateFormats("when")
    formats.update(pa.array(zoned), file="f", first_row=0)
    encoding = formats.encoding(pa.array(zoned), marks=False, day_first=None)
    assert "'2024-01-05 12:00:00+02', are converted to UTC" in str(formats.note(encoding))
    with pytest.raises(TableError, match=r"'when' has times with an offset .* and without"):
        formats.update(pa.array(bare), file="f", first_row=0)
    encoder = ColumnEncoder([encoding], "error")
    encoder.encode(pa.record_batch({"when": zoned}))
    utc = pa.array([dt.datetime(2024, 1, 5)], pa.timestamp("us", "UTC"))
    encoder.encode(pa.record_batch({"when": utc}))
    encoder.encode(pa.record_batch({"when": pa.array([dt.date(2024, 1, 5)])}))
    with pytest.raises(TableError, match="'2024-01-05 12:00:00' in row 4, without an offset"):
        encoder.encode(pa.record_batch({"when": bare}), first_row=3)
    with pytest.raises(TableError, match="in row 1, without an offset"):
        encoder.encode(pa.record_batch({"when": utc.cast(pa.timestamp("us"))}))
    encoder = ColumnEncoder([replace(encoding, zoned=False)], "error")
    with pytest.raises(TableError, match=r"12:00:00\+02', with an offset"):
        encoder.encode(pa.record_batch({"when": zoned}))


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (pa.timestamp("s"), 2**62),
        (pa.timestamp("s", "UTC"), -(2**62)),
        (pa.timestamp("ms"), 2**55),
        (pa.date32(), 2**31 - 1),
        (pa.date64(), -(2**62)),
        (pa.duration("s"), 2**62),
    ],
)
def test_dates_out_of_range_are_rejected(kind, number):
    width = pa.int32() if kind == pa.date32() else pa.int64()
    for numbers, row in (([5, None, number], 3), ([number, 5], 1)):
        column = pa.array(numbers, width).cast(kind)
        problem = rf"f: column 'when' has {number} \(.*\) in row {row + 10}, which is out of range"
        with pytest.raises(TableError, match=problem):
            DateFormats("when").update(column, file="f", first_row=10)
        with pytest.raises(TableError, match=problem):
            date_values(column, "when", "year first", "f", 10)


def test_dates_far_from_now():
    column = pa.array([2**62, 0], pa.int64()).cast(pa.timestamp("us"))  # the year 148,108
    formats = DateFormats("when")
    formats.update(column, file="f", first_row=0)
    assert "year" in formats.encoding(column, marks=False, day_first=None).parts
