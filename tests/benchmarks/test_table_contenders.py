"""Contenders accept what tables hold: categories, new ones in the test, missing values."""

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from benchmarks.tables.comparison import measure
from benchmarks.tables.contenders import CONTENDERS
from benchmarks.tables.sources import Table

PEERS = ["kernelmill", "hgb", "linear", "forest", "rbf_sampler", "svm"]


def mixed_table(task):
    """400 rows whose target follows a number and a category, with missing values of both."""
    rng = np.random.default_rng(0)
    town = rng.choice(["Lima", "Oslo", "Rome"], 400)
    x = rng.normal(size=400)
    y = x + 2 * (town == "Oslo")
    frame = pd.DataFrame({"x": x, "town": town.astype(object), "noise": rng.normal(size=400)})
    frame.loc[::50, "x"] = np.nan
    frame.loc[1::50, "town"] = None
    # This row is in the test of seed 0: a level that the training rows lack.
    frame.loc[np.random.default_rng(0).permutation(400)[0], "town"] = "Bern"
    target = np.where(y > 1, "high", "low") if task == "classification" else y
    return Table("mixed", task, "y", frame.assign(y=target))


@pytest.mark.usefixtures("few_epochs")
@pytest.mark.parametrize("model", PEERS)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_every_contender_learns_from_a_mixed_table(model, task):
    with threadpool_limits(1):  # boosted trees lose seconds where threads outnumber idle cores
        made = measure(mixed_table(task), 0, model)
    # A constant has an error near 1/3 or an RMSE near 1.4; missing cells cost all models some.
    assert made.error < (0.15 if task == "classification" else 0.6)
    assert (made.log_loss is None) == (task == "regression" or model == "svm")
    assert (made.n_train, made.n_test) == (320, 80)


def test_the_contenders_tested_here_are_all_that_need_no_optional_package():
    assert set(PEERS) == set(CONTENDERS) - {"lightgbm"}
