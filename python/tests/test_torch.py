"""A guest of torch beside a scripted engine."""

import struct

import numpy
import pytest

from fake_engine import FakeEngine, planned
from troupe import _frames as frames

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


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_parameters_of_16_bits_have_a_master_of_float32(join, dtype):
    """1 − 2⁻¹² is none of bfloat16's numbers: only a master of float32 gets anywhere with steps of 2⁻¹² from 1."""
    dtype = getattr(torch, dtype)
    step = 2.0**-12

    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(4, dtype=dtype))

        def forward(self, x):
            return (self.w.float() * 1.0).sum() + 0 * x.sum()  # a gradient of 1

    def script(engine):
        parameters, gradients, _ = engine.welcome(gradients=True)
        assert engine.hello["mirrors"] and engine.hello["tensors"] == [["w", [4]]]
        w = engine.part(parameters, "w")
        planned(engine)
        for n in range(3):
            engine.step(n, [0], optimize=1.0)
        engine.sync()
        assert w.tolist() == [1 - 3 * step] * 4
        engine.step(3, [0])
        assert engine.part(gradients, "w").tolist() == [1] * 4
        gradients[:] = 2
        engine.optimize()
        engine.sync()
        assert w.tolist() == [1 - 5 * step] * 4
        state = engine.save()
        w[:] = 3 + step
        engine.send(frames.CHANGED)
        engine.load(state)
        engine.step(4, [0], optimize=0.0)
        engine.sync()
        assert w.tolist() == [3 + step] * 4
        engine.end()

    model = Half()
    optimizer = sgd(model, rate=step, momentum=0.0)
    run_script(join, script, model, optimizer, loss_of=model)
    assert model.w.dtype == dtype and model.w.grad.dtype == dtype and model.w.tolist() == [3] * 4


def test_optimizer_state_of_16_bit_parameters_is_float32_after_a_load(join):
    def script(engine):
        engine.welcome()
        planned(engine)
        engine.step(0, [0, 1], optimize=1.0)
        engine.load(engine.save())
        engine.step(1, [0, 1], optimize=1.0)
        engine.end()

    model = nn.Linear(4, 2).bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    run_script(join, script, model, optimizer, loss_of=lambda x: model(x.bfloat16()).float().square().mean())
    kinds = {value.dtype for state in optimizer.state.values() for name, value in state.items() if name != "step"}
    assert kinds == {torch.float32} and model.weight.dtype == torch.bfloat16
    assert {float(state["step"]) for state in optimizer.state.values()} == {2}


def test_what_a_program_writes_into_a_16_bit_parameter_goes_into_its_master(join):
    def script(engine):
        parameters, _, _ = engine.welcome()
        planned(engine)
        engine.step(0, [0], optimize=0.0)
        engine.sync()
        assert engine.part(parameters, "weight").tolist() == [[0.5, 0.5, 0.5, 0.5]]
        engine.end()

    model = nn.Linear(4, 1).bfloat16()

    def loss_of(x):
        with torch.no_grad():
            model.weight.fill_(0.5)
        return model(x.bfloat16()).float().square().mean()

    run_script(join, script, model, sgd(model), loss_of=loss_of)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("exchange", [False, True])
def test_parameters_elsewhere_train_as_on_the_host(join, monkeypatch, dtype, exchange):
    """As on a GPU: float32 parameters are mirrored, and masters are not in the vector. The numbers are those of the host."""
    from troupe import _placement
    dtype = getattr(torch, dtype)
    seen = []

    def script(engine):
        parameters, gradients, statistics = engine.welcome(gradients=exchange)
        mirrors = engine.hello["mirrors"]
        planned(engine)
        for n in range(3):
            engine.step(n, [n, n + 1], optimize=None if exchange else 1.0)
            if exchange:
                gradients *= 0.5
                engine.optimize()
            if mirrors:
                engine.sync()
            seen.append((parameters.copy(), statistics.copy()))
            parameters += 0.25
            if mirrors:
                engine.send(frames.CHANGED)
        engine.end()

    for elsewhere in (False, True):
        if elsewhere:
            monkeypatch.setattr(_placement, "on_host", lambda value: False)
        model = net().to(dtype)
        run_script(join, script, model, sgd(model, momentum=0.9), loss_of=lambda x: model(x.to(dtype)).float().square().mean())
    for host, other in zip(seen[:3], seen[3:]):
        numpy.testing.assert_array_equal(host[0], other[0])
        numpy.testing.assert_array_equal(host[1], other[1])


