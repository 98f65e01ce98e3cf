"""Every program of examples/ learns alone, and does what an engine asks."""

import gzip
import math
import os
import pathlib
import re
import struct
import subprocess
import sys

import numpy
import pytest

from fake_engine import FakeEngine
from troupe import _frames as frames

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GPT = ["--layers", "1", "--width", "16", "--heads", "2", "--context", "16", "--batch", "16", "--lr", "0.01"]


def write_digits(folder, part, count, seed):
    """"Digits" that can be told apart: number n has a bright row 2 n + 4."""
    random = numpy.random.default_rng(seed)
    labels = random.integers(0, 10, count).astype(numpy.uint8)
    images = random.integers(0, 60, (count, 28, 28)).astype(numpy.uint8)
    images[numpy.arange(count), 2 * labels + 4] = 250
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz", "wb") as file:
        file.write(struct.pack(">4I", 0x803, count, 28, 28) + images.tobytes())
    (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, count) + labels.tobytes())


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_digits(folder, "train", 320, 1)
    write_digits(folder, "t10k", 40, 2)
    (folder / "text").write_bytes(b"The quick brown fox jumps over the lazy dog. " * 150)
    (folder / "other").write_bytes(b"Pack my box with five dozen liquor jugs, please. " * 100)
    return folder


def start(name, *arguments, **environment):
    return subprocess.Popen([sys.executable, "-B", str(ROOT / "examples" / name), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1", **environment})


def run(name, *arguments):
    output, errors = (process := start(name, *arguments)).communicate(timeout=120)
    assert process.returncode == 0 and errors == "", errors
    return output


def figure(name, output):
    return float(re.search(rf"{name} ([\d.]+)", output)[1])


def serve(name, *arguments, steps=3):
    """Plays a run of one worker: `steps` batches with the optimizer's step. Returns HELLO, and the losses."""
    losses = []

    def script(engine):
        parameters, _, _ = engine.welcome()
        before = parameters.copy()
        plan = engine.receive_json(frames.PLAN)
        for n in range(steps):
            losses.append(engine.step(n, [k % plan["samples"] for k in range(plan["batch"])], optimize=1.0)[1])
        assert (parameters != before).any()
        engine.send(frames.LAST)
        assert engine.silent()

    with FakeEngine(script) as engine:
        process = start(name, *arguments, TROUPE_GUEST=engine.name, TROUPE_TOKEN="2" * 32)
        output, errors = process.communicate(timeout=120)
    assert (process.returncode, output, errors) == (0, "", "")  # the evaluator reports, not a worker
    assert all(map(math.isfinite, losses)) and losses[-1] < losses[0]  # the same batch each time
    return engine.hello


def test_numpy_mlp():
    small = ["--samples", "800", "--hidden", "32"]
    assert figure("accuracy", run("numpy_mlp.py", "--epochs", "40", *small)) > 0.9
    assert serve("numpy_mlp.py", *small)["optimizer"] == "Momentum"


def test_mnist(data):
    pytest.importorskip("torch")
    small = ["--data", data, "--width", "4", "--batch", "32"]
    assert figure("accuracy", run("mnist.py", *small, "--epochs", "3")) > 0.8
    assert "features.4.running_mean" in dict(serve("mnist.py", *small)["statistics"])


def test_mnist_names_data_that_it_cannot_read(data, tmp_path):
    pytest.importorskip("torch")
    process = start("mnist.py", "--data", tmp_path)
    assert "no such file, nor with .gz: --data names" in process.communicate(timeout=60)[1] and process.returncode == 1


def test_gpt(data):
    pytest.importorskip("torch")
    assert figure("loss", run("gpt.py", *GPT, "--text", data / "text", "--epochs", "3")) < 0.6 * math.log(256)
    names = dict(serve("gpt.py", *GPT, "--text", data / "text", steps=8)["tensors"])
    assert "bytes.weight" in names and "scores.weight" not in names  # tied


def test_gpts_test_windows_are_spread_over_the_text(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import gpt
    text = bytes(n // 3 for n in range(41 * 3 + 1))  # each window of 3 bytes has its number, and the next one's
    train, test = gpt.windows(text, 3)
    assert test[:, 0].tolist() == [19, 39] and test[:, 3].tolist() == [20, 40]
    assert train[:, 0].tolist() == [n for n in range(41) if n not in (19, 39)]
    with pytest.raises(SystemExit, match="at least 61 are needed"):
        gpt.windows(text[:60], 3)


def test_gpt_has_ten_million_parameters(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import gpt
    count = sum(value.numel() for value in gpt.GPT(6, 384, 6, 128).parameters())
    # 256·384 + 128·384 embeddings; 6 blocks of (384·1152 + 1152) + (384·384 + 384) + (384·1536 + 1536) + (1536·384 + 384) + 2·768; 768 last
    assert count == 147_456 + 6 * 1_774_464 + 768


def test_lora_trains_and_exchanges_adapters_alone(data, tmp_path):
    pytest.importorskip("torch")
    base = tmp_path / "base.pt"
    whole = re.search(r"trained (\d+) of (\d+) parameters", run("lora.py", "--base", base, "--train", *GPT, "--bytes", 8000))
    assert whole[1] == whole[2]
    adapters = ["--base", base, "--rank", "2", "--text", data / "other", *GPT]
    part = re.search(r"trained (\d+) of (\d+) parameters", run("lora.py", *adapters))
    assert int(part[1]) == int(part[2]) - int(whole[1])
    every = re.search(r"trained (\d+) of (\d+) parameters", run("lora.py", *adapters, "--rank", 0))
    assert every[1] == every[2] == whole[1]
    assert all(name.endswith((".up", ".down")) for name, _ in serve("lora.py", *adapters, steps=8)["tensors"])
