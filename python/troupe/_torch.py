"""A torch.nn.Module and its optimizer as a Model. Only public interfaces of torch 1.13 and 2.x."""

from __future__ import annotations

import io
from typing import Any, Dict, List, Optional, Tuple

import torch

from troupe._vectors import Tensor, Vector


def _floating(module: torch.nn.Module) -> List[Tuple[str, torch.Tensor]]:
    """Buffers that workers average: those of floating point that belong to the state."""
    saved = set(module.state_dict())
    return [(name, value) for name, value in module.named_buffers() if name in saved and value.is_floating_point()]


class TorchModel:
    """Trainable parameters by the state_dict's names, tied ones once. Parameters of float32 on the CPU become views of the run's vectors;
    others (another device, another type) are mirrored there: copied when the engine is about to read, and after it wrote. A mirrored
    parameter of 16 bits keeps the float32 value of the vector as its master as long as the program's own steps do not change it."""

    def __init__(self, module: torch.nn.Module, optimizer: Optional[torch.optim.Optimizer]) -> None:
        self.module = module
        self.optimizer = optimizer
        self._trained: Dict[str, torch.nn.Parameter] = {
            name: value for name, value in module.named_parameters() if value.requires_grad}
        self._buffers = dict(_floating(module))
        self._parameters: Optional[Vector] = None
        self._gradients: Optional[Vector] = None
        self._statistics: Optional[Vector] = None
        self._views: Dict[str, torch.Tensor] = {}
        self._gradient_views: Dict[str, torch.Tensor] = {}
        self._statistic_views: Dict[str, torch.Tensor] = {}
        self._own: Dict[str, torch.Tensor] = {}
        self._was_training = True

    def tensors(self) -> List[Tensor]:
        return [Tensor(name, tuple(value.shape)) for name, value in self._trained.items()]

    def statistics(self) -> List[Tensor]:
        return [Tensor(name, tuple(value.shape)) for name, value in self._buffers.items()]

    def bind(self, parameters: Vector, gradients: Optional[Vector], statistics: Vector) -> None:
        self._parameters, self._gradients, self._statistics = parameters, gradients, statistics
        with torch.no_grad():
            for name, value in self._trained.items():
                view = torch.from_numpy(parameters[name])
                view.copy_(value)
                self._views[name] = view
                if _shares(value):
                    value.data = view
                if gradients is not None:
                    self._gradient_views[name] = torch.from_numpy(gradients[name])
            for name, value in self._buffers.items():
                view = torch.from_numpy(statistics[name])
                view.copy_(value)
                self._statistic_views[name] = view

    def before_read(self) -> None:
        with torch.no_grad():
            for name, value in self._trained.items():
                if not _shares(value) and not torch.equal(self._views[name].to(value.dtype), value.cpu()):
                    self._views[name].copy_(value)
            for name, value in self._buffers.items():
                self._statistic_views[name].copy_(value)

    def after_write(self) -> None:
        with torch.no_grad():
            for name, value in self._trained.items():
                if not _shares(value):
                    value.copy_(self._views[name])
            for name, value in self._buffers.items():
                value.copy_(self._statistic_views[name])

    def give_gradients(self) -> None:
        """Copies the gradients into the vector, and makes the optimizer read them there: what comes back is the sum of all workers."""
        if self._gradients is None:
            return
        with torch.no_grad():
            for name, value in self._trained.items():
                view = self._gradient_views[name]
                if value.grad is None:
                    view.zero_()
                elif value.grad.data_ptr() != view.data_ptr():
                    view.copy_(value.grad)
                if _shares(value):
                    value.grad = view

    def optimize(self, number: int, factor: float) -> None:
        if self.optimizer is None:
            raise ValueError("join() was given no optimizer, and the strategy asks for a local step")
        if self._gradients is not None:
            with torch.no_grad():
                for name, value in self._trained.items():
                    if not _shares(value):
                        value.grad = self._gradient_views[name].to(device=value.device, dtype=value.dtype)
        if factor == 1:
            self.optimizer.step()
            return
        rates = [group["lr"] for group in self.optimizer.param_groups]
        for group in self.optimizer.param_groups:
            group["lr"] *= factor
        try:
            self.optimizer.step()
        finally:
            for group, rate in zip(self.optimizer.param_groups, rates):
                group["lr"] = rate

    def look_at(self, parameters: Vector, statistics: Vector) -> None:
        self._was_training = self.module.training
        with torch.no_grad():
            for name, value in self._trained.items():
                self._own[name] = value.data
                value.data = torch.from_numpy(parameters[name]).to(device=value.device, dtype=value.dtype)
            for name, value in self._buffers.items():
                self._own[name] = value.clone()
                value.copy_(torch.from_numpy(statistics[name]))
        self.module.eval()

    def look_back(self) -> None:
        with torch.no_grad():
            for name, value in self._trained.items():
                value.data = self._own[name]
            for name, value in self._buffers.items():
                value.copy_(self._own[name])
        self._own = {}
        self.module.train(self._was_training)

    def save(self) -> bytes:
        if self.optimizer is None:
            return b""
        state = io.BytesIO()
        torch.save(self.optimizer.state_dict(), state)
        return state.getvalue()

    def load(self, state: bytes) -> None:
        if self.optimizer is not None and state:
            self.optimizer.load_state_dict(torch.load(io.BytesIO(state)))


def _shares(value: torch.Tensor) -> bool:
    """Whether a parameter can be a view of a float32 vector in host memory."""
    return value.dtype == torch.float32 and value.device.type == "cpu"
