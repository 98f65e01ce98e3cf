"""What a run exchanges of a program's model: named float32 vectors, whatever holds them. A `Model` is one of
NumpyModel (troupe/_numpy.py) or TorchModel (troupe/_torch.py)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, ContextManager, List, Mapping, Optional, Protocol

from troupe._vectors import Tensor, Vectors


@dataclass(frozen=True)
class Description:
    """What HELLO says of a model."""

    tensors: List[Tensor]
    statistics: List[Tensor]
    frozen: List[Tensor]  #: parameters that are not trained: each worker has its program's values
    optimizer: Optional[str]
    mirrors: bool

    def fingerprint(self) -> str:
        """Equal for programs that may train together: 16 hexadecimal digits."""
        parts = [[[t.name, list(t.shape)] for t in some] for some in (self.tensors, self.statistics, self.frozen)]
        return hashlib.sha256(json.dumps([parts, self.optimizer]).encode()).hexdigest()[:16]


class Model(Protocol):
    """Thread rule: the program's thread. A worker calls bind() once; then for each step begin_step(), a step of the program, and
    finish_step(); between steps the others."""

    def description(self) -> Description: ...

    def bind(self, vectors: Vectors) -> None:
        """From now on these vectors hold the model. They begin with its present values."""

    def begin_step(self, exchange: bool) -> None:
        """The program will compute gradients; with `exchange` they go into the vector."""

    def finish_step(self, gradients: Optional[Mapping[str, Any]]) -> None:
        """Gradients are final: they are in the vector, and every bucket has been reported. Parameters must still lie where bind() put them:
        RuntimeError names the one that does not."""

    def optimize(self, factor: float, exchanged: bool) -> None:
        """One step of the optimizer, with the vector's gradients if `exchanged`."""

    def before_read(self) -> None:
        """The engine will read the vectors: they must hold the newest values."""

    def after_write(self) -> None:
        """The engine has written to the vectors."""

    def evaluating(self) -> ContextManager[None]:
        """The model as an evaluation wants it."""

    def save(self) -> bytes: ...

    def load(self, state: bytes) -> None: ...


def program_steps_alone(factor: float, exchanged: bool) -> None:
    """What optimize() does for a program that updates its parameters itself."""
    if exchanged:
        raise ValueError("the strategy exchanges gradients: give join() an optimizer (or step=…), which steps with what comes back")
    if factor != 1:
        raise ValueError(f"the run scales the learning rate by {factor}: give join() an optimizer (or step=…), which can be told")
