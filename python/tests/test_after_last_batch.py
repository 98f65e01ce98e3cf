"""Programs of the real engine that fail where they save their model, or tell what no run can take."""

import os
import subprocess
import sys

import pytest

from test_launch import LINEAR, PACKAGE, launch, program  # noqa: F401

JOINED = LINEAR + """
run = troupe.join(params=params, step=sgd)
for batch in run.batches(SAMPLES, SIZE, epochs=1):
    IN_LOOP
    run.step(*gradients_of(batch))
scores = run.evaluate(lambda: {"loss": gradients_of(numpy.arange(64))[0], "accuracy": ACCURACY})
assert bool(scores) == run.is_main
AFTER
"""


def script(samples=64, size=4, in_loop="pass", accuracy="0.5", after="pass"):
    text = JOINED
    for name, value in (("SAMPLES", samples), ("SIZE", size), ("IN_LOOP", in_loop), ("ACCURACY", accuracy), ("AFTER", after)):
        text = text.replace(name, str(value))
    return text


def failed(program, folder, text):  # noqa: F811
    """Exit code and standard error."""
    (folder / "guest.py").write_text(text, encoding="utf-8")
    done = subprocess.run([program, "launch", "--workers", "2", "--strategy", "easgd", "--set", f"run.dir={folder}/runs", "--", sys.executable, "-B",
                           str(folder / "guest.py")], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1"})
    return done.returncode, done.stderr


@pytest.mark.parametrize("who, name", [("run.is_main", "the evaluator"), ("run.role == 'worker' and run.worker == 1", "worker 1")])
def test_an_exception_after_the_last_batch_is_the_runs(program, tmp_path, who, name):  # noqa: F811
    code, errors = failed(program, tmp_path, script(after=f"if {who}: raise ValueError('the disk is full')"))
    assert code == 69
    assert errors.splitlines()[-1] == (f"troupe: {name}: its program ended with exit code 1 after its last batch; its last line: ValueError: the disk is full; "
                                       "the run itself is complete, and its results are saved")


def test_an_exit_code_after_the_last_batch_is_said(program, tmp_path):  # noqa: F811
    code, errors = failed(program, tmp_path, script(after="if run.is_main: sys.exit(3)"))
    assert code == 69 and "evaluator: warning: its program ended with exit code 3 after its last batch\n" in errors


def test_a_percentage_is_no_accuracy(program, tmp_path):  # noqa: F811
    code, errors = failed(program, tmp_path, script(accuracy="83.4"))
    assert code == 69
    assert 'run.evaluate: "accuracy" is 83.4: it is a share of the samples, from 0 to 1 (divide percentages by 100)' in errors


def test_an_exception_with_part_of_a_character_is_said(program, tmp_path):  # noqa: F811
    code, errors = failed(program, tmp_path, script(in_loop="raise OSError('caf\\udce9.txt')"))
    assert code == 69 and "the program has failed: OSError: caf?.txt; it ended with exit code 1" in errors


def test_a_batch_may_be_larger_than_the_data(program, tmp_path):  # noqa: F811
    summary = launch(program, tmp_path, "easgd", script(samples=30, size=64), workers=1)
    assert summary["samples"] == 30
