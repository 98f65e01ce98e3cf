"""Random frames from the engine. Whatever comes, the guest ends: in order, with one line and an exit code, or with an error that says what does not
fit. TROUPE_FUZZ=N plays N engines, from seed TROUPE_FUZZ_SEED."""

import contextlib
import json
import os
import random
import socket
import struct

import numpy
import pytest

from fake_engine import FakeEngine
from troupe import RunEnded
from troupe import _frames as frames

ENGINES = int(os.environ.get("TROUPE_FUZZ", "400"))
SEED = int(os.environ.get("TROUPE_FUZZ_SEED", "1"))
ALLOWED = {  # what the program's own part says of bytes that fit the protocol
    "not a file of safetensors", "not a header of safetensors", "not the state of an optimizer", "tensor ", "Expecting", "Extra data", "unknown kind of value",
    "the run scales the learning rate", "codec can't decode"}
KEYS = ["code", "reason", "role", "worker", "workers", "epochs", "floats", "offsets", "statistics_floats", "statistics_offsets", "gradients", "buckets",
        "silence_s"]


class Function:
    state = {"rate": 0.5}

    def __call__(self, params, gradients, factor):
        params["w"] -= self.state.get("rate", 0) * factor * gradients["w"]


def number(rng):
    return rng.choice([0, 1, 2, 7, 8, 255, 1 << 31, 1 << 32, (1 << 63) - 1, (1 << 64) - 1, rng.getrandbits(64)])


def value(rng, depth=0):
    return rng.choice([lambda: number(rng), lambda: -1, lambda: 1e300, lambda: float("nan"), lambda: None, lambda: "worker", lambda: True,
                       lambda: [value(rng, depth + 1) for _ in range(rng.randrange(3))] if depth < 3 else 0,
                       lambda: {"code": value(rng, depth + 1)} if depth < 3 else 0])()


def payload(rng, kind):
    if kind == frames.STEP:
        count = rng.randrange(5)
        numbers = numpy.array([rng.choice([rng.randrange(8), number(rng)]) for _ in range(count)], "<u8").tobytes()
        return struct.pack("<QQQIId", number(rng), number(rng), number(rng), rng.choice([count, count, count, number(rng) & 0xffffffff]),
                           rng.choice([0, 0, 1, number(rng) & 0xffffffff]), rng.choice([1.0, 0.5, float("nan")])) + numbers
    if kind == frames.OPTIMIZE:
        return struct.pack("<Qd", number(rng), rng.choice([1.0, 0.0, float("inf")]))
    if kind == frames.EVALUATE:
        return struct.pack("<I", rng.randrange(3))
    if kind == frames.LOAD:
        piece = rng.randbytes(rng.randrange(40))
        return struct.pack("<QQ", rng.choice([len(piece), number(rng)]), rng.choice([0, 0, number(rng)])) + piece
    if kind in (frames.END, frames.WELCOME):
        return json.dumps({key: value(rng) for key in KEYS if rng.random() < 0.8}).encode()
    return b""


def frame(rng):
    kind = rng.choice([*frames.NAMES, frames.STEP, frames.STEP, frames.STEP, rng.randrange(65536)])
    content = payload(rng, kind)
    if rng.random() < 0.1:
        content = content[: rng.randrange(len(content) + 1)] + rng.randbytes(rng.randrange(9))
    length = len(content) if rng.random() < 0.97 else number(rng) & 0xffffffff
    return struct.pack("<IHH", length, kind, 0 if rng.random() < 0.98 else 1) + content


@pytest.mark.parametrize("part", range(4))
def test_random_frames_end_in_one_clear_error(join, capsys, part):
    for seed in range(SEED + part, SEED + ENGINES, 4):
        rng = random.Random(seed)

        def script(engine):
            if rng.random() < 0.3:
                with contextlib.suppress(AssertionError):  # it may refuse
                    engine.welcome(mutated={rng.choice(KEYS[2:]): value(rng)})
            elif rng.random() < 0.2:
                engine.receive(frames.HELLO)
                engine.send(frames.WELCOME, payload(rng, frames.WELCOME), [0] * rng.randrange(5))
            else:
                engine.welcome(gradients=rng.random() < 0.5, role=rng.choice(["worker", "evaluator"]), buckets=[["w"]])
            with contextlib.suppress(OSError):  # the guest may have left
                engine.connection.sendall(b"".join(frame(rng) for _ in range(rng.randrange(8))) + rng.choice([b"", rng.randbytes(5)]))
                engine.connection.shutdown(socket.SHUT_WR)
                while engine.connection.recv(1 << 16):
                    pass

        ended = None
        with FakeEngine(script) as engine:
            run = None
            try:
                run = join(engine, params={"w": numpy.zeros(4, numpy.float32)}, step=Function())
                for batch in run.batches(8, 4):
                    assert 0 < len(batch) <= 4 and 0 <= batch.min() and batch.max() < 8
                    run.step(1.0, {"w": numpy.ones(4, numpy.float32)})
                run.evaluate(lambda: {"loss": 1.0})
            except RunEnded as error:
                ended = error
            except (ValueError, TypeError) as error:
                assert any(part in str(error) for part in ALLOWED), (seed, error)
            finally:
                if run is not None:
                    run._link.close()
                else:
                    with contextlib.suppress(OSError):
                        engine.connection.shutdown(socket.SHUT_RDWR)
        said = capsys.readouterr().err
        if ended is not None:
            assert ended.code in range(1, 256) and said.count("troupe: ") == 1 and "Traceback" not in said, (seed, said)
