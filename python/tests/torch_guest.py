"""Guests of torch for tests: a small model, and a training loop beside a scripted engine."""

import pytest

from fake_engine import FakeEngine

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402


def net():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))


def sgd(model, rate=0.5, **named):
    return torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=rate, **named)


def train(run, model, optimizer, samples=8, size=4, loss_of=None):
    x = torch.linspace(-1, 1, samples * 4).reshape(samples, 4)
    losses = []
    for batch in run.batches(samples, size):
        loss = (loss_of or (lambda x: model(x).square().mean()))(x[batch])
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())
        run.step(loss)
    return losses


def run_script(join, script, model, optimizer, loss_of=None, **named):
    with FakeEngine(script) as engine:
        run = join(engine, model, optimizer, **named)
        train(run, model, optimizer, loss_of=loss_of)
        run._link.close()
    return run
