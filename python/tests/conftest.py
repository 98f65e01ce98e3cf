"""What the tests of the Python package share."""

import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import troupe  # noqa: E402


@pytest.fixture
def join(monkeypatch):
    """join(engine, …): troupe.join() of a guest that `engine` has started. Without an engine: alone."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.delenv("TROUPE_GUEST", raising=False)

    def joined(engine, *arguments, **named):
        monkeypatch.setattr(troupe, "_joined", False)  # each call is another program's
        if engine is not None:
            monkeypatch.setenv("TROUPE_GUEST", engine.name)
            monkeypatch.setenv("TROUPE_TOKEN", "0" * 32)
        return troupe.join(*arguments, **named)

    yield joined
