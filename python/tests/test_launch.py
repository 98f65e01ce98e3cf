"""Guests of the real engine: `troupe launch` of the program in TROUPE. Skipped where that has no such command."""

import json
import os
import pathlib
import subprocess
import sys

import numpy
import pytest

import troupe
from troupe import _safetensors as safetensors

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
LINEAR = """
import sys
import numpy
import troupe
random = numpy.random.default_rng(1)
x = random.standard_normal((64, 3)).astype(numpy.float32)
y = (x @ numpy.float32([[1], [-2], [0.5]]) + 0.25).astype(numpy.float32)
params = {"w": numpy.zeros((3, 1), numpy.float32), "b": numpy.zeros(1, numpy.float32)}

def gradients_of(batch):
    error = x[batch] @ params["w"] + params["b"] - y[batch]
    return (error ** 2).mean(), {"w": 2 * x[batch].T @ error / len(batch), "b": 2 * error.mean(0)}

def sgd(params, gradients, factor):
    for name in params:
        params[name] -= 0.1 * factor * gradients[name]
"""
JOINED = LINEAR + """
run = troupe.join(params=params, step=sgd)
with open(f"{sys.argv[1]}/{run.role}-{run.worker}", "w") as log:
    for batch in run.batches(64, 4, epochs=3):
        print(*batch, file=log, flush=True)
        run.step(*gradients_of(batch))
run.evaluate(lambda: {"loss": gradients_of(numpy.arange(64))[0]})
"""


@pytest.fixture(scope="module")
def program():
    program = os.environ.get("TROUPE", "")
    if not program or subprocess.run([program, "launch", "--help"], capture_output=True).returncode != 0:
        pytest.skip("TROUPE names no program with the command launch")
    return program


