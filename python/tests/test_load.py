"""troupe.load(): models out of a run's checkpoints."""

import json
import struct

import numpy
import pytest

import troupe
from troupe import _safetensors as safetensors
from troupe import _state


def write(path, tensors, step=0, **metadata):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(safetensors.to_bytes(tensors, {"format": "troupe-checkpoint-1", "step": str(step), **metadata}))


def floats(*shape, first=0.0):
    return (first + numpy.arange(numpy.prod(shape), dtype=numpy.float32)).reshape(shape)


@pytest.fixture
def run(tmp_path):
    """A run's directory with two generations of a model with `w` [2, 3] and `b` [2]."""
    for step in (3, 20):
        write(tmp_path / "checkpoints" / f"step-{step:012}.safetensors",
              {"w": floats(2, 3, first=step), "b": floats(2), "optimizer.velocity.w": floats(2, 3), "worker.1.optimizer.velocity.w": floats(2, 3),
               "server.state.0.w": floats(2, 3), "center.w": floats(2, 3)}, step)
    (tmp_path / "checkpoints" / "manifest.json").write_text("{}")
    return tmp_path


def model():
    return {"w": numpy.zeros((2, 3), numpy.float32), "b": numpy.zeros(2, numpy.float32)}


def test_the_newest_checkpoint_is_loaded(run):
    params = model()
    w = params["w"]
    loaded = troupe.load(params, run)
    assert (loaded.step, loaded.names, loaded.refused) == (20, ("w", "b"), ())
    assert loaded.path.endswith("step-000000000020.safetensors")
    assert w is params["w"] and (w == floats(2, 3, first=20)).all() and params["b"].tolist() == [0, 1]


def test_a_file_can_be_named(run):
    params = model()
    assert troupe.load(params, str(run / "checkpoints" / "step-000000000003.safetensors")).step == 3
    assert params["w"][0, 0] == 3


@pytest.mark.parametrize("damage", ["cut", "empty", "garbage"])
def test_a_damaged_generation_is_refused_for_an_older_one(run, damage):
    newest = run / "checkpoints" / "step-000000000020.safetensors"
    data = newest.read_bytes()
    newest.write_bytes({"cut": data[:-1], "empty": b"", "garbage": b"\xff" * 100}[damage])
    params = model()
    loaded = troupe.load(params, run)
    assert loaded.step == 3 and params["w"][0, 0] == 3
    assert len(loaded.refused) == 1 and "step-000000000020" in loaded.refused[0]


def test_what_does_not_fit_is_named_and_changes_nothing(run):
    cases = [({"w": numpy.zeros((3, 2), numpy.float32), "b": floats(2)}, r"w is \[2, 3\] there and \[3, 2\] here"),
             ({"w": floats(2, 3)}, "b is not of this model"),
             ({**model(), "c": floats(1)}, "c is not in the file"),
             ({}, "w is not of this model")]
    for params, message in cases:
        before = {name: value.copy() for name, value in params.items()}
        with pytest.raises(ValueError, match=message):
            troupe.load(params, run)
        assert all((params[name] == before[name]).all() for name in params)


def test_a_place_without_checkpoints_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="give a run's directory"):
        troupe.load(model(), tmp_path)


def header(entry):
    text = json.dumps({"w": entry}).encode()
    return struct.pack("<Q", len(text)) + text + bytes(24)


