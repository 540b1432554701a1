"""Past failures, replayed, and a few mutations of every subject; `make fuzz` runs many."""

import shutil
import time
import zipfile
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzzing import arrays, campaign, checkpoints, model_files, tables
from fuzzing.campaign import Subject, run_campaign
from fuzzing.mutation import change_record, mutate_bytes, mutate_text
from kernelmill.errors import KernelmillError
from kernelmill.files import kinds, model_file
from kernelmill.io import open_table
from kernelmill.io.matrix import matrix_file
from kernelmill.io.text.parser import TextParser
from kernelmill.learners import prediction
from kernelmill.learners.run import SavedState

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())
SUBJECTS = {
    subject.name: subject
    for subject in (
        *tables.make_subjects(),
        *model_files.make_subjects(),
        *checkpoints.make_subjects(),
        *arrays.make_subjects(),
    )
}


@pytest.mark.representative
@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.name)
def test_past_failures(file, tmp_path):
    """A name ends in that of the subject, after the first hyphen."""
    name = file.name.split("-", 1)[1]
    shutil.copy(file, tmp_path / name)
    assert SUBJECTS[name].judge(tmp_path / name)


@pytest.mark.parametrize("name", sorted(SUBJECTS))
def test_some_mutations(name, tmp_path):
    tally = run_campaign(SUBJECTS[name], 12, 2026, tmp_path)
    assert tally.failures == []
    assert tally.tried == 12


def test_failures_are_counted_and_kept(tmp_path):
    def judge(path):
        assert path.read_bytes() != b"ac"
        return "accepted"

    subject = Subject(
        "two.bytes", (b"ab",), lambda content, rng: b"a" + rng.choice([b"b", b"c"]), judge
    )
    tally = run_campaign(subject, 30, 0, tmp_path, tmp_path / "kept")
    assert 0 < len(tally.failures) < 30
    assert len(list((tmp_path / "kept").iterdir())) == len(tally.failures)
    assert "AssertionError" in tally.failures[0]


def lose_the_last_row(original):
    def parse(self, data, first_line):
        batch = original(self, data, first_line)
        return batch.slice(0, batch.num_rows - 1) if b"e" in data else batch

    return parse


PLANTED = {  # a bug, and the subject that must find it
    "a checksum is not read": (
        "rows.idx.gz",
        lambda patch: patch.setattr(matrix_file, "read_to_end", lambda *_: None),
    ),
    "rows are lost": (
        "rows.csv",
        lambda patch: patch.setattr(TextParser, "parse", lose_the_last_row(TextParser.parse)),
    ),
    "tensors are not checked": (
        "learner.kmill",
        lambda patch: patch.setattr(kinds.Array, "_check", lambda *_: None),
    ),
    "scores are not checked": (
        "extreme.kmill",
        lambda patch: patch.setattr(prediction, "_check_finite", lambda *_: None),
    ),
    "a checksum is not compared": (
        "damaged.kmill",
        lambda patch: patch.setattr(model_file, "_checksum", lambda *_: mock.ANY),
    ),
    "a state is not checked": (
        "run.checkpoint",
        lambda patch: patch.setattr(zipfile.ZipExtFile, "_update_crc", lambda *_: None),
    ),
    "shapes and dtypes of a state are not checked": (
        "cg.checkpoint",
        lambda patch: patch.setattr(
            SavedState, "array", lambda saved, name, *_: saved._arrays[name]
        ),
    ),
    "strides are ignored": (
        "dense.arrays",
        lambda patch: patch.setattr(arrays, "sincos", lambda X: (X.ravel("K"),)),
    ),
    "it hangs": (
        "sparse.arrays",
        lambda patch: (
            patch.setattr(campaign, "_MAX_SECONDS", 1),
            patch.setattr(arrays, "_generator", lambda _: time.sleep(60)),
        ),
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_are_found(bug, tmp_path, monkeypatch):
    name, plant = PLANTED[bug]
    plant(monkeypatch)
    n = 1 if bug == "it hangs" else 40
    assert run_campaign(SUBJECTS[name], n, 1, tmp_path).failures != []


def test_mutations_are_functions_of_the_seed():
    for mutate in (mutate_bytes, mutate_text):
        first = [mutate(b"some bytes", np.random.default_rng(i)) for i in range(50)]
        assert first == [mutate(b"some bytes", np.random.default_rng(i)) for i in range(50)]
        assert len(set(first)) > 40
    record = {"a": [1, {"b": 2.0}], "c": "text"}
    changed = [change_record(record, np.random.default_rng(i)) for i in range(50)]
    assert record == {"a": [1, {"b": 2.0}], "c": "text"}
    assert sum(each != record for each in changed) > 40


CELLS = st.one_of(
    st.sampled_from(["", "1", "-2.5", "1e5", "NA", " x", '"', "a,b", "two\nlines", "\ufeffz"]),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4),
)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6), block=st.integers(1, 60))
def test_rows_of_text_do_not_depend_on_blocks(tmp_path, rows, block):
    """All values are written in quotes, so that every text is a value."""
    path = tmp_path / "rows.csv"
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    path.write_text("a,b\n" + "\n".join(quoted) + "\n", encoding="utf-8", newline="")
    found = []
    for block_bytes in (1 << 20, block):
        options = {"delimiter": ",", "header": True, "categorical": ["a", "b"]}
        try:
            found.append(tables.read_rows(path, block_bytes=block_bytes, **options))
        except KernelmillError as error:
            found.append(type(error))
    assert found[0] == found[1]
    if isinstance(found[0], list):
        assert len(found[0]) == len(rows)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    content=st.binary(max_size=60),
    name=st.sampled_from(["rows", "rows.csv", "rows.npy", "rows.svm"]),
)
def test_any_bytes_are_a_table_or_an_error(tmp_path, content, name):
    path = tmp_path / name
    path.write_bytes(content)
    try:
        for block in open_table(path).blocks():
            assert block.n_rows > 0
    except KernelmillError:
        pass
