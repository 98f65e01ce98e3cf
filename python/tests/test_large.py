"""A vector of more than 2 GiB through a whole run. It needs many times that of memory and disk, so it runs only with TROUPE_LARGE=1; TROUPE names the
program, as for test_launch.py."""

import os

import numpy
import pytest

import troupe
from test_launch import launch, program  # noqa: F401

FLOATS = 2**29 + 1001  # 2 GiB and 4 kB more
LARGE = f"""
import numpy
import troupe
params = {{"small": numpy.zeros(3, numpy.float32), "large": numpy.zeros({FLOATS}, numpy.float32)}}
run = troupe.join(params=params)
for batch in run.batches(4, 1):
    params["large"][[0, 2**28, -1]] += numpy.float32([1, 2, 3])
    params["small"] += 1
    run.step(1.0)
run.evaluate(lambda: {{"loss": params["large"][-1]}})
"""


@pytest.mark.skipif(os.environ.get("TROUPE_LARGE") != "1", reason="TROUPE_LARGE=1 runs it")
def test_a_vector_of_more_than_2_gib(program, tmp_path):  # noqa: F811
    summary = launch(program, tmp_path, "easgd", LARGE, workers=1, seconds=3600, settings=["strategy.tau=2", "strategy.alpha=0.5"])
    # Of every step's 1: after 2 steps x = 2, and c and x meet at 1; after 2 more x = 3, and they meet at 2.
    assert summary["samples"] == 4 and summary["test"]["loss"] == 6
    trained = {"small": numpy.zeros(3, numpy.float32), "large": numpy.ones(FLOATS, numpy.float32)}
    troupe.load(trained, summary["run"])
    assert trained["small"].tolist() == [2, 2, 2]
    assert trained["large"][[0, 2**28, -1]].tolist() == [2, 4, 6]
    assert numpy.count_nonzero(trained["large"]) == 3