@pytest.mark.parametrize("data", [
    header({"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 28]}), header({"dtype": "F32", "shape": [2, 3], "data_offsets": [-4, 20]}),
    header({"dtype": "F32", "shape": [2, 4], "data_offsets": [0, 24]}), header({"dtype": "X", "shape": [6], "data_offsets": [0, 24]}),
    header({"dtype": "F32", "shape": [-2, -3], "data_offsets": [0, 24]}), header({"shape": [6]}), header(3), header("x"),
    struct.pack("<Q", 1 << 40) + bytes(50), struct.pack("<Q", 2) + b"[]", b"short"])
def test_files_that_are_none_are_refused(data):
    with pytest.raises(ValueError):
        safetensors.from_bytes(data)


@pytest.mark.parametrize("shape", [(), (1,)], ids=["now", "older"])
def test_scalars_and_tensors_without_elements_are_as_a_run_saves_them(tmp_path, shape):
    write(tmp_path / "step-000000000001.safetensors", {"scale": floats(*shape, first=2.5), "w": floats(2)})
    params = {"scale": numpy.zeros((), numpy.float32), "w": numpy.zeros(2, numpy.float32), "empty": numpy.zeros((0, 3), numpy.float32)}
    assert troupe.load(params, tmp_path / "step-000000000001.safetensors").names == ("scale", "w")
    assert params["scale"] == 2.5 and params["scale"].shape == () and params["w"].tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"w is \[2\] there and \[\] here"):
        troupe.load({**params, "w": numpy.zeros((), numpy.float32)}, tmp_path / "step-000000000001.safetensors")


def test_bf16_is_read_as_float32(tmp_path):
    text = json.dumps({"w": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]}}).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + numpy.array([0x3F80, 0xC000, 0x3F00], "<u2").tobytes())
    params = {"w": numpy.zeros(3, numpy.float32)}
    troupe.load(params, path)
    assert params["w"].tolist() == [1, -2, 0.5]


def test_a_state_comes_back_as_it_was():
    state = {"a": [1, 2.5, None, True, "x", (3, float("inf"))], 7: {"m": numpy.arange(4, dtype=numpy.int64), "v": numpy.zeros((0, 2), numpy.float32)},
             "tensor": {"tensor": "no reference"}, "n": numpy.float32(0.5)}
    again = _state.decode(_state.encode(state))
    assert again["a"] == state["a"] and isinstance(again["a"][5], tuple) and again["tensor"] == {"tensor": "no reference"} and again["n"] == 0.5
    assert again[7]["m"].tolist() == [0, 1, 2, 3] and again[7]["m"].dtype == numpy.int64 and again[7]["v"].shape == (0, 2)
    with pytest.raises(TypeError, match="a set at state.a"):
        _state.encode({"a": {1}})


def test_keys_that_read_alike_are_different_tensors():
    state = {"a.b": 1, "a": {"b": 2}, 1: 3, "1": 4, "a.b#1": 5, "c": [6, 7], "c.0": 8}

    def mapped(value, leaf):
        if isinstance(value, dict):
            return {key: mapped(item, leaf) for key, item in value.items()}
        return [mapped(item, leaf) for item in value] if isinstance(value, list) else leaf(value)

    arrays = mapped(state, lambda number: numpy.full(2, number, numpy.float32))
    assert str(mapped(_state.decode(_state.encode(arrays)), lambda array: array)) == str(arrays)


def test_a_module_is_loaded_by_its_state_dicts_names(tmp_path):
    torch = pytest.importorskip("torch")
    from torch import nn

    def build():
        model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Linear(2, 2), nn.Linear(2, 2))
        model[0].requires_grad_(False)
        model[3].weight = model[2].weight
        return model

    a, b = build(), build()
    with torch.no_grad():
        a[1].running_mean += 3
    trained = [name for name, value in a.named_parameters() if value.requires_grad] + ["1.running_mean", "1.running_var"]
    write(tmp_path / "checkpoints" / "step-000000000001.safetensors", {name: a.state_dict()[name].numpy() for name in trained})
    frozen = b[0].weight.clone()
    assert troupe.load(b, tmp_path).names == tuple(trained)
    assert torch.equal(b[3].weight, a[2].weight) and torch.equal(b[1].running_mean, a[1].running_mean) and torch.equal(b[0].weight, frozen)
    b[0].requires_grad_(True)
    with pytest.raises(ValueError, match="0.weight is not in the file"):
        troupe.load(b, tmp_path)
