"""Frames of the guest protocol over a stream socket (docs/formats/guest.md)."""

from __future__ import annotations

import array
import json
import socket
import struct
from typing import Any, List, Tuple

HELLO, PLAN, READY, DONE, BUCKET, STEPPED, EVALUATED, STATE, SYNCED, FAILED, WAITS = range(1, 12)
WELCOME, STEP, OPTIMIZE, EVALUATE, SAVE, LOAD, SYNC, CHANGED, LAST, END = range(101, 111)

MOST_BYTES = 16 << 20  #: of one payload
MOST_DESCRIPTORS = 8  #: with one frame

_HEAD = struct.Struct("<IHH")
_DONE = struct.Struct("<Qdqd")
_STEP = struct.Struct("<QQQII")
_OPTIMIZE = struct.Struct("<Qd")


class ProtocolError(Exception):
    """What the engine sent is not the protocol, or the connection ended in the middle of a frame."""


class EngineGone(Exception):
    """The engine closed the connection or does not exist any more."""


class Frames:
    """One connection. Thread rule: one thread at a time. Owns the socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._buffer = bytearray()
        self._descriptors: List[int] = []

    def close(self) -> None:
        self._socket.close()

    def send(self, kind: int, payload: bytes = b"") -> None:
        if len(payload) > MOST_BYTES:
            raise ValueError(f"a frame of {len(payload)} bytes: at most {MOST_BYTES} go in one")
        try:
            self._socket.sendall(_HEAD.pack(len(payload), kind, 0) + payload)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise EngineGone("the engine has closed the connection") from error

    def send_json(self, kind: int, value: Any) -> None:
        self.send(kind, json.dumps(value).encode())

    def send_done(self, lease: int, loss: float, samples: int, seconds: float) -> None:
        self.send(DONE, _DONE.pack(lease, loss, samples, seconds))

    def receive(self) -> Tuple[int, bytes]:
        """The next frame: its type and payload. Waits as long as it takes: the engine ends the guest when it should not wait."""
        size, kind, zero = _HEAD.unpack(self._take(_HEAD.size))
        if zero != 0 or size > MOST_BYTES:
            raise ProtocolError(f"a frame of type {kind} with {size} bytes and second half-word {zero}")
        return kind, self._take(size)

    def descriptors(self, count: int) -> List[int]:
        """The file descriptors that came with the frames so far; the caller owns them."""
        if len(self._descriptors) < count:
            raise ProtocolError(f"{len(self._descriptors)} file descriptors came, {count} were announced")
        taken, self._descriptors = self._descriptors[:count], self._descriptors[count:]
        return taken

    def _take(self, count: int) -> bytes:
        while len(self._buffer) < count:
            try:
                data, ancillary, _, _ = self._socket.recvmsg(
                    max(1 << 16, count - len(self._buffer)), socket.CMSG_SPACE(MOST_DESCRIPTORS * 4))
            except ConnectionResetError as error:
                raise EngineGone("the engine has closed the connection") from error
            for level, what, content in ancillary:
                if level == socket.SOL_SOCKET and what == socket.SCM_RIGHTS:
                    numbers = array.array("i")
                    numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
                    self._descriptors.extend(numbers)
            if not data:
                if self._buffer:
                    raise ProtocolError("the connection ended in the middle of a frame")
                raise EngineGone("the engine has closed the connection")
            self._buffer += data
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken


def parse_step(payload: bytes) -> Tuple[int, int, int, int, "memoryview"]:
    """lease, epoch, position, flags, sample numbers (little-endian u64, as bytes)."""
    if len(payload) < _STEP.size:
        raise ProtocolError(f"STEP of {len(payload)} bytes")
    lease, epoch, position, count, flags = _STEP.unpack_from(payload)
    if len(payload) != _STEP.size + 8 * count:
        raise ProtocolError(f"STEP of {count} samples in {len(payload)} bytes")
    return lease, epoch, position, flags, memoryview(payload)[_STEP.size :]


def parse_optimize(payload: bytes) -> Tuple[int, float]:
    if len(payload) != _OPTIMIZE.size:
        raise ProtocolError(f"OPTIMIZE of {len(payload)} bytes")
    number, factor = _OPTIMIZE.unpack(payload)
    return number, factor


def parse_json(kind: str, payload: bytes) -> Any:
    try:
        value = json.loads(payload)
    except ValueError as error:
        raise ProtocolError(f"{kind}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ProtocolError(f"{kind}: not an object")
    return value
