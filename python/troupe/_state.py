"""An optimizer's state as bytes: a safetensors file, whose metadata have the structure around the tensors as JSON. Unlike a pickle, nothing in it
is executed when it is read."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, NamedTuple, Tuple

import numpy

from troupe import _safetensors as safetensors

KEY = "troupe"  #: of the metadata


class Sparse(NamedTuple):
    """A tensor by the places of its values: indices [dimension, value], values [value, …]. A place that comes twice has the sum, until it is merged."""

    indices: Any
    values: Any
    shape: Tuple[int, ...]
    merged: bool  #: each place comes once, in order


def _plain(value: Any, tensors: Dict[str, Any], to_array: Callable[[Any], Any], path: str) -> Any:
    array = value if isinstance(value, numpy.ndarray) else to_array(value)
    if isinstance(array, Sparse):
        return {"sparse": {name: _plain(part, tensors, to_array, f"{path}.{name}") for name, part in array._asdict().items()}}
    if array is not None:
        name = path if path not in tensors else f"{path}#{len(tensors)}"  # keys "a.b", 1 and "1" may lead to one path
        while name in tensors:
            name += "#"
        tensors[name] = array
        return {"tensor": name}
    if isinstance(value, numpy.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, (list, tuple)):
        items = [_plain(item, tensors, to_array, f"{path}.{n}") for n, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, dict):
        entries = []
        for key, item in value.items():
            if not isinstance(key, (str, int)):
                raise TypeError(f"the optimizer's state has a key of {type(key).__name__} at {path}: str or int can be saved")
            entries.append([key, _plain(item, tensors, to_array, f"{path}.{key}")])
        return {"dict": entries}
    raise TypeError(f"the optimizer's state has a {type(value).__name__} at {path}: numbers, strings, tensors, lists and dicts of them can be saved")


def _whole(value: Any, tensors: Dict[str, Any], from_array: Callable[[Any], Any]) -> Any:
    if isinstance(value, list):
        return [_whole(item, tensors, from_array) for item in value]
    if not isinstance(value, dict):
        return value
    (kind, content), = value.items()
    if kind == "tensor":
        return from_array(tensors[content])
    if kind == "sparse":
        return from_array(Sparse(**{name: _whole(part, tensors, lambda array: array) for name, part in content.items()}))
    if kind == "float":
        return float.fromhex(content)
    if kind == "tuple":
        return tuple(_whole(item, tensors, from_array) for item in content)
    if kind == "dict":
        return {key: _whole(item, tensors, from_array) for key, item in content}
    raise ValueError(f"an unknown kind of value, {kind!r}")


def encode(state: Any, to_array: Callable[[Any], Any] = lambda value: None) -> bytes:
    """`to_array`: a numpy array or Sparse of a tensor of another library, None for anything else. TypeError names what cannot be saved."""
    tensors: Dict[str, Any] = {}
    structure = _plain(state, tensors, to_array, "state")
    return safetensors.to_bytes(tensors, {KEY: json.dumps(structure)})


def decode(data: bytes, from_array: Callable[[Any], Any] = lambda array: array) -> Any:
    """`from_array` takes what `to_array` gave. ValueError: these bytes are no such state."""
    tensors, metadata = safetensors.from_bytes(data)
    try:
        return _whole(json.loads(metadata[KEY]), tensors, from_array)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not the state of an optimizer: {error!r}") from error
