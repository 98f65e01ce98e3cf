"""Frames of the guest protocol over a stream socket (docs/formats/guest.md)."""

from __future__ import annotations

import array
import json
import os
import socket
import struct
from typing import Any, Dict, List, NamedTuple, Tuple

HELLO, PLAN, READY, DONE, BUCKET, STEPPED, EVALUATED, STATE, SYNCED, FAILED, WAITS, LOADED = range(1, 13)
WELCOME, STEP, OPTIMIZE, EVALUATE, SAVE, LOAD, SYNC, CHANGED, LAST, END = range(101, 111)
NAMES = {WELCOME: "WELCOME", STEP: "STEP", OPTIMIZE: "OPTIMIZE", EVALUATE: "EVALUATE", SAVE: "SAVE", LOAD: "LOAD", SYNC: "SYNC",
         CHANGED: "CHANGED", LAST: "LAST", END: "END"}

MOST_BYTES = 16 << 20  #: of one payload
MOST_DESCRIPTORS = 8  #: with one frame
FIRST_SILENCE_S = 60  #: before WELCOME says another
FLAG_OPTIMIZE = 1  #: of STEP

_HEAD = struct.Struct("<IHH")
_DONE = struct.Struct("<Qdqd")
_STEP = struct.Struct("<QQQIId")
_OPTIMIZE = struct.Struct("<Qd")
_PIECE = struct.Struct("<QQ")


class ProtocolError(Exception):
    """What the engine sent is not the protocol, or the connection ended in the middle of a frame."""


class EngineGone(Exception):
    """The engine closed the connection or does not exist any more."""


