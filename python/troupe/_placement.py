"""Where one parameter or buffer of torch lives, and where the run's vectors have it."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Optional, Sequence

import torch

PORTABLE = 1  #: cudaHostRegisterPortable: pinned for every GPU


def is_half(value: torch.Tensor) -> bool:
    return value.is_floating_point() and value.element_size() < 4


def on_host(value: torch.Tensor) -> bool:
    return value.device.type == "cpu"


def can_be_view(value: torch.Tensor) -> bool:
    return value.dtype == torch.float32 and on_host(value) and value.layout == torch.strided


class Placement:
    """One of three:

    view    float32 on the CPU: the tensor itself is a view of the vector. Nothing is ever copied.
    master  a parameter of 16 bits: `master` is its float32 value, on its device; on the CPU that is the vector's part itself. The optimizer steps
            on the master, and the parameter is its rounding.
    mirror  anything else of floating point (float32 on a GPU, float64): the vector has a copy.

    Thread rule: the program's thread. Keeps `value`, the program's tensor."""

    def __init__(self, name: str, value: torch.Tensor, shared: torch.Tensor, trained: bool) -> None:
        self.name = name
        self.value = value
        self.shared = shared  #: the vector's part
        self.kind = "view" if can_be_view(value) else "master" if trained and is_half(value) else "mirror"
        self.shape = value.shape
        with torch.no_grad():
            shared.copy_(value)
            self.master = value.detach()  # the newest float values, on the tensor's device
            if self.kind == "master":
                self.master = shared if on_host(value) else value.detach().float()
            if self.kind == "view":
                value.data = shared
        self.address = value.data_ptr()

    def check(self) -> None:
        """RuntimeError names a tensor that is another one than at join()."""
        value = self.value
        if value.shape != self.shape:
            raise RuntimeError(f"{self.name} has shape {tuple(value.shape)} now, and {tuple(self.shape)} at join(): a run's tensors keep theirs")
        if self.kind == "view" and value.data_ptr() != self.address:
            raise moved(self.name)

    def fold(self) -> None:
        """What the program itself wrote into a parameter of 16 bits goes into its master."""
        if self.kind == "master":
            other = self.master.to(self.value.dtype) != self.value.detach()
            self.master.copy_(torch.where(other, self.value.detach().float(), self.master))

    def to_shared(self) -> None:
        self.check()
        if self.kind == "view":
            return
        self.fold()
        if self.kind == "mirror":
            self.shared.copy_(self.value.detach(), non_blocking=True)
        elif self.master is not self.shared:
            self.shared.copy_(self.master, non_blocking=True)

    def unround(self, saved: torch.Tensor) -> None:
        """Takes the saved values where the vector has their rounding: others have not changed them since."""
        value = self.value.detach()
        if saved.shape == value.shape and saved.dtype == value.dtype:
            same = saved.to(self.shared.dtype) == self.shared
            value.copy_(torch.where(same.to(value.device), saved.to(value.device), value))

    def from_shared(self) -> None:
        self.check()
        if self.kind == "master" and self.master is not self.shared:
            self.master.copy_(self.shared, non_blocking=True)
        if self.kind != "view":
            self.value.detach().copy_(self.master if self.kind == "master" else self.shared, non_blocking=True)


def moved(name: str) -> RuntimeError:
    return RuntimeError(f"{name} does not lie in the run's memory any more: something replaced its data after join() (model.to(…), model.half(), "
                        "x.data = …). Do that before join(), or write in place: x.copy_(…)")


class Copies:
    """Copies between tensors and vectors, those of a GPU on a stream of their own and through pinned memory."""

    def __init__(self, placements: Sequence[Placement]) -> None:
        self._groups: Dict[torch.device, List[Placement]] = {}
        for placement in placements:
            if placement.kind != "view":
                self._groups.setdefault(placement.value.device, []).append(placement)
        cuda: Any = torch.cuda  # its functions have no types in torch 1.13
        self._streams = {device: cuda.Stream(device) for device in self._groups if device.type == "cuda"}

    def pin(self, floats: torch.Tensor) -> None:
        """Registers a vector with CUDA, if some tensor is there. Where CUDA refuses, copies work without, slower."""
        device = next(iter(self._streams), None)
        if device is None or floats.numel() == 0:
            return
        cuda: Any = torch.cuda
        with cuda.device(device):
            refused = int(cuda.cudart().cudaHostRegister(floats.data_ptr(), floats.numel() * floats.element_size(), PORTABLE))
            if refused:
                # CUDA keeps the error for the thread's next launch, which would fail in the program's own code: this one takes it.
                with contextlib.suppress(RuntimeError):
                    torch.zeros(1, device=device).add_(1)

    def to_shared(self) -> None:
        """When this returns, the vectors have the newest values."""
        for device, placements in self._groups.items():
            with torch.no_grad(), self._beside(device):
                for placement in placements:
                    placement.to_shared()

    def from_shared(self) -> None:
        """When this returns, the vectors may be written again."""
        for device, placements in self._groups.items():
            with torch.no_grad(), self._beside(device):
                for placement in placements:
                    placement.from_shared()

    @contextlib.contextmanager
    def _beside(self, device: torch.device) -> Iterator[None]:
        stream: Optional[Any] = self._streams.get(device)
        if stream is None:
            yield
            return
        stream.wait_stream(torch.cuda.current_stream(device))  # which made the values, and reads them
        with torch.cuda.stream(stream):
            yield
        stream.synchronize()