def test_parameters_of_float64_are_mirrored(join):
    def script(engine):
        parameters, gradients, _ = engine.welcome(gradients=True)
        planned(engine)
        engine.step(0, [0, 1])
        gradients[:] = 1
        before = engine.part(parameters, "weight").copy()
        engine.optimize()
        assert (engine.part(parameters, "weight") == before).all()
        engine.sync()
        numpy.testing.assert_allclose(before - engine.part(parameters, "weight"), 0.5, rtol=1e-5)
        parameters[:] = 7
        engine.send(frames.CHANGED)
        engine.end()

    model = nn.Linear(4, 2).double()
    run_script(join, script, model, sgd(model), loss_of=lambda x: model(x.double()).square().mean())
    assert model.weight.dtype == torch.float64 and (model.weight == 7).all()


def test_a_sparse_gradient_is_exchanged_as_a_dense_one(join):
    def script(engine):
        _, gradients, _ = engine.welcome(gradients=True)
        planned(engine)
        engine.step(0, [0, 1])
        assert engine.part(gradients, "weight").tolist() == [[1, 1]] + [[0, 0]] * 4
        gradients[:] = 1
        engine.optimize()
        engine.end()

    model = nn.Embedding(5, 2, sparse=True)
    run_script(join, script, model, sgd(model), loss_of=lambda x: model(torch.zeros(1, dtype=torch.long)).sum())


@pytest.mark.parametrize("passes", [1, 3])
def test_a_bucket_is_reported_when_backward_has_finished_it(join, passes):
    """The engine sees the last layer's bucket before the first layer's gradients exist."""
    reached, went_on = [], []

    def script(engine):
        _, gradients, _ = engine.welcome(gradients=True, buckets=[["2.weight", "2.bias"], ["0.weight", "0.bias"]])
        planned(engine)
        for n in range(2):
            engine.send_step(n, [0, 1])
            assert engine.receive(frames.BUCKET) == struct.pack("<I", 0)
            assert engine.part(gradients, "2.weight").any()
            reached.append(len(went_on))
            event.set()
            assert engine.receive(frames.BUCKET) == struct.pack("<I", 1)
            engine.receive(frames.DONE)
            gradients[:] = 1
            engine.optimize()
        engine.end()

    import threading
    event = threading.Event()

    class Wait(torch.autograd.Function):
        """Its backward waits until the engine has seen bucket 0."""

        @staticmethod
        def forward(_, x):
            return x.clone()

        @staticmethod
        def backward(_, gradient):
            if holds[0]:
                assert event.wait(20)
                event.clear()
                went_on.append(1)
            return gradient

    holds = [False]
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    optimizer = sgd(model)
    with FakeEngine(script) as engine:
        run = join(engine, model, optimizer, overlap=True, accumulate=passes)
        x = torch.ones(2, 4)
        for batch in run.batches(8, 4):
            optimizer.zero_grad()
            for n in range(passes):
                holds[0] = n == passes - 1
                loss = model[2](Wait.apply(model[1](model[0](x[batch])))).square().mean() / passes
                loss.backward()
            run.step(loss)
    assert reached == [0, 1] and len(went_on) == 2


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_overlapped_gradients_are_the_same_numbers(join, dtype):
    sums = []
    dtype = getattr(torch, dtype)

    def script(engine):
        _, gradients, _ = engine.welcome(gradients=True, buckets=[["1.bias", "1.weight"], ["0.weight", "0.bias"]])
        planned(engine)
        for n in range(2):
            engine.send_step(n, [n, n + 1])
            while engine.receive_any()[0] != frames.DONE:
                pass
            sums.append(gradients.copy())
            engine.optimize()
        engine.end()

    for overlap in (False, True):
        model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)).to(dtype)
        for n, value in enumerate(model.parameters()):
            nn.init.constant_(value, n + 0.5)
        run_script(join, script, model, sgd(model), loss_of=lambda x: model(x.to(dtype)).float().square().mean(), overlap=overlap)
    assert sums[0].any() and not (sums[0] == sums[1]).all()
    numpy.testing.assert_array_equal(sums[0], sums[2])
    numpy.testing.assert_array_equal(sums[1], sums[3])


def test_more_backward_passes_than_announced_are_an_error(join):
    def script(engine):
        engine.welcome(gradients=True, buckets=[["0.weight", "0.bias", "1.weight", "1.bias"]])
        planned(engine)
        engine.send_step(0, [0, 1])
        engine.receive(frames.BUCKET)
        engine.silent()

    model = net()
    with FakeEngine(script) as engine:
        run = join(engine, model, sgd(model), overlap=True)
        for _ in run.batches(8, 4):
            model(torch.ones(2, 4)).sum().backward()
            with pytest.raises(RuntimeError, match=r"backward pass 2 of a step reached .*: join\(accumulate=…\) says 1"):
                model(torch.ones(2, 4)).sum().backward()
            break
        run._link.close()


