"""What a worker's state has beside the optimizer: counts, and the values that the vectors of the run have rounded."""

import numpy
import pytest

from fake_engine import planned
from troupe import _frames as frames
from troupe import _state

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from test_launch import launch, program, resumed  # noqa: E402, F401
from torch_guest import run_script, sgd  # noqa: E402


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 2)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.register_buffer("seen", torch.zeros(3, dtype=torch.bool))
        self.register_buffer("table", torch.arange(4))
        self.register_buffer("own", torch.zeros(2, dtype=torch.int32), persistent=False)

    def forward(self, x):
        self.steps = self.steps + 1  # as batch normalisation of torch 1.13 counts
        self.seen[0] = True
        self.own += 1
        return self.inner(x)


def test_counts_that_the_program_has_changed_go_on(join):
    states = []

    def first(engine):
        engine.welcome()
        planned(engine)
        for n in range(3):
            engine.step(n, [0, 1], optimize=1.0)
        states.append(engine.save())
        engine.end()

    def second(engine):
        engine.welcome()
        planned(engine)
        engine.load(states[0])
        engine.end()

    for script in (first, second):
        model = Counting()
        run_script(join, script, model, sgd(model), loss_of=lambda x: model(x).square().mean())
    assert (model.steps, model.seen.tolist(), model.own.tolist()) == (3, [True, False, False], [0, 0])
    assert set(_state.decode(states[0])["buffers"]) == {"steps", "seen"}


def test_float64_goes_on_unrounded_where_nobody_has_changed_it(join):
    kept = {}

    def first(engine):
        parameters, _, _ = engine.welcome()
        planned(engine)
        engine.step(0, [0, 1], optimize=1.0)
        kept["state"] = engine.save()
        engine.sync()
        kept["rounded"] = parameters.copy()
        engine.end()

    def second(engine):
        parameters, _, _ = engine.welcome()
        planned(engine)
        parameters[:] = kept["rounded"]
        engine.part(parameters, "bias")[1] = 7  # another worker's
        engine.send(frames.CHANGED)
        engine.load(kept["state"])
        engine.end()

    models = []
    for script in (first, second):
        torch.manual_seed(5)
        models.append(nn.Linear(4, 2).double())
        run_script(join, script, models[-1], sgd(models[-1]), loss_of=lambda x: models[-1](x.double()).square().mean())
    one, other = models
    assert torch.equal(one.weight, other.weight) and (one.weight.float() != one.weight).any()
    assert one.bias[0] == other.bias[0] and other.bias[1] == 7


def test_a_state_of_before_without_either_is_taken(join):
    def script(engine):
        engine.welcome()
        planned(engine)
        engine.load(_state.encode({"worker": 0, "random": numpy.zeros(1)}))
        engine.end()

    model = Counting().double()
    run_script(join, script, model, sgd(model))
    assert model.steps == 0


KINDS = """
import torch
import troupe
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), MIDDLE, torch.nn.Linear(16, 1)).to(torch.KIND)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
x = torch.randn(256, 8).to(torch.KIND)
y = x.sum(1, keepdim=True)
run = troupe.join(model, optimizer)
for batch in run.batches(256, 16, epochs=2):
    optimizer.zero_grad()
    loss = (model(x[batch]) - y[batch]).square().mean()
    loss.backward()
    run.step(loss)
run.evaluate(lambda: {"loss": (model(x) - y).square().mean()})
"""


@pytest.mark.parametrize("kind, middle, workers", [("float32", "torch.nn.BatchNorm1d(16, momentum=None)", 1), ("float64", "torch.nn.Tanh()", 2)])
def test_a_resumed_run_reaches_the_bits_of_one_that_never_ended(program, tmp_path, kind, middle, workers):  # noqa: F811
    """Running statistics of several workers would go on from their mean."""
    script = KINDS.replace("KIND", kind).replace("MIDDLE", middle)
    whole = launch(program, tmp_path, "bsp", script, workers=workers, settings=["run.epochs=4"])
    half = launch(program, tmp_path, "bsp", script, workers=workers)
    again = resumed(program, half["run"], 4)
    assert (again["center_hash"], again["test"]["loss"]) == (whole["center_hash"], whole["test"]["loss"])
