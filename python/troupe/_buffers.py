"""Buffers that are no floating-point numbers, such as a count of batches: each worker has its own, and its state keeps them."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Tuple

import torch

TYPES = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


class IntegerBuffers:
    """Of the `state_dict` of a module. Those that the program never writes, such as tables, are not saved: the program makes them again."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module
        self._first: Dict[str, Tuple[Any, int]] = {name: (value, _version(value)) for name, value in self._now().items()}

    def _now(self) -> Dict[str, Any]:
        saved = set(self._module.state_dict())
        return {name: value for name, value in self._module.named_buffers() if name in saved and value.dtype in TYPES and not value.is_meta}

    def changed(self) -> Dict[str, torch.Tensor]:
        """Written in place or replaced since the beginning."""
        now = self._now()
        return {name: value for name, value in now.items()
                if name not in self._first or self._first[name][0] is not value or self._first[name][1] != _version(value)}

    def load(self, saved: Mapping[str, torch.Tensor]) -> None:
        """What fits; a buffer of another shape now is the program's own affair."""
        with torch.no_grad():
            for name, value in self._now().items():
                if name in saved and saved[name].shape == value.shape:
                    value.copy_(saved[name])


def _version(value: Any) -> int:
    """Grows with each write in place."""
    return 0 if value.is_inference() else int(value._version)
