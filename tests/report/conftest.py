"""Records of every shape, and a real browser, controlled through a pipe."""

import json
import math
import os
import random
import select
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import cache

import pytest

from kernelmill.report import render
from kernelmill.workflows.records import (
    Calibration,
    ColumnRelevance,
    ComparedModel,
    Comparison,
    Coverage,
    Evaluation,
    FitSummary,
    InputColumn,
    KernelCheck,
    LearningPoint,
    PartialDependence,
    TuningPoint,
)

MALICIOUS = "<script>alert(1)</script>\"'&$x_1$"
LONG = "a_very_long_name_without_any_place_to_break_" * 4


def kernel_check(n=400):
    draw = random.Random(0)
    exact = [draw.random() ** 2 for _ in range(n)]
    estimated = [value + draw.gauss(0, 0.03) for value in exact]
    return KernelCheck(exact, estimated, 0.03, 4096)


def confusion(n_classes, draw):
    rows = [[draw.choice((0, 0, 1, 3)) for _ in range(n_classes)] for _ in range(n_classes)]
    for k in range(n_classes):
        rows[k][k] = 40 + 7 * k
    return rows


def classification(classes, source="data/adult.test"):
    matrix = confusion(len(classes), random.Random(1))
    total = sum(map(sum, matrix))
    right = sum(matrix[k][k] for k in range(len(classes)))
    error = 1 - right / total
    metrics = {"error": error, "error_low": error - 0.01, "error_high": error + 0.013}
    metrics |= {"balanced_error": error + 0.02, "log_loss": 0.31}
    if len(classes) == 2:
        metrics["auc"] = 0.913
    sure = [0.52, 0.58, 0.66, 0.74, 0.85, 0.93, 0.99]
    observed = [0.5, 0.61, 0.63, 0.75, 0.83, 0.95, 0.99]
    calibration = Calibration(sure, observed, [120, 240, 230, 310, 480, 1200, 3100])
    return Evaluation(
        "classification",
        source,
        total,
        metrics,
        0.21,
        classes=classes,
        confusion=matrix,
        calibration=calibration,
    )


def regression(*, coverage=True):
    draw = random.Random(2)
    actual = [draw.choice((3, 4, 5, 6, 7, 8, 9)) + draw.gauss(0, 0.2) for _ in range(700)]
    predicted = [0.6 * value + 2.4 + draw.gauss(0, 0.5) for value in actual]
    nominal = [0.5, 0.68, 0.8, 0.9, 0.95, 0.99]
    return Evaluation(
        "regression",
        "winequality-white.csv",
        980,
        {"rmse": 0.655, "mae": 0.497, "r2": 0.449, "target_std": 0.882},
        0.04,
        coverage=Coverage(nominal, [0.54, 0.7, 0.83, 0.91, 0.95, 0.98]) if coverage else None,
        actual=actual,
        predicted=predicted,
    )


def relevance_of(names):
    """Falls from 1 by halves, with intervals around it."""
    return [
        ColumnRelevance(name, 0.5**k, 0.4 * 0.5**k, min(1.0, 1.3 * 0.5**k))
        for k, name in enumerate(names)
    ]


def dependence_of(names, classes):
    """Numbers in the first and the last of three columns, categories between them."""
    many = classes is not None and len(classes) > 2
    outputs = ["quality"] if classes is None else classes[:5] if many else classes[1:]
    quantity = "prediction" if classes is None else "probability"
    found = []
    for name, kind in zip(names, ("numeric", "category", "numeric"), strict=True):
        values = [round(1.7**k, 3) for k in range(20)]
        if kind == "category":
            values = ["Private", "State-gov", MALICIOUS, LONG, *(f"group {k}" for k in range(9))]
        means = [
            [0.2 + 0.15 * math.sin(k / 4 + place) for k in range(len(values))]
            for place in range(len(outputs))
        ]
        found.append(PartialDependence(name, kind, values, quantity, outputs, means, 488))
    return found


