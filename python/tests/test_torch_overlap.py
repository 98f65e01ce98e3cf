"""Gradients that are reported while backward goes on."""

import struct

import numpy
import pytest

from fake_engine import FakeEngine, planned
from troupe import _frames as frames

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from torch_guest import net, run_script, sgd  # noqa: E402


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
