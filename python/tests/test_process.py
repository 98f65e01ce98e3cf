"""Guests as processes of their own: how they end, and what the engine hears of it."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from fake_engine import FakeEngine, planned
from troupe import _frames as frames

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
BEGINNING = """
import os, sys
import numpy
import troupe
params = {"w": numpy.zeros(2, numpy.float32)}
run = troupe.join(params=params)
"""


def guest(script, program):
    """Runs `program` behind join() beside `script`. Returns the ended process, with its stderr."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "TROUPE_TOKEN": "1" * 32}
    with FakeEngine(script) as engine:
        environment["TROUPE_GUEST"] = engine.name
        process = subprocess.Popen([sys.executable, "-c", BEGINNING + program], env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)
        engine.process = process
        _, errors = process.communicate(timeout=120)
    return process.returncode, errors


def test_an_error_of_the_program_is_told_with_its_traceback():
    def script(engine):
        engine.welcome()
        planned(engine)
        engine.send_step(0, [0])
        failed = engine.receive_json(frames.FAILED)
        assert failed["error"] == "KeyError: 'no such key'"
        assert "KeyError" in failed["traceback"].splitlines()[-1]
        assert engine.silent()

    code, errors = guest(script, """
for batch in run.batches(8, 4):
    raise KeyError("no such key")
""")
    assert code == 1 and "KeyError: 'no such key'" in errors


def test_an_error_with_part_of_a_character_is_told():
    def script(engine):
        engine.welcome()
        planned(engine)
        assert engine.receive_json(frames.FAILED)["error"] == "OSError: caf?.txt"  # strict UTF-8, as the engine reads it

    assert guest(script, "run.batches(8, 4); raise OSError('caf\\udce9.txt')")[0] == 1


def test_an_error_of_an_evaluation_is_told():
    def script(engine):
        engine.welcome(role="evaluator")
        planned(engine)
        engine.send(frames.LAST)
        engine.receive(frames.WAITS)
        engine.send(frames.EVALUATE, b"\0\0\0\0")
        assert engine.receive_json(frames.FAILED)["error"] == "TypeError: run.evaluate: the function returned float: a dict of numbers is needed"

    code, _ = guest(script, """
for batch in run.batches(8, 4):
    pass
run.evaluate(lambda: 0.5)
""")
    assert code == 1


def test_a_program_that_leaves_early_says_so_and_keeps_its_exit_code():
    def script(engine):
        engine.welcome()
        planned(engine)
        engine.send_step(0, [0])
        assert engine.receive_json(frames.FAILED)["error"] == "it ended within its loop over run.batches"
        assert engine.silent()

    assert guest(script, "for batch in run.batches(8, 4): sys.exit(0)")[0] == 0
    assert guest(script, "for batch in run.batches(8, 4): sys.exit(3)")[0] == 3


def test_a_program_without_a_loop_says_so():
    def script(engine):
        engine.welcome()
        assert engine.receive_json(frames.FAILED)["error"] == "it ended without a loop over run.batches"
        assert engine.silent()

    assert guest(script, "pass")[0] == 0


def test_a_program_that_ends_after_the_last_batch_says_nothing():
    def script(engine):
        engine.welcome()
        planned(engine)
        engine.step(0, [0])
        engine.send(frames.LAST)
        assert engine.silent()

    code, errors = guest(script, """
for batch in run.batches(8, 4):
    run.step(0.5)
run.evaluate(lambda: {})
""")
    assert (code, errors) == (0, "")


def test_an_error_after_the_last_batch_is_told():
    def script(engine):
        engine.welcome()
        planned(engine)
        engine.send(frames.LAST)
        assert engine.receive_json(frames.FAILED)["error"] == "ZeroDivisionError: division by zero"

    code, _ = guest(script, """
for batch in run.batches(8, 4):
    pass
1 / 0
""")
    assert code == 1


def test_ctrl_c_waits_for_the_engines_end():
    def script(engine):
        engine.welcome()
        planned(engine)
        engine.step(0, [0])
        os.killpg(engine.process.pid, signal.SIGINT)
        engine.step(1, [0])
        engine.end(130, "interrupted")

    code, errors = guest(script, """
for batch in run.batches(8, 4):
    run.step(0.5)
""")
    assert (code, errors) == (130, "troupe: the run ended: interrupted\n")


def test_child_processes_are_no_guests():
    """Forked children neither hold the connection nor tell of their end; other programs do not see the variables."""
    def script(engine):
        engine.welcome()
        planned(engine)
        engine.step(0, [0])
        engine.send(frames.LAST)
        assert engine.silent()

    code, errors = guest(script, """
reader, writer = os.pipe()
for batch in run.batches(8, 4):
    child = os.fork()
    if child == 0:
        sys.exit(5)  # the atexit functions run here, too
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    if os.fork() == 0:  # holds no connection while it waits
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    assert os.system('test -z "$TROUPE_GUEST$TROUPE_TOKEN"') == 0
    run.step(0.5)
run._link.close()
os.close(writer)
""")
    assert (code, errors) == (0, "")


def test_an_engine_that_dies_ends_the_guest():
    def script(engine):
        engine.welcome()
        planned(engine)
        engine.step(0, [0])

    code, errors = guest(script, """
for batch in run.batches(8, 4):
    run.step(0.5)
""")
    assert (code, errors) == (75, "troupe: the engine has closed the connection\n")


def test_an_engine_that_stops_within_a_frame_ends_the_guest():
    def script(engine):
        engine.welcome(silence_s=1)
        planned(engine)
        engine.connection.sendall(b"\x20\0\0")
        assert "did not go on" in engine.receive_json(frames.FAILED)["error"]
        assert engine.silent()

    code, errors = guest(script, "list(run.batches(8, 4))")
    assert code == 74 and errors.count("\n") == 1 and "3 of 8 bytes" in errors


def test_a_second_guest_in_a_program_is_refused():
    def script(engine):
        engine.welcome()
        assert engine.receive_json(frames.FAILED)["error"].startswith("RuntimeError: join() was called before")

    assert guest(script, "troupe.join(params=params)")[0] == 1


@pytest.mark.parametrize("frame", ["STEP", "OPTIMIZE", "EVALUATE", "WELCOME", "type 55", "long", "LAST twice"])
def test_a_frame_that_the_state_does_not_allow_ends_the_guest_with_one_line(frame):
    def script(engine):
        engine.welcome(role="evaluator" if frame in ("EVALUATE", "LAST twice") or frame == "STEP" else "worker")
        planned(engine)
        if frame == "STEP":
            engine.send_step(0, [0])
        elif frame == "OPTIMIZE":
            engine.send(frames.OPTIMIZE, bytes(16))
        elif frame == "EVALUATE":
            engine.send(frames.EVALUATE, bytes(4))
        elif frame == "WELCOME":
            engine.send(frames.WELCOME, b"{}")
        elif frame == "type 55":
            engine.send(55)
        elif frame == "long":
            engine.connection.sendall(b"\xff\xff\xff\xff\x66\0\0\0")
        else:
            engine.send(frames.LAST)
            engine.receive(frames.WAITS)
            engine.send(frames.LAST)
        assert engine.receive_json(frames.FAILED)["error"].startswith("the engine sent what is not the protocol: ")
        assert engine.silent()

    code, errors = guest(script, "list(run.batches(8, 4)); run.evaluate(lambda: {})")
    assert code == 74 and errors.count("\n") == 1 and errors.startswith("troupe: the engine sent what is not the protocol: ")
