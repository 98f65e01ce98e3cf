"""Parameters of other types and places than float32 in the host's memory, and large ones."""

import numpy
import pytest

from fake_engine import FakeEngine, planned
from troupe import _frames as frames

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from torch_guest import net, run_script, sgd  # noqa: E402


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


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_load_leaves_the_values_as_they_are(join, monkeypatch, elsewhere):
    """Also those that the guest has not been told of yet: on the host they are in the masters already."""
    from troupe import _placement
    if elsewhere:
        monkeypatch.setattr(_placement, "on_host", lambda value: False)

    def script(engine):
        parameters, _, _ = engine.welcome()
        planned(engine)
        engine.step(0, [0, 1], optimize=1.0)
        state = engine.save()
        written = numpy.linspace(-1, 1, parameters.size, dtype=numpy.float32)
        parameters[:] = written
        engine.load(state)
        engine.send(frames.CHANGED)
        engine.step(1, [0, 1], optimize=0.0)
        engine.sync()
        numpy.testing.assert_array_equal(engine.part(parameters, "weight").ravel(), written[:8])
        engine.end()

    model = nn.Linear(4, 2).bfloat16()
    run_script(join, script, model, sgd(model, momentum=0.9), loss_of=lambda x: model(x.bfloat16()).float().square().mean())


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


def test_a_sparse_state_of_an_optimizer_goes_on_bit_for_bit(join):
    """Momentum over sparse gradients: each row has several parts, and their order is part of the sum."""
    def script(engine):
        parameters, _, _ = engine.welcome()
        planned(engine)
        for n in range(3):
            engine.step(n, [n, n + 1], optimize=1.0)
        state, before = engine.save(), parameters.copy()
        for n in range(3, 6):
            engine.step(n, [n, n + 1], optimize=1.0)
        after = parameters.copy()
        parameters[:] = before
        engine.load(state)
        for n in range(3, 6):
            engine.step(n, [n, n + 1], optimize=1.0)
        numpy.testing.assert_array_equal(parameters, after)
        assert (after != before).any()
        engine.end()

    model = nn.Embedding(5, 2, sparse=True)
    optimizer = sgd(model, rate=0.3, momentum=0.9)
    run_script(join, script, model, optimizer, loss_of=lambda x: (model((x[:, 0].abs() * 5).long() % 5).sum() * x.sum() / 3))
    assert optimizer.state[model.weight]["momentum_buffer"].is_sparse


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
