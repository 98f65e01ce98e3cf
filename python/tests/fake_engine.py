"""The engine's side of the guest protocol, for tests: accepts one guest and does what a test tells it."""

from __future__ import annotations

import array
import json
import os
import socket
import struct
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy

from troupe import _frames as frames


class FakeEngine:
    """Listens on an abstract socket; `script(engine)` runs on a thread of its own when the guest is there."""

    def __init__(self, script: Callable[["FakeEngine"], None]) -> None:
        self.name = f"troupe-test-{os.getpid()}-{id(self)}"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(b"\0" + self.name.encode())
        self._listener.listen(1)
        self.hello: Dict[str, Any] = {}
        self.error: Optional[BaseException] = None
        self._script = script
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "FakeEngine":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(20)
        self._listener.close()
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            self._listener.settimeout(10)
            self.connection, _ = self._listener.accept()
            self.connection.settimeout(10)
            self._script(self)
        except BaseException as error:  # noqa: B902: shown by the test's thread
            self.error = error
        finally:
            self.connection.close()

    def send(self, kind: int, payload: bytes = b"", descriptors: List[int] = []) -> None:
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        self.connection.sendmsg([struct.pack("<IHH", len(payload), kind, 0) + payload], ancillary)

    def receive(self, kind: int) -> bytes:
        size, got, _ = struct.unpack("<IHH", self._exactly(8))
        payload = self._exactly(size)
        assert got == kind, (got, kind, payload)
        return payload

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.connection.recv(count - len(data))
            assert more, "the guest left"
            data += more
        return data

    def welcome(self, gradients: bool) -> Tuple[Any, Any, Any]:
        """HELLO, WELCOME, READY. Returns the vectors: parameters, gradients, statistics."""
        self.hello = json.loads(self.receive(frames.HELLO))
        layouts = []
        for tensors in (self.hello["tensors"], self.hello["statistics"]):
            offsets, floats = [], 0
            for _, shape in tensors:
                offsets.append(floats)
                floats += (int(numpy.prod(shape)) + 15) // 16 * 16
            layouts.append((floats, offsets))
        (floats, offsets), (statistics, statistics_offsets) = layouts
        vectors, descriptors = [], []
        for size in (floats, floats, statistics):
            descriptor = os.memfd_create("vector")
            os.ftruncate(descriptor, 4 * size)
            descriptors.append(descriptor)
            vectors.append(numpy.memmap(os.fdopen(os.dup(descriptor), "r+b"), numpy.float32, "r+", shape=(size,)) if size
                           else numpy.empty(0, numpy.float32))
        self.send(frames.WELCOME, json.dumps({"worker": 1, "workers": 2, "seed": 1, "floats": floats, "offsets": offsets,
                                              "statistics_floats": statistics, "statistics_offsets": statistics_offsets,
                                              "gradients": gradients, "buckets": [], "silence_s": 60}).encode(), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        self.receive(frames.READY)
        return vectors[0], vectors[1], vectors[2]

    def step(self, lease: int, samples: List[int]) -> Tuple[int, float, int, float]:
        self.send(frames.STEP, struct.pack("<QQQII", lease, 0, 0, len(samples), 0) + numpy.array(samples, "<u8").tobytes())
        return struct.unpack("<Qdqd", self.receive(frames.DONE))  # type: ignore[return-value]
