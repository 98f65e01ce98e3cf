"""A torch.nn.Module and its optimizer as a Model. Public interfaces of torch 1.13 and 2.x only, but for `_orig_mod` of torch.compile, and
`_indices` and `_values` of sparse tensors, which others merge."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Mapping, Optional, Set, Tuple

import torch

from troupe import _state
from troupe._buffers import IntegerBuffers
from troupe._gradients import Gradients
from troupe._model import Description, program_steps_alone
from troupe._placement import Copies, Placement, can_be_view, is_half, moved
from troupe._vectors import Tensor, Vectors

# What a step checks, the others in later steps: a step without an exchange is to cost some 30 µs.
POINTERS_EACH_STEP = 32
LOOKED_UP_EACH_STEP = 2


def original(module: torch.nn.Module) -> torch.nn.Module:
    """The module that torch.compile() wrapped: its names are the state_dict's of the program that loads them elsewhere."""
    inner = getattr(module, "_orig_mod", None)
    return inner if isinstance(inner, torch.nn.Module) else module


def _at(module: torch.nn.Module, name: str) -> Any:
    """What the module has under this name; None: nothing."""
    at: Any = module
    for part in name.split("."):
        at = getattr(at, part, None)
    return at


def _trained(module: torch.nn.Module) -> Dict[str, torch.nn.Parameter]:
    """Trainable parameters by name, tied ones once, under the first of their names."""
    trained: Dict[str, torch.nn.Parameter] = {}
    for name, value in module.named_parameters():
        if torch.nn.parameter.is_lazy(value):
            raise ValueError(f"{name} has no shape yet: run the model once before join()")
        if not value.requires_grad:
            continue
        if not value.is_floating_point() or value.layout != torch.strided or value.is_meta:
            raise TypeError(f"{name} is of {value.dtype} ({value.layout}, {value.device}): dense floating-point parameters can be exchanged")
        trained[name] = value
    return trained


def _check_memory(module: torch.nn.Module, trained: Mapping[str, torch.nn.Parameter]) -> None:
    """ValueError names a tensor that shares its memory with a trained parameter, which moves into the run's vectors at join() without it."""
    at: Dict[Tuple[torch.device, int], str] = {}
    for name, value in [*trained.items(), *module.named_parameters(), *module.named_buffers()]:
        if torch.nn.parameter.is_lazy(value) or value.layout != torch.strided or value.is_meta or value.numel() == 0:
            continue
        place = (value.device, value.data_ptr())
        other = at.setdefault(place, name) if name in trained else at.get(place, name)
        if other != name and (name in trained or can_be_view(trained[other])):
            raise ValueError(f"{name} shares its memory with {other} and is another tensor: tie parameters by assigning the same Parameter, or make "
                             "one of them a clone()")


def _statistics(module: torch.nn.Module) -> Dict[str, torch.Tensor]:
    """Buffers that workers average: those of floating point that belong to the state."""
    saved = set(module.state_dict())
    return {name: value for name, value in module.named_buffers() if name in saved and value.is_floating_point()}


