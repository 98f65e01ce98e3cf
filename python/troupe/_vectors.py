"""The vectors that a guest shares with the engine: float32 memory without a name, mapped from file descriptors."""

from __future__ import annotations

import math
import mmap
import os
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Sequence, Tuple

import numpy


@dataclass(frozen=True)
class Tensor:
    """One parameter or statistic, as the engine knows it."""

    name: str
    shape: Tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Vector:
    """A mapped vector and the views of its tensors. The mapping lives as long as any view. Takes the descriptor, also when it fails."""

    def __init__(self, descriptor: int, floats: int, tensors: Sequence[Tensor], offsets: Sequence[int]) -> None:
        try:
            self.floats: Any = numpy.empty(0, numpy.float32)
            if len(offsets) != len(tensors):
                raise ValueError(f"{len(offsets)} offsets of {len(tensors)} tensors")
            self.places: Dict[str, Tuple[int, int]] = {}  #: name -> [begin, end) in floats
            for tensor, offset in zip(tensors, offsets):
                if offset < 0 or offset + tensor.size > floats:
                    raise ValueError(f"{tensor.name}: [{offset}, {offset + tensor.size}) of a vector of {floats} floats")
                self.places[tensor.name] = (offset, offset + tensor.size)
            self._shapes = {tensor.name: tensor.shape for tensor in tensors}
            if floats > 0:
                if os.fstat(descriptor).st_size < 4 * floats:
                    raise ValueError(f"a vector of {floats} floats in {os.fstat(descriptor).st_size} bytes")
                self.floats = numpy.frombuffer(mmap.mmap(descriptor, 4 * floats), numpy.float32, floats)
        finally:
            os.close(descriptor)

    def __getitem__(self, name: str) -> Any:
        """The tensor's part, in its shape: a view."""
        begin, end = self.places[name]
        return self.floats[begin:end].reshape(self._shapes[name])

    def names(self) -> List[str]:
        return list(self.places)


class Buckets:
    """Which buckets of gradients are final: `report(k)` is called for each, in order, when all of its tensors are.

    ranges: [offset, count] in floats of the gradients' vector, of each bucket."""

    def __init__(self, ranges: Sequence[Sequence[int]], vector: Vector, report: Callable[[int], None]) -> None:
        self._report = report
        self._of: Dict[str, List[int]] = {}
        self._waiting = [0] * len(ranges)
        for name, (begin, end) in vector.places.items():
            self._of[name] = [k for k, (offset, count) in enumerate(ranges) if begin < offset + count and offset < end]
            for k in self._of[name]:
                self._waiting[k] += 1
        self._open: List[int] = []
        self._next = 0

    def begin(self) -> None:
        """A step begins: none is final."""
        self._open = list(self._waiting)
        self._next = 0

    def final(self, name: str) -> None:
        """The tensor's gradient is final and in the vector."""
        for k in self._of[name]:
            self._open[k] -= 1
        while self._next < len(self._open) and self._open[self._next] == 0:
            self._next += 1
            self._report(self._next - 1)

    def finish(self) -> None:
        """All are."""
        while self._next < len(self._open):
            self._next += 1
            self._report(self._next - 1)


@dataclass
class Vectors:
    """What WELCOME brings. `gradients`: None where the strategy does not exchange them."""

    parameters: Vector
    gradients: "Vector | None"
    statistics: Vector
    buckets: "Buckets | None" = None
    worker: int = 0
    zeros_for_missing: bool = False  #: a gradient that is missing is one of zeros, for the optimizer too: in a replay of an older recording
