"""The engine's side of the guest protocol, for tests: accepts one guest and does what a test tells it."""

from __future__ import annotations

import array
import contextlib
import json
import math
import os
import socket
import struct
import threading
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy

from troupe import _frames as frames


class FakeEngine:
    """Listens on an abstract socket; `script(engine)` runs on a thread of its own when the guest is there, and the connection closes after it."""

    def __init__(self, script: Callable[["FakeEngine"], None]) -> None:
        self.name = f"troupe-test-{os.getpid()}-{id(self)}"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(b"\0" + self.name.encode())
        self._listener.listen(1)
        self.hello: Dict[str, Any] = {}
        self.offsets: Dict[str, int] = {}
        self.error: Optional[BaseException] = None
        self.connection: Any = None
        self._script = script
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "FakeEngine":
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None and self.connection is not None:  # the test has failed already
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(240)
        self._listener.close()
        if self.error is not None and kind is None:
            raise self.error

    def _run(self) -> None:
        try:
            self._listener.settimeout(120)
            self.connection, _ = self._listener.accept()
            self.connection.settimeout(120)
            with self.connection:
                self._script(self)
        except BaseException as error:  # shown by the test's thread
            self.error = error

    def send(self, kind: int, payload: bytes = b"", descriptors: Sequence[int] = ()) -> None:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        self.connection.sendmsg([struct.pack("<IHH", len(payload), kind, 0) + payload], ancillary)

    def send_json(self, kind: int, value: Any) -> None:
        self.send(kind, json.dumps(value).encode())

    def receive_any(self) -> Tuple[int, bytes]:
        size, kind, zero = struct.unpack("<IHH", self._exactly(8))
        assert zero == 0
        return kind, self._exactly(size)

    def receive(self, kind: int) -> bytes:
        got, payload = self.receive_any()
        assert got == kind, (got, kind, payload)
        return payload

    def receive_json(self, kind: int) -> Any:
        return json.loads(self.receive(kind))

    def silent(self) -> bool:
        """Whether the guest has closed its connection and said nothing more."""
        return bool(self.connection.recv(1) == b"")

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.connection.recv(count - len(data))
            assert more, "the guest left"
            data += more
        return data

    def welcome(self, gradients: bool = False, role: str = "worker", buckets: Sequence[Sequence[str]] = (),
                mutated: Mapping[str, Any] = {}, **others: Any) -> Tuple[Any, Any, Any]:
        """HELLO, WELCOME, READY. Returns the vectors: parameters, gradients, statistics. buckets: names of tensors that lie together.
        mutated: keys of WELCOME that are other than they should be."""
        self.hello = self.receive_json(frames.HELLO)
        layouts = []
        for tensors in (self.hello["tensors"], self.hello["statistics"]):
            offsets, floats = [], 0
            for name, shape in tensors:
                offsets.append(floats)
                self.offsets[name] = floats
                floats += (math.prod(shape) + 15) // 16 * 16
            layouts.append((floats, offsets))
        (floats, offsets), (statistics, statistics_offsets) = layouts
        shapes = dict((name, shape) for name, shape in self.hello["tensors"])
        ranges = [[min(self.offsets[n] for n in names), max(self.offsets[n] + math.prod(shapes[n]) for n in names)] for names in buckets]
        vectors, descriptors = [], []
        for size in (floats, floats if gradients else 0, statistics):
            descriptor = os.memfd_create("vector")
            os.ftruncate(descriptor, 4 * size)
            descriptors.append(descriptor)
            vectors.append(numpy.memmap(os.fdopen(os.dup(descriptor), "r+b"), numpy.float32, "r+", shape=(size,)) if size
                           else numpy.empty(0, numpy.float32))
        self.send(frames.WELCOME, json.dumps({
            "role": role, "worker": 1, "workers": 2, "seed": 1, "floats": floats, "offsets": offsets, "statistics_floats": statistics,
            "statistics_offsets": statistics_offsets, "gradients": gradients, "buckets": [[begin, end - begin] for begin, end in ranges],
            "silence_s": 60, **others, **mutated}).encode(), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        self.receive(frames.READY)
        return vectors[0], vectors[1], vectors[2]

    def part(self, vector: Any, name: str) -> Any:
        """The tensor's part of a vector, in its shape: a view."""
        shape = dict((n, s) for n, s in self.hello["tensors"] + self.hello["statistics"])[name]
        return vector[self.offsets[name] : self.offsets[name] + math.prod(shape)].reshape(shape)

    def send_step(self, lease: int, samples: Sequence[int], optimize: Optional[float] = None, epoch: int = 0, position: int = 0) -> None:
        flags, factor = (0, 0.0) if optimize is None else (frames.FLAG_OPTIMIZE, optimize)
        self.send(frames.STEP, struct.pack("<QQQIId", lease, epoch, position, len(samples), flags, factor) + numpy.array(samples, "<u8").tobytes())

    def step(self, lease: int, samples: Sequence[int], optimize: Optional[float] = None, **place: int) -> Tuple[int, float, int, float]:
        """lease, loss, samples, seconds of DONE."""
        self.send_step(lease, samples, optimize, **place)
        lease, loss, count, seconds = struct.unpack("<Qdqd", self.receive(frames.DONE))
        return lease, loss, count, seconds

    def optimize(self, factor: float = 1.0) -> None:
        self.send(frames.OPTIMIZE, struct.pack("<Qd", 1, factor))
        self.receive(frames.STEPPED)

    def sync(self) -> None:
        self.send(frames.SYNC)
        self.receive(frames.SYNCED)

    def save(self) -> bytes:
        self.send(frames.SAVE)
        state = b""
        while True:
            payload = self.receive(frames.STATE)
            total, offset = struct.unpack_from("<QQ", payload)
            assert offset == len(state)
            state += payload[16:]
            if len(state) == total:
                return state

    def load(self, state: bytes, piece: int = 1000) -> None:
        for offset in range(0, max(len(state), 1), piece):
            self.send(frames.LOAD, struct.pack("<QQ", len(state), offset) + state[offset : offset + piece])
        self.receive(frames.LOADED)

    def end(self, code: int = 0, reason: str = "test") -> None:
        self.send_json(frames.END, {"code": code, "reason": reason})


def planned(engine: FakeEngine, samples: int = 8, batch: int = 4, epochs: int = 1) -> None:
    assert engine.receive_json(frames.PLAN) == {"samples": samples, "batch": batch, "epochs": epochs}
