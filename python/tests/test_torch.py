"""A guest of torch beside a scripted engine."""

import numpy
import pytest

from fake_engine import FakeEngine, planned
from troupe import _frames as frames

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from torch_guest import net, run_script, sgd, train  # noqa: E402


def test_a_module_lives_in_the_vectors_of_the_run(join):
    def script(engine):
        parameters, _, statistics = engine.welcome()
        assert [name for name, _ in engine.hello["tensors"]] == ["0.weight", "0.bias", "1.weight", "1.bias"]
        assert [name for name, _ in engine.hello["statistics"]] == ["1.running_mean", "1.running_var"]
        assert (engine.hello["optimizer"], engine.hello["mirrors"]) == ("SGD", False)
        before = parameters.copy()
        planned(engine)
        lease, loss, count, seconds = engine.step(7, [5, 1, 2, 3])
        assert (lease, count) == (7, 4) and loss > 0 and seconds > 0
        assert (parameters == before).all()  # the strategy decides when the optimizer steps
        assert (engine.part(statistics, "1.running_mean") != 0).any()
        engine.optimize()
        assert (parameters != before).any()
        parameters[:] = 0  # an exchange
        engine.step(8, [0, 1])
        engine.send(frames.LAST)
        engine.silent()

    model = net()
    run_script(join, script, model, sgd(model))
    assert model[0].weight.abs().sum() == 0 and model[1].num_batches_tracked == 2


def test_a_step_is_the_same_as_alone(join):
    """Momentum, weight decay and parameter groups with their own rates: after three steps the same bits."""
    def groups(model):
        return torch.optim.SGD([{"params": model[0].parameters()}, {"params": model[1].parameters(), "lr": 0.01}], lr=0.1, momentum=0.9, weight_decay=0.1)

    alone = net()
    optimizer = groups(alone)
    x = torch.linspace(-1, 1, 32).reshape(8, 4)
    for _ in range(3):
        optimizer.zero_grad()
        alone(x[:4]).square().mean().backward()
        optimizer.step()

    def script(engine):
        parameters, gradients, _ = engine.welcome(gradients=True)
        planned(engine)
        for n in range(3):
            engine.step(n, [0, 1, 2, 3], optimize=1.0 if n == 1 else None)
            if n != 1:
                assert (gradients != 0).any()
                engine.optimize()
        engine.end()

    joined = net()
    run_script(join, script, joined, groups(joined))
    for (name, a), b in zip(alone.state_dict().items(), joined.state_dict().values()):
        assert torch.equal(a, b), name


def test_gradients_that_come_back_are_what_the_optimizer_steps_with(join):
    def script(engine):
        parameters, gradients, _ = engine.welcome(gradients=True)
        planned(engine)
        for factor in (1.0, 0.5):
            engine.step(0, [0, 1])
            before = parameters.copy()
            gradients[:] = 1
            engine.optimize(factor)
            numpy.testing.assert_allclose((before - parameters)[:12], 0.5 * factor, rtol=1e-4)
        engine.end()

    model = net()
    optimizer = sgd(model)
    run_script(join, script, model, optimizer)
    assert optimizer.param_groups[0]["lr"] == 0.5