def launch(program, folder, strategy, script, *arguments, workers=2, settings=()):
    """The run's summary."""
    (folder / "guest.py").write_text(script)
    done = subprocess.run([program, "launch", "--workers", str(workers), "--strategy", strategy, "--json", "--quiet", "--set", f"run.dir={folder}/runs",
                           *(word for setting in settings for word in ("--set", setting)), "--",
                           sys.executable, "-B", str(folder / "guest.py"), *map(str, arguments)],
                          capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def batches(folder, worker):
    return [list(map(int, line.split())) for line in (folder / f"worker-{worker}").read_text().splitlines()]


def test_two_workers_of_bsp_are_one_with_twice_the_batch(program, tmp_path):
    summary = launch(program, tmp_path, "bsp", JOINED, tmp_path)
    first, second = batches(tmp_path, 0), batches(tmp_path, 1)
    assert len(first) == len(second) == 3 * 64 // 8 and summary["samples"] == 3 * 64
    alone = {}
    exec(LINEAR, alone)
    for batch in (a + b for a, b in zip(first, second)):
        loss, gradients = alone["gradients_of"](batch)
        alone["sgd"](alone["params"], gradients, 1)
    trained = {name: numpy.zeros_like(value) for name, value in alone["params"].items()}
    troupe.load(trained, summary["run"])
    for name, value in trained.items():
        numpy.testing.assert_allclose(value, alone["params"][name], rtol=1e-5)
    assert summary["test"]["loss"] == pytest.approx(alone["gradients_of"](list(range(64)))[0], rel=1e-4)


@pytest.mark.parametrize("strategy", ["bsp", "easgd", "gossip"])
def test_each_sample_comes_once_in_an_epoch(program, tmp_path, strategy):
    launch(program, tmp_path, strategy, JOINED, tmp_path)
    seen = sorted(sum(batches(tmp_path, 0) + batches(tmp_path, 1), []))
    assert seen == sorted(3 * list(range(64)))


MODULE = """
import sys
import torch
import troupe
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).to(getattr(torch, sys.argv[1]))
model[0].bias.requires_grad_(False)
optimizer = torch.optim.Adam([value for value in model.parameters() if value.requires_grad], lr=0.01)
x = torch.randn(256, 8)
y = x.sum(1, keepdim=True)

def loss_of(batch):
    return (model(x[batch].to(model[0].weight.dtype)).float() - y[batch]).square().mean()

run = troupe.join(model, optimizer, overlap=sys.argv[2] == "overlap")
for batch in run.batches(256, 16, epochs=4):
    optimizer.zero_grad()
    loss = loss_of(batch)
    loss.backward()
    run.step(loss)
run.evaluate(lambda: {"loss": loss_of(slice(None))})
"""


@pytest.mark.parametrize("strategy, dtype", [("bsp", "float32"), ("bsp", "bfloat16"), ("easgd", "float64"), ("diloco", "bfloat16")])
def test_modules_of_all_types_learn(program, tmp_path, strategy, dtype):
    pytest.importorskip("torch")
    summary = launch(program, tmp_path, strategy, MODULE, dtype, "no")
    assert summary["test"]["loss"] < 4  # 8 at the beginning: the variance of a sum of 8
    if (strategy, dtype) == ("bsp", "float32"):
        assert launch(program, tmp_path, strategy, MODULE, dtype, "overlap")["center_hash"] == summary["center_hash"]


def resumed(program, run, epochs):
    done = subprocess.run([program, "launch", "--resume", run, "--json", "--quiet", "--epochs", str(epochs)],
                          capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def replays(program, run):
    done = subprocess.run([program, "replay", run], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1"})
    return done.returncode == 0 and "verified from beginning to end" in done.stdout


MOMENTUM = LINEAR + """
class Momentum:
    state = {}
    def __call__(self, params, gradients, factor):
        for name in params:
            self.state[name] = 0.9 * self.state.get(name, 0) + gradients[name]
            params[name] -= 0.02 * factor * self.state[name]

run = troupe.join(params=params, step=Momentum())
for batch in run.batches(64, 4, epochs=2):
    run.step(*gradients_of(batch))
run.evaluate(lambda: {"loss": gradients_of(numpy.arange(64))[0]})
"""
ADAMW = """
import torch
import troupe
torch.manual_seed(0)
kind = torch.float32
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.25), torch.nn.Tanh(), torch.nn.Linear(16, 1)).to(kind)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
x = torch.randn(256, 8).to(kind)
y = x.sum(1, keepdim=True)
run = troupe.join(model, optimizer)
torch.manual_seed(1 + run.worker)
for batch in run.batches(256, 16, epochs=2):
    optimizer.zero_grad()
    loss = (model(x[batch]) - y[batch]).square().mean()
    loss.backward()
    run.step(loss)
run.evaluate(lambda: {"loss": (model(x) - y).square().mean()})
"""
HALF = ADAMW.replace("float32", "bfloat16")


@pytest.mark.parametrize("script", [MOMENTUM, ADAMW, HALF], ids=["momentum", "adamw", "bfloat16"])
def test_a_resumed_run_reaches_the_bits_of_one_that_never_ended(program, tmp_path, script):
    """With momentum, or AdamW and dropout: also the random numbers go on. Parameters of 16 bits begin with the checkpoint's values."""
    if script is not MOMENTUM:
        pytest.importorskip("torch")
    whole = launch(program, tmp_path, "bsp", script, settings=["run.epochs=4"])["center_hash"]
    half = launch(program, tmp_path, "bsp", script)
    assert half["center_hash"] != whole
    assert resumed(program, half["run"], 4)["center_hash"] == whole
    assert replays(program, half["run"])


SPARSE = """
import torch
import troupe
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Embedding(50, 8, sparse=True), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
x = torch.randint(50, (64,))
run = troupe.join(model, optimizer)
for batch in run.batches(64, 8, epochs=1):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x[batch]), x[batch] % 2)
    loss.backward()
    run.step(loss)
"""


def test_the_state_of_a_sparse_embedding_is_saved_and_resumed(program, tmp_path):
    pytest.importorskip("torch")
    run = launch(program, tmp_path, "easgd", SPARSE)["run"]
    resumed(program, run, 3)
    assert replays(program, run)


ODD = """
import sys
import torch
import troupe
torch.manual_seed(2)


class Odd(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen = torch.nn.Linear(4, 4)
        self.frozen.requires_grad_(False)
        self.a = torch.nn.Linear(4, 4, bias=False)
        self.b = torch.nn.Linear(4, 4, bias=False)
        self.b.weight = self.a.weight
        self.scale = torch.nn.Parameter(torch.tensor(1.5))
        self.empty = torch.nn.Parameter(torch.empty(0, 3))
        self.turned = torch.nn.Parameter(torch.randn(4, 2).t().to(getattr(torch, dtype)))  # [2, 4], column-major
        self.unused = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("table", torch.arange(6.0).reshape(2, 3))
        self.register_buffer("decay", torch.tensor(0.5))

    def forward(self, x):
        return self.b(self.a(self.frozen(x))) * self.scale @ self.turned.t().float()


model = Odd()
optimizer = torch.optim.SGD([value for value in model.parameters() if value.requires_grad], lr=0.02, momentum=0.5)
x = torch.randn(64, 4)
y = x[:, :2] - x[:, 2:]

def loss_of(batch):
    return (model(x[batch]) - y[batch]).square().mean()

def step_on(batch):
    optimizer.zero_grad()
    loss = loss_of(batch)
    loss.backward()
    return loss
"""
ODD_JOINED = "dtype = __import__('sys').argv[2]" + ODD + """
assert not model.turned.is_contiguous()
frozen = model.frozen.weight.clone()
run = troupe.join(model, optimizer)
with open(f"{sys.argv[1]}/{run.role}-{run.worker}", "w") as log:
    for batch in run.batches(64, 4, epochs=3):
        print(*batch, file=log, flush=True)
        run.step(step_on(batch))
run.evaluate(lambda: {"loss": loss_of(slice(None))})
assert torch.equal(model.frozen.weight, frozen) and model.b.weight is model.a.weight and model.empty.shape == (0, 3)
"""


def trained_and_alone(program, folder, dtype, strategy, workers, settings):
    """The module of the run's checkpoint, and the program's names without a run."""
    torch = pytest.importorskip("torch")
    summary = launch(program, folder, strategy, ODD_JOINED, folder, dtype, workers=workers, settings=settings)
    alone = {"dtype": dtype}
    exec(ODD, alone)
    trained = alone["Odd"]()
    trained.frozen.load_state_dict(alone["model"].frozen.state_dict())
    loaded = troupe.load(trained, summary["run"])
    assert {"scale", "turned", "unused", "a.weight"} <= set(loaded.names) and not any("frozen" in name for name in loaded.names)
    with safetensors.File(loaded.path) as file:
        shapes = {name: file.header.entries[name][1] for name in loaded.names}
    assert shapes == {name: tuple(value.shape) for name, value in trained.state_dict().items() if name in shapes} and shapes["scale"] == ()
    assert shapes["table"] == (2, 3) and shapes["decay"] == ()
    with torch.no_grad():
        assert summary["test"]["loss"] == pytest.approx(float((trained(alone["x"]) - alone["y"]).square().mean()), rel=1e-5)
    return trained.state_dict(), alone


def expect_equal(state, expected):
    assert list(state) == list(expected)
    for name, value in state.items():
        numpy.testing.assert_allclose(value.numpy(), expected[name].detach().numpy(), rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_odd_parameters_of_two_workers_are_those_of_one_with_twice_the_batch(program, tmp_path, dtype):
    state, alone = trained_and_alone(program, tmp_path, dtype, "bsp", 2, ())
    first, second = batches(tmp_path, 0), batches(tmp_path, 1)
    assert len(first) == len(second) == 24
    for batch in (a + b for a, b in zip(first, second)):
        alone["step_on"](batch)
        alone["optimizer"].step()
    expect_equal(state, alone["model"].state_dict())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_centre_of_odd_parameters_is_easgds_formula(program, tmp_path, dtype):
    """Every 3 steps, with d = x - c of before: x -= 0.25 d, c += 0.25 d (Zhang et al. 2015)."""
    state, alone = trained_and_alone(program, tmp_path, dtype, "easgd", 1, ("strategy.tau=3", "strategy.alpha=0.25"))
    torch, model = alone["torch"], alone["model"]
    steps = batches(tmp_path, 0)
    assert len(steps) == 48
    centre = {name: value.clone() for name, value in model.state_dict().items()}
    for number, batch in enumerate(steps, 1):
        alone["step_on"](batch)
        alone["optimizer"].step()
        if number % 3 == 0:
            with torch.no_grad():
                for name, value in {name: value for name, value in model.named_parameters() if value.requires_grad}.items():
                    difference = value - centre[name]
                    value -= 0.25 * difference
                    centre[name] += 0.25 * difference
    centre["b.weight"] = centre["a.weight"]
    expect_equal(state, centre)
