"""What a guest asks of CUDA, where a stand-in answers: no GPU is needed."""

import contextlib

import pytest

torch = pytest.importorskip("torch")

from torch_guest import net, sgd  # noqa: E402
from troupe._placement import Copies  # noqa: E402
from troupe._torch import TorchModel  # noqa: E402


@pytest.fixture
def model(monkeypatch):
    """Of a worker whose model lies on GPUs 1 and 3, as the guest believes."""
    module = net()
    bound = TorchModel(module, sgd(module))
    monkeypatch.setattr(bound, "_gpus", lambda: [1, 3])
    return bound


@pytest.fixture
def generators(monkeypatch):
    """The states of the GPUs' random numbers; a question about another GPU fails."""
    states = {1: torch.tensor([11], dtype=torch.uint8), 3: torch.tensor([33], dtype=torch.uint8)}
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda gpu: states[gpu])

    def set_state(state, gpu):
        assert gpu in states
        states[gpu] = state

    monkeypatch.setattr(torch.cuda, "set_rng_state", set_state)
    return states


def test_the_random_numbers_of_the_models_gpus_go_on(model, generators):
    saved = model.save()
    generators.update({1: torch.tensor([0], dtype=torch.uint8), 3: torch.tensor([0], dtype=torch.uint8)})
    model.load(saved)
    assert {gpu: state.item() for gpu, state in generators.items()} == {1: 11, 3: 33}


def test_a_resumed_worker_may_have_other_gpus(model, generators, monkeypatch):
    saved = model.save()
    monkeypatch.setattr(model, "_gpus", lambda: [3])
    model.load(saved)
    assert generators[3].item() == 11


def test_the_state_of_one_gpu_that_version_0_1_saved_is_read(model, generators, monkeypatch):
    monkeypatch.setattr(model, "_gpus", lambda: [1])
    saved = {"worker": 0, "random": torch.get_rng_state(), "random_cuda": torch.tensor([7], dtype=torch.uint8)}
    monkeypatch.setattr("troupe._state.decode", lambda state, from_array: saved)
    model.load(b"")
    assert generators[1].item() == 7


def test_a_program_on_the_cpu_asks_no_gpu(monkeypatch):
    def refused(*_):
        raise AssertionError("a GPU was asked")

    module = net()
    bound = TorchModel(module, sgd(module))
    for question in ("is_available", "get_rng_state", "set_rng_state", "current_device"):
        monkeypatch.setattr(torch.cuda, question, refused)
    bound.load(bound.save())


@pytest.mark.parametrize("refused", [0, 712])
def test_a_vector_is_pinned_on_the_models_gpu_and_a_refusal_is_taken_away(monkeypatch, refused):
    calls = []

    class Runtime:
        @staticmethod
        def cudaHostRegister(address, size, flags):
            calls.append((address, size, flags))
            return refused

    @contextlib.contextmanager
    def on(device):
        calls.append(f"on {device}")
        yield
        calls.append("back")

    def zeros(*_, device):
        calls.append(f"launch on {device}")
        raise RuntimeError("CUDA error: part or all of the requested memory range is already mapped")

    monkeypatch.setattr(torch.cuda, "cudart", Runtime)
    monkeypatch.setattr(torch.cuda, "device", on)
    copies = Copies([])
    copies._streams = {torch.device("cuda", 3): None}
    floats = torch.ones(5)
    monkeypatch.setattr(torch, "zeros", zeros)
    copies.pin(floats)
    assert calls == ["on cuda:3", (floats.data_ptr(), 20, 1), *(["launch on cuda:3"] if refused else []), "back"]
