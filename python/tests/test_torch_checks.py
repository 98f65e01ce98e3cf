"""Models that cannot join, and parameters that change afterwards."""

import pytest

from fake_engine import FakeEngine, planned

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from torch_guest import net, sgd  # noqa: E402


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
    frozen = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    frozen[0].weight = nn.Parameter(frozen[1].weight.data, requires_grad=False)
    with pytest.raises(ValueError, match="0.weight shares its memory with 1.weight"):
        join(None, frozen)
    viewed = nn.Linear(2, 2)
    viewed.register_buffer("view", viewed.weight.data.view(4))
    with pytest.raises(ValueError, match="view shares its memory with weight"):
        join(None, viewed)
    with pytest.raises(ValueError, match="no shape yet"):
        join(None, nn.LazyLinear(3))
    with pytest.raises(TypeError, match="complex64"):
        join(None, nn.ParameterList([nn.Parameter(torch.zeros(2, dtype=torch.complex64))]))
    with pytest.raises(TypeError, match="a torch.nn.Module, not list"):
        join(None, [1])
    with pytest.raises(TypeError, match="an optimizer with step"):
        join(None, nn.Linear(2, 2), 0.1)


def test_tensors_that_stay_where_they_are_may_share_memory(join):
    def script(engine):
        engine.welcome()
        planned(engine)
        engine.end()

    model = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2).double(), nn.Linear(2, 2)])
    for number in (0, 1):  # two that are frozen
        model[number].requires_grad_(False)
    model[1].weight.data = model[0].weight.data
    model[2].register_buffer("view", model[2].weight.data.view(4), persistent=False)  # of one that has a copy in the vector
    with FakeEngine(script) as engine:
        run = join(engine, model, sgd(model))
        assert list(run.batches(8, 4)) == []
        run._link.close()
    assert model[1].weight.data_ptr() == model[0].weight.data_ptr() and model[2].view.data_ptr() == model[2].weight.data_ptr()
