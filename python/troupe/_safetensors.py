"""Files of safetensors in plain numpy: what troupe writes and reads (docs/formats/checkpoint.md)."""

from __future__ import annotations

import json
import math
import os
import struct
from typing import Any, Dict, Mapping, Tuple

import numpy

MOST_HEADER = 16 << 20  #: bytes
#: dtype of the file -> numpy's, little-endian. BF16 has none: it is read as float32.
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U64": "<u8", "U32": "<u4",
          "U16": "<u2", "U8": "u1", "BOOL": "?"}
_OF = {numpy.dtype(code): name for name, code in DTYPES.items()}


def to_bytes(tensors: Mapping[str, Any], metadata: Mapping[str, str]) -> bytes:
    """Larger element types first, without holes."""
    header: Dict[str, Any] = {"__metadata__": dict(metadata)}
    parts, offset = [], 0
    for name, array in sorted(tensors.items(), key=lambda item: -int(item[1].dtype.itemsize)):
        little = numpy.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
        if little.dtype not in _OF:
            raise TypeError(f"{name}: arrays of {array.dtype} cannot be saved")
        header[name] = {"dtype": _OF[little.dtype], "shape": list(array.shape), "data_offsets": [offset, offset + little.nbytes]}
        parts.append(little.tobytes())
        offset += little.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *parts])


class Header:
    """Names, types and places of a file's tensors; checked against the file's size. ValueError: not such a file, or cut off."""

    def __init__(self, text: bytes, data_bytes: int) -> None:
        try:
            entries = json.loads(text)
            self.metadata: Dict[str, str] = dict(entries.pop("__metadata__", {}))
            self.entries: Dict[str, Tuple[str, Tuple[int, ...], int, int]] = {}
            for name, entry in entries.items():
                begin, end = map(int, entry["data_offsets"])
                shape = tuple(map(int, entry["shape"]))
                kind = str(entry["dtype"])
                width = 2 if kind == "BF16" else numpy.dtype(DTYPES[kind]).itemsize
                if min(shape, default=0) < 0 or not 0 <= begin <= end <= data_bytes or end - begin != width * math.prod(shape):
                    raise ValueError(f"tensor {name}: bytes [{begin}, {end}) of {data_bytes} for {kind} of shape {shape}")
                self.entries[name] = (kind, shape, begin, end)
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"not a header of safetensors: {error!r}") from error

    def array(self, name: str, data: Any) -> Any:
        """`data`: this tensor's bytes."""
        kind, shape, _, _ = self.entries[name]
        if kind == "BF16":
            wide = numpy.frombuffer(data, "<u2").astype("<u4") << 16
            return wide.view("<f4").reshape(shape)
        return numpy.frombuffer(data, DTYPES[kind]).reshape(shape)


def _header(start: bytes, size: int) -> int:
    length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
    if length > min(MOST_HEADER, size - 8):
        raise ValueError(f"not a file of safetensors, or cut off: {size} bytes")
    return int(length)


def from_bytes(data: bytes) -> Tuple[Dict[str, Any], Dict[str, str]]:
    """Tensors (read-only views of `data`) and metadata."""
    length = _header(data[:8], len(data))
    header = Header(data[8 : 8 + length], len(data) - 8 - length)
    rest = memoryview(data)[8 + length :]
    return {name: header.array(name, rest[begin:end]) for name, (_, _, begin, end) in header.entries.items()}, header.metadata


class File:
    """A file whose tensors are read one by one."""

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self._file = open(path, "rb")
        try:
            size = os.fstat(self._file.fileno()).st_size
            length = _header(self._file.read(8), size)
            self.header = Header(self._file.read(length), size - 8 - length)
            self._data = 8 + length
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> "File":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read(self, name: str) -> Any:
        _, _, begin, end = self.header.entries[name]
        self._file.seek(self._data + begin)
        return self.header.array(name, self._file.read(end - begin))