class TorchModel:
    """docs/guests.md says what is exchanged and how. `overlap`, `passes`: of Gradients."""

    def __init__(self, module: torch.nn.Module, optimizer: Optional[Any], overlap: bool = False, passes: int = 1) -> None:
        if not isinstance(module, torch.nn.Module):
            raise TypeError(f"join() takes a torch.nn.Module, not {type(module).__name__}; arrays go in params=…")
        if optimizer is not None and not callable(getattr(optimizer, "step", None)):
            raise TypeError(f"join() takes an optimizer with step(), not {type(optimizer).__name__}")
        self._module = original(module)
        self._optimizer = optimizer
        self._overlap, self._passes = overlap, passes
        self._parameters = _trained(self._module)
        self._buffers = _statistics(self._module)
        _check_memory(self._module, self._parameters)
        self._integers = IntegerBuffers(self._module)
        self._trained: List[Placement] = []
        self._averaged: List[Placement] = []
        self._all: List[Placement] = []
        self._masters: List[Placement] = []
        self._adopted: List[Placement] = []  # buffers that their module replaces: looked at after every step
        self._gradients: Optional[Gradients] = None
        self._worker = 0
        self._steps = 0

    def description(self) -> Description:
        def tensors(values: Mapping[str, torch.Tensor]) -> List[Tensor]:
            return [Tensor(name, tuple(value.shape)) for name, value in values.items()]

        frozen = {name: value for name, value in self._module.named_parameters() if not value.requires_grad}
        mirrors = not all(can_be_view(value) for value in [*self._parameters.values(), *self._buffers.values()])
        optimizer = None if self._optimizer is None else type(self._optimizer).__name__
        return Description(tensors(self._parameters), tensors(self._buffers), tensors(frozen), optimizer, mirrors)

    def bind(self, vectors: Vectors) -> None:
        if vectors.gradients is not None and self._optimizer is None:
            program_steps_alone(1, exchanged=True)
        self._worker = vectors.worker
        self._trained = [Placement(name, value, torch.from_numpy(vectors.parameters[name]), trained=True)
                         for name, value in self._parameters.items()]
        self._averaged = [Placement(name, value, torch.from_numpy(vectors.statistics[name]), trained=False)
                          for name, value in self._buffers.items()]
        self._masters = [p for p in self._trained if p.kind == "master"]
        self._all = [*self._trained, *self._averaged]
        self._fixed = [(p.value, p.address, p.name) for p in self._trained if p.kind == "view" and p.value.numel() > 0]
        self._copies = Copies(self._all)
        for vector in (vectors.parameters, vectors.statistics):
            self._copies.pin(torch.from_numpy(vector.floats))
        if vectors.gradients is not None:
            self._copies.pin(torch.from_numpy(vectors.gradients.floats))
            self._gradients = Gradients(self._trained, vectors, self._overlap, self._passes)

    def begin_step(self, exchange: bool) -> None:
        if self._gradients is not None:
            (self._gradients.begin if exchange else self._gradients.cancel)()
        self._exchanges = exchange

    _exchanges = False

    def finish_step(self, gradients: Optional[Mapping[str, Any]]) -> None:
        if gradients is not None:
            raise TypeError("run.step(loss) of a torch model takes no gradients: backward() leaves them in the parameters")
        self._check()
        if self._gradients is not None and self._exchanges:
            self._gradients.finish()

    def _check(self) -> None:
        """Of some tensors, in turn, that they lie in the vectors, and that the module still has them; of all after the first step."""
        if self._steps == 0:
            self._check_all()
        for value, address, name in self._next(self._fixed, POINTERS_EACH_STEP):
            if value.data_ptr() != address:
                raise moved(name)
        for placement in self._next(self._all, LOOKED_UP_EACH_STEP):
            self._check_one(placement)
        for placement in self._adopted:
            self._check_one(placement)
        self._steps += 1

    def _next(self, items: List[Any], count: int) -> List[Any]:
        if len(items) <= count:
            return items
        first = self._steps * count % len(items)
        return items[first : first + count]

    def _check_all(self) -> None:
        for placement in self._all:
            self._check_one(placement)

    def _check_one(self, placement: Placement) -> None:
        now = _at(self._module, placement.name)
        if now is not placement.value:
            if isinstance(now, torch.nn.Parameter) or not isinstance(now, torch.Tensor) or isinstance(placement.value, torch.nn.Parameter):
                raise RuntimeError(f"{placement.name} is another tensor than at join(): a module or parameter was replaced. Build the model before join()")
            self._adopt(placement, now)
        if isinstance(placement.value, torch.nn.Parameter) and not placement.value.requires_grad:
            raise RuntimeError(f"{placement.name} does not require gradients any more: freeze parameters before join()")
        placement.check()

    def _adopt(self, placement: Placement, now: torch.Tensor) -> None:
        """`self.mean = 0.9 * self.mean + …` puts another tensor in a buffer's place: its values go into the vector."""
        if now.shape != placement.shape or now.dtype != placement.value.dtype or now.device != placement.value.device:
            raise RuntimeError(f"{placement.name} was {tuple(placement.shape)} of {placement.value.dtype} on {placement.value.device} at join(), and is "
                               f"{tuple(now.shape)} of {now.dtype} on {now.device} now: a run's tensors keep their shapes")
        with torch.no_grad():
            if placement.kind == "view":
                placement.shared.copy_(now)
                now.data = placement.shared
        placement.value = now
        if placement not in self._adopted:
            self._adopted.append(placement)

    def optimize(self, factor: float, exchanged: bool) -> None:
        if self._optimizer is None:
            program_steps_alone(factor, exchanged)
            return
        missing: Set[str] = set()
        if exchanged and self._gradients is not None:
            missing = self._gradients.missing()
            with torch.no_grad():
                for placement in self._trained:
                    if placement.kind != "master":
                        self._gradients.back(placement, missing)
        with self._on_masters(exchanged, missing), scaled(self._optimizer, factor):
            self._optimizer.step()

    @contextlib.contextmanager
    def _on_masters(self, exchanged: bool, missing: Set[str]) -> Iterator[None]:
        """Inside, each parameter of 16 bits is its float32 master, with a gradient of float32: the optimizer sees the same Parameter objects, keeps
        its state in float32, and its step is not lost to rounding."""
        own: List[Tuple[torch.Tensor, Optional[torch.Tensor]]] = []
        with torch.no_grad():
            for placement in self._masters:
                placement.fold()
                value = placement.value
                own.append((value.data, value.grad))
                gradient = value.grad
                value.grad = None
                value.data = placement.master
                if placement.name in missing:
                    continue
                if exchanged and self._gradients is not None:
                    value.grad = self._gradients.view(placement.name).to(value.device)
                elif gradient is not None:
                    value.grad = gradient.float()
        try:
            yield
        finally:
            with torch.no_grad():
                for placement, (half, gradient) in zip(self._masters, own):
                    placement.value.grad = None
                    half.copy_(placement.master)
                    placement.value.data = half
                    placement.value.grad = gradient

    @contextlib.contextmanager
    def _typed_as_masters(self) -> Iterator[None]:
        """Inside, parameters of 16 bits are of float32. No value changes: the engine may have written masters that CHANGED will tell of later."""
        halves = [placement.value.data for placement in self._masters]
        for placement in self._masters:
            placement.value.data = placement.master
        try:
            yield
        finally:
            for placement, half in zip(self._masters, halves):
                placement.value.data = half

    def before_read(self) -> None:
        self._check_all()
        self._copies.to_shared()

    def after_write(self) -> None:
        self._copies.from_shared()

    @contextlib.contextmanager
    def evaluating(self) -> Iterator[None]:
        self._check_all()
        with evaluating(self._module):
            yield

    def save(self) -> bytes:
        """The optimizer's state, the state of torch's random numbers, and what the vectors do not have: buffers of integers that the program has
        changed, and the values that the vectors have rounded."""
        optimizer: Any = self._optimizer
        state: Dict[str, Any] = {"worker": self._worker, "random": torch.get_rng_state(), "buffers": self._integers.changed(),
                                 "unrounded": {p.name: p.value.detach() for p in self._all if p.value.dtype == torch.float64}}
        if hasattr(optimizer, "state_dict"):
            state["optimizer"] = optimizer.state_dict()
        if self._gpus():
            state["random_cuda"] = {gpu: torch.cuda.get_rng_state(gpu) for gpu in self._gpus()}
        return _state.encode(state, _to_array)

    def load(self, state: bytes) -> None:
        """Random numbers go on where they were only for the worker that saved: two workers must not draw the same ones."""
        saved = _state.decode(state, _from_array)
        optimizer: Any = self._optimizer
        if "optimizer" in saved and hasattr(optimizer, "load_state_dict"):
            with self._typed_as_masters():  # it casts the state to the parameters' type
                optimizer.load_state_dict(saved["optimizer"])
        self._integers.load(saved.get("buffers", {}))  # states of before have neither
        for placement in self._all:
            if placement.name in saved.get("unrounded", {}):
                placement.unround(saved["unrounded"][placement.name])
        if saved["worker"] == self._worker:
            torch.set_rng_state(saved["random"])
            self._load_random_of_gpus(saved.get("random_cuda", {}))

    def _gpus(self) -> List[int]:
        """Those that have the model. A question about another one would open it."""
        return sorted({placement.value.device.index for placement in self._all if placement.value.device.type == "cuda"})

    def _load_random_of_gpus(self, saved: Any) -> None:
        gpus = self._gpus()
        if not gpus:
            return
        if isinstance(saved, torch.Tensor):  # of Troupe 0.1: of one
            saved = {gpus[0]: saved}
        # A resumed worker may have another GPU than before: the first one goes on where the first one was.
        for gpu, state in zip(gpus, saved.values()):
            torch.cuda.set_rng_state(state, gpu)


