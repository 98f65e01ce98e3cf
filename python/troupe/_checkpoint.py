"""Models of a run's checkpoints (docs/formats/checkpoint.md)."""

from __future__ import annotations

import math
import os
import pathlib
import re
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Set, Tuple

import numpy

from troupe import _safetensors as safetensors

#: What checkpoints have beside the model.
_OTHERS = re.compile(r"(optimizer|server\.state\.\d+|center|guest|worker\.\d+)\.")


@dataclass(frozen=True)
class Loaded:
    """What load() did."""

    path: str  #: of the file
    step: int  #: of the run
    names: Tuple[str, ...]  #: of the tensors that were set
    refused: Tuple[str, ...]  #: newer files that are not whole, each with the reason


def _candidates(run: pathlib.Path) -> List[pathlib.Path]:
    """Newest first. FileNotFoundError: there is none."""
    if run.is_file():
        return [run]
    folder = run / "checkpoints" if (run / "checkpoints").is_dir() else run
    found = [(int(m[1]), path) for path in folder.glob("step-*.safetensors") if (m := re.fullmatch(r"step-(\d+)\.safetensors", path.name))]
    if not found:
        raise FileNotFoundError(f"{run}: no checkpoints/step-*.safetensors there: give a run's directory, or a file of safetensors")
    return [path for _, path in sorted(found, reverse=True)]


def _open(paths: List[pathlib.Path]) -> "Tuple[safetensors.File, pathlib.Path, List[str]]":
    refused: List[str] = []
    for path in paths:
        try:
            return safetensors.File(path), path, refused
        except (OSError, ValueError) as error:
            refused.append(f"{path}: {error}")
    raise ValueError("; ".join(refused))


def load(model: Any, run: "str | os.PathLike[str]") -> Loaded:
    """Sets the parameters and statistics of `model`, a torch.nn.Module or a dict of numpy arrays, to those of the newest whole checkpoint of a run's
    directory, or of one file. What was frozen in the run, and buffers of integers, are not in it and stay. ValueError names tensors
    that do not fit; then nothing was changed. A run saves no tensors without elements."""
    file, path, refused = _open(_candidates(pathlib.Path(run)))
    with file:
        targets, parameters, statistics = _arrays(model) if isinstance(model, dict) else _tensors(model)
        entries = file.header.entries
        names = [name for name in entries if name in targets]
        wrong = [f"{name} is {list(entries[name][1])} there and {list(targets[name].shape)} here"
                 for name in names if entries[name][1] not in _shapes(tuple(targets[name].shape), name in statistics)]
        wrong += [f"{name} is not of this model" for name in entries if name not in targets and not _OTHERS.match(name)]
        wrong += [f"{name} is not in the file" for name in sorted(parameters | statistics) if name not in entries and 0 not in targets[name].shape]
        if wrong or not names:
            more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
            raise ValueError(f"{path} is not of this model: {'; '.join(wrong[:5]) or 'no tensor has a name of its'}{more}")
        for name in names:
            _set(targets[name], file.read(name))
        step = file.header.metadata.get("step", "0")
    return Loaded(str(path), int(step) if step.isdigit() else 0, tuple(names), tuple(refused))


def _shapes(shape: Tuple[int, ...], is_statistic: bool) -> Tuple[Tuple[int, ...], ...]:
    """What a tensor of this shape may have in a file: older ones have scalars as [1], and statistics as rows."""
    return shape, (math.prod(shape),) if is_statistic else shape or (1,)


def _arrays(model: Mapping[str, Any]) -> Tuple[Dict[str, Any], Set[str], Set[str]]:
    return dict(model), set(model), set()


def _tensors(module: Any) -> Tuple[Dict[str, Any], Set[str], Set[str]]:
    """Everything by name, tied tensors under each of their names; and names of the parameters and of the statistics that a run of this module saves."""
    from troupe._torch import original, saved_by_a_run
    module = original(module)
    return (dict(_named(module)), *saved_by_a_run(module))


def _named(module: Any) -> Iterator[Tuple[str, Any]]:
    for name, value in module.state_dict().items():
        if hasattr(value, "shape"):
            yield name, value


def _set(target: Any, value: Any) -> None:
    value = value.reshape(tuple(target.shape))
    if isinstance(target, numpy.ndarray):
        target[...] = value
    else:
        import torch
        with torch.no_grad():
            target.copy_(torch.from_numpy(value.copy()))
