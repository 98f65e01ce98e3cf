"""Parameters without a gradient, under strategies that exchange gradients: the optimizer must leave them alone, as it does alone."""

import json

import numpy
import pytest

from fake_engine import planned

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from test_launch import launch, program  # noqa: E402, F401
from torch_guest import run_script  # noqa: E402


class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.used = nn.Linear(4, 2)
        self.unused = nn.Linear(4, 2)

    def forward(self, x):
        return self.used(x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("overlap", [False, True])
def test_only_what_a_worker_has_a_gradient_of_is_stepped(join, dtype, overlap):
    dtype = getattr(torch, dtype)
    model = Unused().to(dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.5)
    before = model.unused.weight.detach().clone()

    def script(engine):
        parameters, gradients, _ = engine.welcome(gradients=True, buckets=[["unused.bias", "unused.weight"], ["used.bias", "used.weight"]])
        planned(engine)

        def step(number):
            engine.send_step(number, [0, 1])
            for _ in range(2):
                engine.receive(2 + 3)  # BUCKET
            engine.receive(4)  # DONE

        step(0)
        missing = engine.part(gradients, "unused.weight")
        assert (missing == 0).all() and numpy.signbit(missing).all()
        assert not numpy.signbit(engine.part(gradients, "used.weight").ravel()[0]) or engine.part(gradients, "used.weight").ravel()[0] != 0
        gradients /= 2  # a mean
        engine.optimize()
        if engine.hello["mirrors"]:
            engine.sync()
        assert torch.equal(model.unused.weight, before) and model.unused.weight not in optimizer.state
        assert model.used.weight in optimizer.state
        step(1)
        engine.part(gradients, "unused.weight")[...] += numpy.float32([[0, 0, 0, 1]] * 2)  # another worker's
        engine.optimize()
        step(2)
        engine.end()

    run_script(join, script, model, optimizer, loss_of=lambda x: model(x.to(dtype)).float().square().mean(), overlap=overlap)
    assert (model.unused.weight != before).all() and model.unused.weight in optimizer.state and model.unused.bias not in optimizer.state


def test_a_gradient_of_negative_zeros_is_one(join):
    """Of a unit that is dead, say. Weight decay acts, as alone."""
    model = nn.Linear(4, 2, bias=False)
    before = model.weight.detach().clone()

    def script(engine):
        _, gradients, _ = engine.welcome(gradients=True)
        planned(engine)
        engine.step(0, [0, 1])
        assert not numpy.signbit(engine.part(gradients, "weight").ravel()[0])
        engine.optimize()
        engine.end()

    run_script(join, script, model, torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.5), loss_of=lambda x: (model.weight * -0.0).sum())
    numpy.testing.assert_allclose(model.weight.detach(), 0.95 * before, rtol=1e-6)


def test_older_recordings_have_zeros(join):
    model = Unused()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.5)
    before = model.unused.weight.detach().clone()

    def script(engine):
        _, gradients, _ = engine.welcome(gradients=True, missing_gradients="zeros")
        planned(engine)
        engine.step(0, [0, 1])
        assert not numpy.signbit(engine.part(gradients, "unused.weight")).any()
        engine.optimize()
        engine.end()

    run_script(join, script, model, optimizer, loss_of=lambda x: model(x).square().mean())
    numpy.testing.assert_allclose(model.unused.weight.detach(), 0.95 * before, rtol=1e-6)


ALONE = """
import json
import sys
import torch
import troupe
torch.manual_seed(0)
x = torch.randn(64, 4)
model = torch.nn.ModuleDict({"used": torch.nn.Linear(4, 2), "unused": torch.nn.Linear(4, 2)})
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.5)
before = model["unused"].weight.tolist()
run = troupe.join(model, optimizer)
for batch in run.batches(64, 8, 2):
    optimizer.zero_grad()
    loss = model["used"](x[batch]).square().mean()
    loss.backward()
    run.step(loss)
assert run.role == "evaluator" or len(optimizer.state) == 2
print(json.dumps([before, model["unused"].weight.tolist()]), file=open(f"{sys.argv[1]}/{run.role}-{run.worker}", "w"))
"""


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("settings", [(), ("exchange.wire=fp16",)])
def test_a_layer_that_nobody_uses_stays_as_it_is(program, tmp_path, workers, settings):  # noqa: F811
    launch(program, tmp_path, "bsp", ALONE, tmp_path, workers=workers, settings=settings)
    for worker in range(workers):
        before, after = json.loads((tmp_path / f"worker-{worker}").read_text())
        assert after == before
