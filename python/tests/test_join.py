"""A guest of torch beside a scripted engine: what the engine sees of its steps, and what it does to the guest's model."""

import json
import struct

import numpy
import pytest

import troupe
from fake_engine import FakeEngine
from troupe import _frames as frames

torch = pytest.importorskip("torch")


def model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))


def join(monkeypatch, engine, *arguments, **named):
    monkeypatch.setenv("TROUPE_GUEST", engine.name)
    monkeypatch.setenv("TROUPE_TOKEN", "0" * 32)
    return troupe.join(*arguments, **named)


def end(engine, code=0):
    engine.send(frames.END, json.dumps({"code": code, "reason": "test"}).encode())


def test_a_joined_model_lives_in_the_vectors_of_the_run(monkeypatch):
    def script(engine):
        parameters, _, statistics = engine.welcome(gradients=False)
        assert [name for name, _ in engine.hello["tensors"]] == ["0.weight", "0.bias", "1.weight", "1.bias"]
        assert [name for name, _ in engine.hello["statistics"]] == ["1.running_mean", "1.running_var"]
        before = parameters.copy()
        assert json.loads(engine.receive(frames.PLAN)) == {"samples": 8, "batch": 4, "epochs": 1}
        lease, loss, count, seconds = engine.step(7, [5, 1, 2, 3])
        assert (lease, count) == (7, 4) and loss > 0 and seconds > 0
        assert (parameters == before).all()  # a strategy decides when the optimizer steps
        engine.send(frames.OPTIMIZE, struct.pack("<Qd", 1, 1.0))
        engine.receive(frames.STEPPED)
        assert (parameters != before).any()
        parameters[:] = 0  # an exchange
        end(engine)

    with FakeEngine(script) as engine:
        net = model()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        run = join(monkeypatch, engine, net, optimizer)
        assert (run.worker, run.workers) == (1, 2)
        x = torch.randn(8, 4)
        for batch in run.batches(8, size=4):
            assert batch.tolist() == [5, 1, 2, 3]
            loss = net(x[batch]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            run.step(loss)
    assert net[0].weight.abs().sum() == 0


def test_gradients_that_come_back_are_what_the_optimizer_steps_with(monkeypatch):
    def script(engine):
        parameters, gradients, _ = engine.welcome(gradients=True)
        engine.receive(frames.PLAN)
        engine.step(0, [0, 1])
        assert (gradients != 0).any()
        before = parameters.copy()
        gradients[:] = 1
        engine.send(frames.OPTIMIZE, struct.pack("<Qd", 1, 1.0))
        engine.receive(frames.STEPPED)
        numpy.testing.assert_allclose(before[:12] - parameters[:12], 0.5, rtol=1e-5)
        end(engine)

    with FakeEngine(script) as engine:
        net = model()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
        run = join(monkeypatch, engine, net, optimizer)
        x = torch.randn(2, 4)
        for batch in run.batches(2, size=2):
            loss = net(x[batch]).square().sum() + net[0].weight.sum()
            optimizer.zero_grad()
            loss.backward()
            run.step(loss)
