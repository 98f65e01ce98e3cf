"""Arrays by name and a function that steps, as a Model."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any, Callable, ContextManager, Dict, Mapping, Optional

import numpy

from troupe import _state
from troupe._model import Description, program_steps_alone
from troupe._vectors import Tensor, Vectors

#: step(parameters, gradients, factor): changes the arrays in place, with a learning rate multiplied by factor.
StepFunction = Callable[[Dict[str, Any], Mapping[str, Any], float], None]


class NumpyModel:
    """Float32 arrays, which become views of the run's vectors, in the program's own dict. If `step` has an attribute `state`, a dict of arrays and
    numbers, that is the optimizer's state."""

    def __init__(self, parameters: Dict[str, Any], step: Optional[StepFunction]) -> None:
        if step is not None and not callable(step):
            raise TypeError(f"join(step=…) takes a function of (parameters, gradients, factor), not {type(step).__name__}")
        for name, value in parameters.items():
            if not isinstance(name, str) or not name:
                raise TypeError(f"params has the key {name!r}: names of arrays are needed, as str")
            if not isinstance(value, numpy.ndarray) or value.dtype != numpy.float32:
                kind = value.dtype if isinstance(value, numpy.ndarray) else type(value).__name__
                raise TypeError(f"params[{name!r}] is of {kind}: arrays of float32 are needed")
        for (one, first), (other, second) in itertools.combinations(parameters.items(), 2):
            if _overlap(first, second):
                raise ValueError(f"params[{one!r}] and params[{other!r}] share memory, which they would not after join(): give an array one name "
                                 "and use it in both places, or make one of them a copy()")
        self._parameters = parameters
        self._step = step
        self._given: Mapping[str, Any] = {}
        self._vectors: Optional[Vectors] = None
        self._views: Dict[str, Any] = {}

    def description(self) -> Description:
        tensors = [Tensor(name, tuple(value.shape)) for name, value in self._parameters.items()]
        name = None if self._step is None else getattr(self._step, "__name__", type(self._step).__name__)
        return Description(tensors, [], [], name, mirrors=False)

    def bind(self, vectors: Vectors) -> None:
        if vectors.gradients is not None and self._step is None:
            program_steps_alone(1, exchanged=True)
        self._vectors = vectors
        for name, value in list(self._parameters.items()):
            view = vectors.parameters[name]
            view[...] = value
            self._views[name] = self._parameters[name] = view

    def begin_step(self, exchange: bool) -> None:
        if self._vectors is not None and exchange and self._vectors.buckets is not None:
            self._vectors.buckets.begin()
        self._exchanges = exchange

    _exchanges = False

    def finish_step(self, gradients: Optional[Mapping[str, Any]]) -> None:
        self._adopt()
        if gradients is None and self._step is not None:
            raise ValueError("run.step(loss, gradients) needs the gradients, by the parameters' names: join() was given a step function")
        self._given = gradients or {}
        missing = [name for name in self._parameters if name not in self._given] if self._step is not None else []
        if missing:
            raise ValueError(f"run.step(loss, gradients): gradients of {', '.join(missing)} are missing")
        vectors = self._vectors
        if not self._exchanges or vectors is None or vectors.gradients is None:
            return
        for name in self._parameters:
            given = numpy.asarray(self._given[name])
            if given.shape != self._views[name].shape:
                raise ValueError(f"the gradient of {name!r} has shape {given.shape}, the parameter {self._views[name].shape}")
            vectors.gradients[name][...] = given
        self._given = {name: vectors.gradients[name] for name in self._parameters}
        if vectors.buckets is not None:
            vectors.buckets.finish()

    def _adopt(self) -> None:
        """`params["w"] = params["w"] - …` puts another array into the dict: its values go into the vector."""
        for name, view in self._views.items():
            value = self._parameters.get(name)
            if value is view:
                continue
            if not isinstance(value, numpy.ndarray) or value.shape != view.shape:
                now = "is gone" if value is None else f"has shape {getattr(value, 'shape', type(value).__name__)}"
                raise RuntimeError(f"params[{name!r}] {now}; it was of shape {view.shape} at join(): the arrays of a run keep their shapes")
            view[...] = value
            self._parameters[name] = view

    def optimize(self, factor: float, exchanged: bool) -> None:
        if self._step is None:
            program_steps_alone(factor, exchanged)
        else:
            self._step(self._parameters, self._given, factor)
            self._adopt()

    def before_read(self) -> None:
        self._adopt()

    def after_write(self) -> None:
        pass

    def evaluating(self) -> ContextManager[None]:
        return contextlib.nullcontext()

    def save(self) -> bytes:
        state = getattr(self._step, "state", None)
        return b"" if state is None else _state.encode(state)

    def load(self, state: bytes) -> None:
        own = getattr(self._step, "state", None)
        if isinstance(own, dict):
            own.clear()
            own.update(_state.decode(state, lambda array: array.copy()))


def _overlap(one: Any, other: Any) -> bool:
    try:
        return bool(numpy.shares_memory(one, other, max_work=1000))
    except RuntimeError:  # numpy's TooHardError: views with odd strides, whose bounds overlap
        return True