class Frames:
    """One connection. Thread rule: one thread at a time. Owns the socket, and closes it in child processes. Waits for the first byte of a frame
    without limit: the engine's end closes the connection. Within a frame it gives up after the limit of silence."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._buffer = bytearray()
        self._descriptors: List[int] = []
        self.limit_silence(FIRST_SILENCE_S)
        os.register_at_fork(after_in_child=self._socket.close)

    def limit_silence(self, seconds: float) -> None:
        whole = min(max(int(seconds), 1), 1_000_000)
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            self._socket.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", whole, 0))

    def close(self) -> None:
        self._socket.close()

    def send(self, kind: int, payload: bytes = b"") -> None:
        if len(payload) > MOST_BYTES:
            raise ValueError(f"a frame of {len(payload)} bytes: at most {MOST_BYTES} go in one")
        try:
            self._socket.sendall(_HEAD.pack(len(payload), kind, 0) + payload)
        except BlockingIOError as error:
            raise EngineGone("the engine does not read what it is sent") from error
        except OSError as error:
            raise EngineGone("the engine has closed the connection") from error

    def send_json(self, kind: int, value: Any) -> None:
        # Texts may have parts of characters, as names of files have that are not UTF-8: no reader of JSON must take these.
        self.send(kind, json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))

    def send_done(self, lease: int, loss: float, samples: int, seconds: float) -> None:
        self.send(DONE, _DONE.pack(lease, loss, samples, seconds))

    def send_bucket(self, number: int) -> None:
        self.send(BUCKET, struct.pack("<I", number))

    def send_state(self, state: bytes) -> None:
        most = MOST_BYTES - _PIECE.size
        for offset in range(0, max(len(state), 1), most):
            self.send(STATE, _PIECE.pack(len(state), offset) + state[offset : offset + most])

    def receive(self) -> Tuple[int, bytes]:
        """The next frame: its type and payload."""
        size, kind, zero = _HEAD.unpack(self._take(_HEAD.size, between=True))
        if kind not in NAMES:
            raise ProtocolError(f"a frame of an unknown type, {kind}")
        if zero != 0 or size > MOST_BYTES:
            raise ProtocolError(f"{NAMES[kind]} with {size} bytes and second half-word {zero}")
        return kind, self._take(size)

    def descriptors(self, count: int) -> List[int]:
        """The file descriptors that came with the frames so far; the caller owns them."""
        taken, self._descriptors = self._descriptors, []
        if len(taken) != count:
            for descriptor in taken:
                os.close(descriptor)
            raise ProtocolError(f"{len(taken)} file descriptors came, {count} were announced")
        return taken

    def _take(self, count: int, between: bool = False) -> bytes:
        while len(self._buffer) < count:
            inside = not between or len(self._buffer) > 0
            try:
                data, ancillary, flags, _ = self._socket.recvmsg(
                    max(1 << 16, count - len(self._buffer)), socket.CMSG_SPACE(MOST_DESCRIPTORS * 4), socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError as error:  # the limit of silence
                if not inside:
                    continue
                raise ProtocolError(f"a frame ended after {len(self._buffer)} of {count} bytes and did not go on") from error
            except OSError as error:
                raise EngineGone("the engine has closed the connection") from error
            for level, what, content in ancillary:
                if level == socket.SOL_SOCKET and what == socket.SCM_RIGHTS:
                    numbers = array.array("i")
                    numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
                    self._descriptors.extend(numbers)
            if flags & socket.MSG_CTRUNC:
                raise ProtocolError(f"more than {MOST_DESCRIPTORS} file descriptors came with a frame")
            if not data:
                if inside:
                    raise ProtocolError("the connection ended in the middle of a frame")
                raise EngineGone("the engine has closed the connection")
            self._buffer += data
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken


class Step(NamedTuple):
    lease: int
    epoch: int
    position: int
    flags: int
    factor: float
    numbers: memoryview  #: of samples: little-endian u64, as bytes


def parse_step(payload: bytes) -> Step:
    if len(payload) < _STEP.size:
        raise ProtocolError(f"STEP of {len(payload)} bytes")
    lease, epoch, position, count, flags, factor = _STEP.unpack_from(payload)
    if len(payload) != _STEP.size + 8 * count or count == 0:
        raise ProtocolError(f"STEP of {count} samples in {len(payload)} bytes")
    if flags & ~FLAG_OPTIMIZE:
        raise ProtocolError(f"STEP with flags {flags:#x}")
    return Step(lease, epoch, position, flags, factor, memoryview(payload)[_STEP.size :])


def parse_optimize(payload: bytes) -> Tuple[int, float]:
    if len(payload) != _OPTIMIZE.size:
        raise ProtocolError(f"OPTIMIZE of {len(payload)} bytes")
    number, factor = _OPTIMIZE.unpack(payload)
    return number, factor


def parse_empty(kind: int, payload: bytes) -> None:
    if payload:
        raise ProtocolError(f"{NAMES[kind]} of {len(payload)} bytes")


def parse_evaluate(payload: bytes) -> int:
    if len(payload) != 4:
        raise ProtocolError(f"EVALUATE of {len(payload)} bytes")
    return int.from_bytes(payload, "little")


def parse_json(kind: int, payload: bytes) -> Dict[str, Any]:
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"{NAMES[kind]}: not JSON: {str(error)[:200]}") from error
    if not isinstance(value, dict):
        raise ProtocolError(f"{NAMES[kind]}: not an object")
    return value


class StateInPieces:
    """The pieces of LOAD, until they are whole."""

    def __init__(self) -> None:
        self._pieces = bytearray()

    def add(self, payload: bytes) -> "bytes | None":
        """The whole state with its last piece, before that None."""
        if len(payload) < _PIECE.size:
            raise ProtocolError(f"LOAD of {len(payload)} bytes")
        total, offset = _PIECE.unpack_from(payload)
        piece = memoryview(payload)[_PIECE.size :]
        if offset != len(self._pieces) or offset + len(piece) > total or (not piece and total > 0):
            raise ProtocolError(f"LOAD: bytes [{offset}, {offset + len(piece)}) of {total}, after {len(self._pieces)}")
        self._pieces += piece
        if len(self._pieces) < total:
            return None
        whole, self._pieces = bytes(self._pieces), bytearray()
        return whole