def wide(fit, n_columns=200):
    """A table with many columns, of which some have long names."""
    names = [f"column number {k} " + LONG * (k % 7 == 3) for k in range(n_columns)]
    return replace(
        fit,
        columns=[InputColumn(name, "numeric", 1, 0, "mean 0, deviation 1") for name in names],
        n_inputs=n_columns,
        column_relevance=[
            ColumnRelevance(name, 0.97**k, 0.9 * 0.97**k, min(1, 1.2 * 0.97**k))
            for k, name in enumerate(names)
        ],
        partial_dependence=2 * fit.partial_dependence,
    )


def fit_summary(held_out, *, target="income", names=("age", "workclass", "hours-per-week")):
    is_classes = held_out is not None and held_out.task == "classification"
    columns = [
        InputColumn(name, kind, n, missing, detail)
        for name, (kind, n, missing, detail) in zip(
            names,
            [
                ("numeric", 1, 0, "mean 38.6, std 13.6"),
                ("category", 9, 1836, "8 categories and missing, 2 of them pooled"),
                ("numeric", 1, 0, "mean 40.4, std 12.3"),
            ],
            strict=True,
        )
    ]
    tuning = [
        TuningPoint(scale, alpha, 0.15 + 0.02 * math.log(scale / 4) ** 2 + 40 * abs(alpha - 1e-4))
        for scale in (1.0, 2.0, 4.0, 8.0, 16.0)
        for alpha in (1e-5, 1e-4, 1e-3)
    ]
    if is_classes:
        tuning += [TuningPoint(s, 2e-5, 0.3 + 0.01 * abs(s - 5), "log loss") for s in (4, 5.7, 8)]
    curve = [
        LearningPoint(2000 * k, 0.3 + 0.4 / k, 0.14 + 0.1 / k if k % 2 else None)
        for k in range(1, 31)
    ]
    return FitSummary(
        task="classification" if is_classes else "regression",
        source="data/adult.data",
        target=target,
        n_rows=29305,
        n_held_out=3256,
        columns=columns,
        n_inputs=108,
        map_name="fastfood",
        kernel="Gaussian()",
        n_components=4096,
        length_scale=5.2915,
        alpha=1e-4,
        loss="log_loss" if is_classes else "squared",
        seed=0,
        seconds={"read": 0.9, "tune": 11.2, "train": 6.4, "evaluate": 0.5},
        peak_memory=412 * 2**20,
        classes=held_out.classes if is_classes else None,
        tuning=tuning,
        learning_curve=curve,
        kernel_check=kernel_check(),
        held_out=held_out,
        notes=["No header: columns are numbered.", "1,836 missing values were imputed."],
        version="0.1.0",
        created="2026-11-16T08:25:00+00:00",
        column_relevance=relevance_of(names),
        partial_dependence=dependence_of(names, held_out.classes if is_classes else None),
    )


def comparison_of(error_name="error"):
    models = [ComparedModel("linear", "linear", None, 4000, 0.152, 0.31, 0.004, 3 * 2**20)]
    for name, worse in (("fastfood", 0.0), ("random_fourier", 0.002), ("taylor_sketch", 0.015)):
        models += [
            ComparedModel(
                name, "features", n, 4000, 0.06 + worse + 1.4 / n**0.6, n / 900, n / 9000, n * 9000
            )
            for n in (256, 1024, 4096)
        ]
    models += [
        ComparedModel("nystroem", "nystroem", 1024, 4000, 0.09, 3.1, 0.4, 60 * 2**20),
        ComparedModel("boosted trees", "trees", None, 4000, 0.08, 1.2, 0.02, 9 * 2**20),
        ComparedModel("random forest", "trees", None, 3000, 0.11, 0.9, 0.1, 30 * 2**20),
    ]
    models.append(
        ComparedModel(
            "exact kernel", "exact", None, 2000, 0.067, 14.2, 2.1, 130 * 2**20, "SVC, C = 10"
        )
    )
    task = "classification" if error_name == "error" else "regression"
    return Comparison(
        task, "data/digits.csv", "digit", 4000, 800, error_name, models, kernel_check(900)
    )


def bare(fit):
    return replace(
        fit, tuning=[], learning_curve=[], kernel_check=None, held_out=None, seconds={}, notes=[],
        columns=[], peak_memory=None, length_scale=None, classes=None, version="", created="",
        n_held_out=0, column_relevance=[], partial_dependence=[],
    )  # fmt: skip