def _to_array(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return None
    host = value.detach().cpu()
    if is_half(host):
        host = host.float()
    if host.layout == torch.sparse_coo:  # of an embedding's optimizer: as it is, for sums in the same order
        return _state.Sparse(host._indices().numpy(), host._values().numpy(), tuple(host.shape), host.is_coalesced())
    return host.numpy()


def _from_array(array: Any) -> torch.Tensor:
    if not isinstance(array, _state.Sparse):
        return torch.from_numpy(array.copy())
    tensor = torch.sparse_coo_tensor(torch.from_numpy(array.indices.copy()), torch.from_numpy(array.values.copy()), array.shape)
    return tensor.coalesce() if array.merged else tensor


@contextlib.contextmanager
def scaled(optimizer: Any, factor: float) -> Iterator[None]:
    """Inside, all learning rates are multiplied by `factor`."""
    if factor == 1:
        yield
        return
    rates = [group["lr"] for group in optimizer.param_groups]
    for group, rate in zip(optimizer.param_groups, rates):
        group["lr"] = rate * factor
    try:
        yield
    finally:
        for group, rate in zip(optimizer.param_groups, rates):
            group["lr"] = rate


@contextlib.contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Inside, the module is in evaluation mode and no gradients are computed; afterwards each of its parts is in the mode that it had."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, training in modes:
            part.training = training


def saved_by_a_run(module: torch.nn.Module) -> "tuple[set[str], set[str]]":
    """Names of the parameters and of the statistics that a run's checkpoint has of this module, if nothing is frozen otherwise than now."""
    return set(_trained(module)), set(_statistics(module))