class Odd(nn.Module):
    """Frozen, tied, scalar, empty, non-contiguous and unused parameters; buffers of all kinds."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.frozen = nn.Linear(4, 4)
        self.frozen.requires_grad_(False)
        self.a = nn.Linear(4, 4, bias=False)
        self.b = nn.Linear(4, 4, bias=False)
        self.b.weight = self.a.weight
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.empty = nn.Parameter(torch.empty(0, 3))
        self.turned = nn.Parameter(torch.arange(8.0).reshape(4, 2).t())  # [2, 4], column-major
        self.unused = nn.Parameter(torch.ones(3))
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("wide", torch.zeros(2, dtype=torch.float64))
        self.register_buffer("count", torch.tensor(0))
        self.register_buffer("mask", torch.ones(2), persistent=False)

    def forward(self, x):
        self.count += 1
        self.mean = 0.5 * self.mean + 0.5 * x.detach().mean(0)  # another tensor each time
        return self.b(self.a(self.frozen(x))) * self.scale @ self.turned.t()


def test_odd_parameters_and_buffers(join):
    def script(engine):
        parameters, gradients, statistics = engine.welcome(gradients=True)
        assert engine.hello["tensors"] == [["scale", []], ["empty", [0, 3]], ["turned", [2, 4]], ["unused", [3]], ["a.weight", [4, 4]]]
        assert engine.hello["statistics"] == [["mean", [4]], ["wide", [2]]] and engine.hello["mirrors"]  # for float64
        assert engine.part(parameters, "turned").tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]] and engine.part(parameters, "scale") == 2
        planned(engine)
        engine.step(0, [0, 1, 2, 3])
        assert (engine.part(gradients, "unused") == 0).all() and engine.part(gradients, "scale") != 0
        mean = engine.part(statistics, "mean").copy()
        assert (mean != 0).any()
        gradients[:] = 2
        engine.optimize()
        assert engine.part(parameters, "unused").tolist() == [0, 0, 0]  # 1 - 0.5 · 2
        engine.part(statistics, "wide")[:] = 5
        engine.send(frames.CHANGED)
        engine.step(1, [0, 1, 2, 3])
        numpy.testing.assert_allclose(engine.part(statistics, "mean"), 1.5 * mean)
        engine.end()

    model = Odd()
    assert not model.turned.is_contiguous()
    frozen = model.frozen.weight.clone()
    run_script(join, script, model, sgd(model))
    assert torch.equal(model.frozen.weight, frozen) and model.b.weight is model.a.weight
    assert model.count == 2 and model.wide.tolist() == [5, 5] and model.turned.data_ptr() != 0


def test_the_fingerprint_is_of_names_and_shapes(join):
    seen = []

    def script(engine):
        seen.append(engine.receive_json(frames.HELLO)["program"])
        engine.end()

    def other():
        model = Odd()
        model.frozen = nn.Linear(4, 4, bias=False).requires_grad_(False)
        return model

    for model in (Odd(), Odd(), other()):
        with FakeEngine(script) as engine, pytest.raises(SystemExit):
            join(engine, model, sgd(model))
    assert seen[0] == seen[1] != seen[2]


def test_a_compiled_module_has_its_own_names(join):
    class Compiled(nn.Module):
        """As torch.compile() wraps a module."""

        def __init__(self, inner):
            super().__init__()
            self._orig_mod = inner

        def forward(self, x):
            return self._orig_mod(x)

    def script(engine):
        engine.welcome()
        assert [name for name, _ in engine.hello["tensors"]] == ["0.weight", "0.bias", "1.weight", "1.bias"]
        planned(engine)
        engine.step(0, [0, 1], optimize=1.0)
        engine.end()

    compiled = Compiled(net())
    run_script(join, script, compiled, sgd(compiled))
    if hasattr(torch, "compile"):
        model = torch.compile(net(), backend="eager")
        run_script(join, script, model, sgd(model))


def test_the_optimizers_state_is_saved_and_loaded(join):
    seen = {}

    def script(engine):
        parameters, _, _ = engine.welcome()
        planned(engine)
        engine.step(0, [0, 1, 2, 3], optimize=1.0)
        state, before = engine.save(), parameters.copy()
        engine.step(1, [0, 1, 2, 3], optimize=1.0)
        seen["once"] = parameters.copy()
        parameters[:] = before
        engine.load(state, piece=300)
        engine.step(2, [0, 1, 2, 3], optimize=1.0)
        seen["again"] = parameters.copy()
        engine.end()

    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    run_script(join, script, model, torch.optim.AdamW(model.parameters(), lr=0.1, betas=(0.8, 0.9)))
    assert (seen["once"] == seen["again"]).all()  # the same dropout, too


def test_a_state_that_does_not_fit_is_an_error(join):
    from troupe import _state

    def script(engine):
        engine.welcome()
        planned(engine)
        with pytest.raises(AssertionError, match="the guest left"):
            engine.load(_state.encode({"worker": 1, "random": None, "optimizer": {"state": {}, "param_groups": []}}))
        engine.silent()

    model = net()
    with FakeEngine(script) as engine:
        run = join(engine, model, sgd(model))
        with pytest.raises(ValueError, match="different number of parameter groups"):
            next(run.batches(8, 4))
        run._link.close()


def test_evaluation_is_in_evaluation_mode_and_leaves_the_modes(join):
    def script(engine):
        parameters, _, _ = engine.welcome(role="evaluator")
        planned(engine)
        engine.send(frames.LAST)
        engine.receive(frames.WAITS)
        parameters[:] = 0
        engine.send(frames.EVALUATE, b"\1\0\0\0")
        assert engine.receive_json(frames.EVALUATED) == {"metrics": {"sum": 0}}
        engine.end()

    def evaluation():
        assert not model.training and not model[1].training and not torch.is_grad_enabled()
        return {"sum": model[0](torch.ones(1, 4).double()).abs().sum()}

    model = net().double()  # mirrored: EVALUATE copies
    model[1].eval()
    with FakeEngine(script) as engine:
        run = join(engine, model, sgd(model))
        for _ in run.batches(8, 4):
            pytest.fail("an evaluator has no batches")
        assert run.evaluate(evaluation) == {"sum": 0}
    assert model.training and model[0].training and not model[1].training


def test_alone_the_script_trains_as_it_did(join):
    model, same = net(), net()
    optimizer = sgd(model)
    run = join(None, model, optimizer, seed=5)
    losses = train(run, model, optimizer)
    x = torch.linspace(-1, 1, 32).reshape(8, 4)
    other = sgd(same)
    for batch in numpy.random.default_rng([5, 0]).permutation(8).reshape(2, 4):
        loss = same(x[batch]).square().mean()
        assert loss.item() == losses.pop(0)
        other.zero_grad()
        loss.backward()
        other.step()
    assert torch.equal(model[0].weight, same[0].weight)
    assert run.evaluate(lambda: {"training": model.training}) == {"training": False} and model.training


def test_a_data_loader_takes_the_loop_as_its_batch_sampler(join):
    def script(engine):
        engine.welcome()
        planned(engine)
        engine.step(0, [3, 1], optimize=1.0)
        engine.step(1, [2], optimize=1.0)
        engine.end()

    model = net()
    seen = []
    with FakeEngine(script) as engine:
        run = join(engine, model, sgd(model))
        data = torch.utils.data.TensorDataset(torch.arange(8))
        for numbers, in torch.utils.data.DataLoader(data, batch_sampler=run.batches(8, 4)):
            seen.append(numbers.tolist())
            run.step(0.5)
    assert seen == [[3, 1], [2]]