def make_samples():
    two = classification(["<=50K", ">50K"])
    ten = classification([str(k) for k in range(10)])
    forty = classification([f"class number {k}" for k in range(40)])
    hundred = classification([f"c{k}" for k in range(100)])
    malicious = classification(
        [MALICIOUS, LONG, "#1a66a8", "", "日本語\x00\ud800\u202e"], MALICIOUS
    )
    malicious = replace(malicious, notes=[MALICIOUS, LONG])
    compared = comparison_of()
    unknown = replace(
        two,
        metrics=dict.fromkeys(two.metrics, float("nan")) | {"auc": None},
        calibration=Calibration([0.5], [float("nan")], [0]),
    )
    renamed = [replace(m, name=f"{m.name} {LONG}", detail=MALICIOUS) for m in compared.models]
    lost = [replace(m, error=float("nan"), peak_memory=None) for m in compared.models]
    return {
        "two_classes": {"fit": fit_summary(two), "evaluation": replace(two, source="adult.test")},
        "ten_classes": {"fit": fit_summary(ten, target="digit"), "comparison": compared},
        "forty_classes": {"fit": fit_summary(forty)},
        "hundred_classes": {"evaluation": hundred},
        "regression": {"fit": fit_summary(regression(), target="quality")},
        "wide": {"fit": wide(fit_summary(regression(), target="quality"))},
        "one_scale": {"fit": replace(fit_summary(two), column_relevance=[], partial_dependence=[])},
        "no_coverage": {"evaluation": regression(coverage=False)},
        "comparison": {"comparison": compared},
        "comparison_rmse": {"comparison": comparison_of("rmse")},
        "bare": {"fit": bare(fit_summary(two))},
        "unknown": {
            "evaluation": unknown,
            "comparison": replace(compared, models=lost, kernel_check=None),
        },
        "malicious": {
            "fit": fit_summary(malicious, target=MALICIOUS, names=(MALICIOUS, LONG, "\ud800")),
            "evaluation": malicious,
            "comparison": replace(compared, models=renamed, source=LONG, target=LONG),
            "title": MALICIOUS + LONG,
        },
    }


@pytest.fixture(scope="session")
def samples():
    return make_samples()


@pytest.fixture(scope="session")
def rendered(samples):
    """The page of each sample, made when it is first asked for."""
    return cache(lambda name: render(**samples[name]))


@pytest.fixture(params=sorted(make_samples()))
def page_text(request, rendered):
    return rendered(request.param)


# The browser expects its pipes under the numbers 3 and 4.
NUMBER_PIPES = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
os.dup2(pipes[0], 3)
os.dup2(pipes[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """Chromium without a window, driven by the DevTools protocol over the pipes 3 and 4."""

    def __init__(self, program, folder):
        to_child, self._write = os.pipe()
        self._read, from_child = os.pipe()
        command = [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--no-first-run", "--hide-scrollbars", f"--user-data-dir={folder}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-c", NUMBER_PIPES, str(to_child), str(from_child), *command],
            pass_fds=(to_child, from_child),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_child)
        os.close(from_child)
        self._buffer = b""
        self._last_id = 0
        self.events = []
        self._session = None

    def start(self):
        """Open a window and listen to what happens in it."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._last_id:
                assert "error" not in answer, answer
                return answer["result"]

    def _receive(self, seconds=60):
        deadline = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], deadline - time.monotonic())
            chunk = os.read(self._read, 1 << 16) if ready else b""
            if not chunk:
                raise OSError("the browser does not answer")
            self._buffer += chunk
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

    def wait_for(self, method):
        while not any(event["method"] == method for event in self.events):
            self._receive()

    def open(self, path, width, scheme):
        """Show a page in a window of this width, to a reader who prefers this colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        preference = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[preference])
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        self.wait_for("Page.loadEventFired")

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def close(self):
        self._session = None
        try:
            self.call("Browser.close")
            self._process.wait(20)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        os.close(self._write)


@pytest.fixture(scope="session")
def browser():
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    program = next((found for name in names if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip(f"no browser to look at pages with: none of {', '.join(names)} is installed")
    folder = tempfile.mkdtemp()
    started = Browser(program, folder)
    try:
        started.start()
        yield started
    finally:
        started.close()
        shutil.rmtree(folder, ignore_errors=True)
