"""The vectors that a guest shares with the engine: float32 memory without a name, mapped from file descriptors."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from typing import Any, Dict, List, Sequence, Tuple

import numpy


@dataclass(frozen=True)
class Tensor:
    """One parameter or statistic, as the engine knows it."""

    name: str
    shape: Tuple[int, ...]

    @property
    def size(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count


class Vector:
    """A mapped vector and the views of its tensors. The mapping lives as long as any view."""

    def __init__(self, descriptor: int, floats: int, tensors: Sequence[Tensor], offsets: Sequence[int]) -> None:
        try:
            self.floats = numpy.empty(0, numpy.float32)
            if floats > 0:
                if os.fstat(descriptor).st_size < 4 * floats:
                    raise ValueError(f"a vector of {floats} floats in {os.fstat(descriptor).st_size} bytes")
                self.floats = numpy.frombuffer(mmap.mmap(descriptor, 4 * floats), numpy.float32, floats)
        finally:
            os.close(descriptor)
        self._places: Dict[str, Tuple[Tensor, int]] = {}
        for tensor, offset in zip(tensors, offsets):
            if offset < 0 or offset + tensor.size > floats:
                raise ValueError(f"{tensor.name}: [{offset}, {offset + tensor.size}) of a vector of {floats} floats")
            self._places[tensor.name] = (tensor, offset)

    def __getitem__(self, name: str) -> Any:
        """The tensor's part, in its shape: a view."""
        tensor, offset = self._places[name]
        return self.floats[offset : offset + tensor.size].reshape(tensor.shape)

    def names(self) -> List[str]:
        return list(self._places)
