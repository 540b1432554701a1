"""Every code block of README.md and docs/ runs, or states why it is not run.

Python blocks of a page run in order in one namespace, shell blocks line by line, all in a temporary
folder with small files of the names that the page uses. A comment behind a call of ``print`` is the
expected output, numbers rounded as in the comment. Models of tables have fewer features than the
default, one kernel instead of a comparison of several, and few epochs; a diagnosis measures fewer
features. Blocks that cannot run are preceded by ``<!-- not run: reason -->``.
"""

import contextlib
import gzip
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import kernelmill
from kernelmill.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: (\S[^\n]*) -->\n$")
N_COMPONENTS, KERNEL = 64, "gaussian"
PRINTED = re.compile(r"^ *print\(.*\)  # (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced code block; `skip` is the reason not to run it."""

    language: str
    code: str
    line: int
    skip: str | None


def read_blocks(page: Path) -> list[Block]:
    text = page.read_text()
    blocks = []
    for match in FENCE.finditer(text):
        mark = NOT_RUN.search(text[: match.start()])
        line = text.count("\n", 0, match.start()) + 1
        blocks.append(Block(match[1], match[2], line, mark and mark[1]))
    return blocks


def write_adult(folder: Path) -> dict:
    """The format of the Adult data: no header, blanks behind commas, question marks."""
    rng = np.random.default_rng(0)

    def lines(n_rows, full_stop=""):
        for age, hours, chance in rng.uniform(size=(n_rows, 3)):
            work = "?" if chance < 0.1 else "Private" if chance < 0.6 else "State-gov"
            label = ">50K" if (age - 0.5) ** 2 + (hours - 0.5) ** 2 < 0.1 else "<=50K"
            values = [f"{50 * age:.0f}", work, f"{60 * hours:.0f}", *["0"] * 11]
            yield ", ".join([*values, label + full_stop])

    for name, n_rows in {"adult.data": 120, "new.csv": 50}.items():
        (folder / name).write_text("\n".join(lines(n_rows)) + "\n")
    (folder / "adult.test").write_text("\n".join(lines(100, ".")) + "\n")
    return {}


def write_files(folder: Path) -> dict:
    """White wines, with semicolons and a header, and Covertype, a matrix of integers."""
    rng = np.random.default_rng(0)
    wines = rng.uniform(size=(300, 3)).round(3)
    rows = [f"{a};{b};{c};{round(3 + 5 * np.sin(3 * a) * b)}" for a, b, c in wines]
    for name in ("winequality-white.csv", "new-wines.csv"):
        (folder / name).write_text("\n".join(['"acid";"sugar";"salt";"quality"', *rows]) + "\n")
    cover = rng.integers(0, 200, size=(120, 55))
    cover[:, 54] = 1 + (np.hypot(*(cover[:, :2] - 100).T) < 60)
    lines = [",".join(map(str, row)) for row in cover]
    (folder / "covtype.data.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (folder / "test.csv").write_text("\n".join(lines[:100]) + "\n")
    (folder / "new.csv").write_text("\n".join(line.rpartition(",")[0] for line in lines[:50]))
    return {}


def draw_rows(_: Path) -> dict:
    """Rows and classes, or numbers to predict, under the names that the pages use."""
    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(600, 4)), rng.normal(size=(200, 4))
    y, y_new = (((rows**2).sum(axis=1) < 3.4).astype(int) for rows in (X, X_new))
    return {"X": X, "y": y, "X_new": X_new, "y_new": y_new}


def draw_samples(_: Path) -> dict:
    rng = np.random.default_rng(0)
    return {"X": rng.normal(size=(300, 5)), "Y": rng.normal(size=(200, 5)) + 0.5}


# What a page finds: files in its folder and names in its namespace.
SURROUNDINGS: dict[str, Callable[[Path], dict]] = {
    "README.md": write_adult,
    "diagnostics.md": write_files,
    "files.md": write_files,
    "learners.md": draw_rows,
    "model-files.md": draw_rows,
    "pipelines.md": draw_rows,
    "taylor-or-fastfood.md": draw_rows,
    "two-sample-test.md": draw_samples,
}


def run_python(block: Block, page: Path, namespace: dict) -> None:
    # Line numbers of a traceback are those of the page.
    code = compile("\n" * block.line + block.code, str(page), "exec")
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(code, namespace)
    expected = PRINTED.findall(block.code)
    if expected:
        printed = output.getvalue().splitlines()
        assert [round_like(*pair) for pair in zip(printed, expected, strict=True)] == expected


def round_like(value: str, shown: str) -> str:
    """`value` with as many decimals as `shown`, if that is a number."""
    decimals = re.fullmatch(r"-?\d+\.(\d+)", shown)
    return f"{float(value):.{len(decimals[1])}f}" if decimals else value


def run_shell(block: Block) -> None:
    for line in block.code.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["kernelmill"]:  # in this process, where the imports are done
            quick = ["-n", str(N_COMPONENTS), "--kernel", KERNEL]
            code = main([*words[1:], *(quick if words[1] in ("fit", "compare") else [])])
        else:
            path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
            done = subprocess.run(line, shell=True, check=False, env=os.environ | {"PATH": path})
            code = done.returncode
        assert code == 0, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
@pytest.mark.usefixtures("few_epochs")
def test_code_runs(page, tmp_path, monkeypatch):
    namespace = SURROUNDINGS.get(page.name, lambda _: {})(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, size in {"fit_table": N_COMPONENTS, "compare_table": [N_COMPONENTS]}.items():
        smaller = partial(getattr(kernelmill.workflows, name), n_components=size, kernel=KERNEL)
        monkeypatch.setattr(kernelmill, name, smaller, raising=False)
    monkeypatch.setattr("kernelmill.workflows.diagnosis._MAX_FEATURES", 256)
    monkeypatch.setattr("kernelmill.workflows.diagnosis._GRAM_ROWS", 60)
    n_threads = kernelmill.get_num_threads()
    with threadpool_limits(1, user_api="blas"):  # small products, and other tests run beside it
        for block in read_blocks(page):
            assert block.language in ("python", "sh", "text"), f"language of line {block.line}"
            if block.skip or block.language == "text":
                continue
            if block.language == "python":
                run_python(block, page, namespace)
            else:
                run_shell(block)
    kernelmill.set_num_threads(n_threads)


def test_pages_with_code_are_known():
    with_code = {page.name for page in PAGES if any(not b.skip for b in read_blocks(page))}
    assert {"README.md", "files.md", "which-map.md", "learners.md"} <= with_code
    assert set(SURROUNDINGS) <= with_code


@pytest.mark.representative
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_fence_is_a_block(page):
    """No block escapes by an odd fence: indented, of tildes or with words behind the language."""
    text = page.read_text()
    fences = re.findall(r"^\s*(?:```|~~~).*$", text, re.MULTILINE)
    assert len(fences) == 2 * len(read_blocks(page))


@pytest.mark.representative
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / link).exists(), link
