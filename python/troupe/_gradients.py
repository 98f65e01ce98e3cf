"""Gradients of torch's parameters on their way into the run's vector and back."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Set

import numpy
import torch

from troupe._placement import Placement
from troupe._vectors import Vectors


class Gradients:
    """The vector's part of each parameter becomes the gradient of those that can share it, so that the optimizer reads there what comes back.

    A parameter without a gradient has −0.0 everywhere in the vector, one with a gradient does not begin with −0.0: so a sum is −0.0 everywhere only
    if no worker had a gradient. Then the optimizer must not see one, as it does not alone: it would decay a layer that nobody uses.

    overlap: a gradient is copied and its bucket reported as soon as backward has accumulated it for the `passes`-th time in a step. Then the
    program must not change gradients between backward and run.step. Without, all are reported by run.step. Parameters on a GPU always are."""

    def __init__(self, placements: Sequence[Placement], vectors: Vectors, overlap: bool, passes: int) -> None:
        vector, buckets = vectors.gradients, vectors.buckets
        assert vector is not None
        self._placements = placements
        self._vector = vector
        self._zeros_for_missing = vectors.zeros_for_missing
        self._first = {p.name: vector.places[p.name][0] for p in placements if p.value.numel() > 0}
        self._names = list(self._first)
        self._firsts = numpy.array([self._first[name] for name in self._names], numpy.int64)
        self._views: Dict[str, torch.Tensor] = {p.name: torch.from_numpy(vector[p.name]) for p in placements}
        self._buckets = buckets
        self._passes = passes
        self._given: Dict[str, int] = {}  # accumulations in this step
        self._active = False
        self._kept: List[Any] = []  # autograd's nodes of the hooks
        self._devices = {p.value.device for p in placements if p.value.device.type == "cuda"}
        if overlap and buckets is not None:
            for placement in placements:
                if placement.value.device.type == "cpu":
                    self._watch(placement)

    def view(self, name: str) -> torch.Tensor:
        return self._views[name]

    def missing(self) -> Set[str]:
        """Parameters of which no worker had a gradient, by what came back: the same set on all workers."""
        if self._zeros_for_missing:
            return set()
        firsts = self._vector.floats[self._firsts]
        perhaps = numpy.nonzero((firsts == 0) & numpy.signbit(firsts))[0]
        return {name for name in (self._names[k] for k in perhaps) if bool((numpy.signbit(self._vector[name]) & (self._vector[name] == 0)).all())}

    def back(self, placement: Placement, missing: Set[str]) -> None:
        """What came back becomes the gradient of a parameter that is no master."""
        value, view = placement.value, self._views[placement.name]
        if placement.name in missing:
            value.grad = None
        elif placement.kind == "view":
            value.grad = view
        elif value.grad is None or value.grad.is_sparse:
            value.grad = view.to(device=value.device, dtype=value.dtype)
        else:
            value.grad.copy_(view, non_blocking=True)

    def begin(self) -> None:
        self._active = True
        self._given = {}
        if self._buckets is not None:
            self._buckets.begin()

    def finish(self) -> None:
        self._active = False
        for placement in self._placements:
            if self._given.get(placement.name, 0) < self._passes or not self._kept:
                self._take(placement)
        for device in self._devices:
            stream: Any = torch.cuda.current_stream(device)
            stream.synchronize()
        for placement in self._placements:
            if placement.value.grad is not None and placement.value.device in self._devices:
                self._tell_apart(placement)
        if self._buckets is not None:
            self._buckets.finish()

    def cancel(self) -> None:
        """The step's gradients stay here."""
        self._active = False

    def _take(self, placement: Placement) -> None:
        view, value = self._views[placement.name], placement.value
        with torch.no_grad():
            gradient = value.grad
            if gradient is None:
                view.fill_(0.0 if self._zeros_for_missing else -0.0)
                return
            if gradient.is_sparse:
                view.copy_(gradient.to_dense(), non_blocking=True)
            elif gradient.data_ptr() != view.data_ptr() or gradient.numel() == 0:
                view.copy_(gradient, non_blocking=True)
            if placement.kind == "view":
                value.grad = view
        if value.device not in self._devices:
            self._tell_apart(placement)

    def _tell_apart(self, placement: Placement) -> None:
        first = self._first.get(placement.name)
        if first is not None:
            self._vector.floats[first] += 0.0  # −0.0 becomes 0.0

    def _accumulated(self, placement: Placement) -> None:
        if not self._active:
            return
        times = self._given.get(placement.name, 0) + 1
        self._given[placement.name] = times
        if times > self._passes:
            raise RuntimeError(f"backward pass {times} of a step reached {placement.name}: join(accumulate=…) says {self._passes}. Give the number of "
                               "backward passes before each run.step there, or join without overlap=True")
        if times == self._passes and self._buckets is not None:
            self._take(placement)
            self._buckets.final(placement.name)

    def _watch(self, placement: Placement) -> None:
        def accumulated(*_: Any) -> None:
            self._accumulated(placement)

        value: Any = placement.value
        if hasattr(value, "register_post_accumulate_grad_hook"):  # torch 2.1
            self._kept.append(value.register_post_accumulate_grad_hook(accumulated))
            return
        with torch.enable_grad():
            node = value.view_as(value).grad_fn.next_functions[0][0]  # accumulates the gradient; lives as long as it is kept
        node.register_hook(accumulated)
        self._kept.append(node)
