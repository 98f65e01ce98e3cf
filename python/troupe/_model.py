"""What a run exchanges of a program's model: named float32 vectors, whatever holds them. A `Model` is one of
NumpyModel (arrays and a function) or TorchModel (troupe/_torch.py)."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Protocol

import numpy

from troupe._vectors import Tensor, Vector


class Model(Protocol):
    """Thread rule: the program's thread."""

    def tensors(self) -> List[Tensor]: ...

    def statistics(self) -> List[Tensor]: ...

    def bind(self, parameters: Vector, gradients: Optional[Vector], statistics: Vector) -> None:
        """From now on these vectors hold the model. They begin with its present values."""

    def before_read(self) -> None:
        """The engine will read the vectors: they must hold the newest values."""

    def after_write(self) -> None:
        """The engine has written to the vectors."""

    def give_gradients(self) -> None:
        """The gradient vector must hold the gradients of the last step."""

    def optimize(self, number: int, factor: float) -> None: ...

    def look_at(self, parameters: Vector, statistics: Vector) -> None:
        """The model is these vectors until look_back(): an evaluation."""

    def look_back(self) -> None: ...

    def save(self) -> bytes: ...

    def load(self, state: bytes) -> None: ...


class NumpyModel:
    """Arrays by name, which become views of the run's vectors, and a function that steps: `update(parameters, gradients, factor)` changes the
    arrays in place. Gradients are given to Run.step."""

    def __init__(self, parameters: Dict[str, Any], update: Optional[Callable[..., None]]) -> None:
        for name, value in parameters.items():
            if not isinstance(value, numpy.ndarray) or value.dtype != numpy.float32:
                raise TypeError(f"params[{name!r}] is {type(value).__name__}: arrays of float32 are wanted")
        self.parameters = parameters
        self._update = update
        self._given: Mapping[str, Any] = {}
        self._gradients: Optional[Vector] = None
        self._own: Dict[str, Any] = {}

    def tensors(self) -> List[Tensor]:
        return [Tensor(name, tuple(value.shape)) for name, value in self.parameters.items()]

    def statistics(self) -> List[Tensor]:
        return []

    def bind(self, parameters: Vector, gradients: Optional[Vector], statistics: Vector) -> None:
        self._gradients = gradients
        for name, value in list(self.parameters.items()):
            view = parameters[name]
            view[...] = value
            self.parameters[name] = view

    def before_read(self) -> None:
        pass

    def after_write(self) -> None:
        pass

    def give(self, gradients: Mapping[str, Any]) -> None:
        missing = [name for name in self.parameters if name not in gradients]
        if missing:
            raise ValueError(f"step(gradients=…) lacks {', '.join(missing)}")
        self._given = gradients

    def give_gradients(self) -> None:
        if self._gradients is None:
            return
        for name in self.parameters:
            self._gradients[name][...] = self._given[name]
        self._given = {name: self._gradients[name] for name in self.parameters}

    def optimize(self, number: int, factor: float) -> None:
        if self._update is None:
            raise ValueError("join(params=…) was given no `update`, and the strategy asks for a local step")
        self._update(self.parameters, self._given, factor)

    def look_at(self, parameters: Vector, statistics: Vector) -> None:
        self._own = dict(self.parameters)
        for name in self.parameters:
            self.parameters[name] = parameters[name]

    def look_back(self) -> None:
        self.parameters.update(self._own)
        self._own = {}

    def save(self) -> bytes:
        return b""

    def load(self, state: bytes) -> None:
        pass