@pytest.mark.parametrize("change, message", [
    (lambda m: setattr(m[0].weight, "data", m[0].weight.data.clone()), "0.weight does not lie in the run's memory"),
    (lambda m: m.double(), "0.weight does not lie in the run's memory"),
    (lambda m: setattr(m[0].weight, "data", torch.zeros(2, 2)), r"0.weight has shape \(2, 2\) now, and \(3, 4\)"),
    (lambda m: setattr(m[0].weight, "data", m[0].weight.data.view(4, 3)), r"0.weight has shape \(4, 3\) now, and \(3, 4\)"),
    (lambda m: m[0].bias.requires_grad_(False), "0.bias does not require gradients"),
    (lambda m: setattr(m[1], "running_mean", torch.zeros(5)), r"1.running_mean was \(3,\)"),
    (lambda m: m.__setitem__(0, nn.Linear(4, 3)), "0.weight is another tensor"),
    (lambda m: m.__delitem__(1), "1.weight is another tensor"),
    (lambda m: setattr(m[0], "bias", nn.Parameter(torch.zeros(3))), "0.bias is another tensor")])
def test_a_parameter_that_changes_is_named(join, change, message):
    def script(engine):
        engine.welcome()
        planned(engine)
        engine.send_step(0, [0, 1])
        assert engine.silent()

    model = net()
    with FakeEngine(script) as engine:
        run = join(engine, model, sgd(model))
        for _ in run.batches(8, 4):
            change(model)
            with pytest.raises(RuntimeError, match=message):
                run.step(0)
            break
        run._link.close()


def test_every_parameter_of_many_is_looked_at_in_turn(join):
    """The change comes after the first step, which looks at all."""
    count = 40

    def script(engine):
        engine.welcome()
        planned(engine)
        with pytest.raises(AssertionError, match="the guest left"):
            for n in range(count):
                engine.step(n, [0])

    model = nn.Sequential(*[nn.Linear(2, 2) for _ in range(count)])
    steps = 0
    with FakeEngine(script) as engine:
        run = join(engine, model, sgd(model))
        with pytest.raises(RuntimeError, match="25.bias does not lie in the run's memory"):
            for _ in run.batches(8, 4):
                steps += 1
                if steps == 2:
                    model[25].bias.data = torch.zeros(2)
                run.step(0)
        run._link.close()
    assert steps <= 2 + 2 * count // 32 + 1


def test_models_that_cannot_join_are_refused(join, monkeypatch):
    monkeypatch.setenv("TROUPE_GUEST", "never-reached")
    shares = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    shares[1].weight.data = shares[0].weight.data
    with pytest.raises(ValueError, match="1.weight shares its memory with 0.weight"):
        join(None, shares)
    with pytest.raises(ValueError, match="no shape yet"):
        join(None, nn.LazyLinear(3))
    with pytest.raises(TypeError, match="complex64"):
        join(None, nn.ParameterList([nn.Parameter(torch.zeros(2, dtype=torch.complex64))]))
    with pytest.raises(TypeError, match="a torch.nn.Module, not list"):
        join(None, [1])
    with pytest.raises(TypeError, match="an optimizer with step"):
        join(None, nn.Linear(2, 2), 0.1)


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


def test_a_vector_may_have_more_than_2_gib(join):
    count = (1 << 29) + 1000  # floats: 2 GiB and 4,000 bytes
    with open("/proc/meminfo") as file:
        available = dict(line.split(":") for line in file)["MemAvailable"]
    if int(available.split()[0]) < 5 << 20:  # KiB
        pytest.skip("less than 5 GiB of memory are free")

    class Large(nn.Module):
        def __init__(self):
            super().__init__()
            self.large = nn.Parameter(torch.zeros(1).expand(count))
            self.last = nn.Parameter(torch.tensor([3.0]))

        def forward(self, x):
            return self.last * x.sum() + self.large[-1].detach()

    def script(engine):
        parameters, _, _ = engine.welcome()
        assert engine.part(parameters, "last") == 3
        engine.part(parameters, "large")[-1] = 5
        engine.part(parameters, "last")[:] = 7
        planned(engine)
        engine.step(0, [0])
        engine.end()

    model = Large()
    optimizer = torch.optim.SGD([model.last], lr=1.0)
    with FakeEngine(script) as engine:
        run = join(engine, model, optimizer)
        for _ in run.batches(8, 4):
            assert model.large[-1] == 5 and model.last == 7 and model.large.shape == (count,)
            run.step(0)


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
