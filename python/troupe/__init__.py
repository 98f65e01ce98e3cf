"""Troupe in your own training program: join() makes it a worker of a run, and nothing changes when it runs alone."""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict, Optional

from troupe._frames import Frames
from troupe._model import Model, NumpyModel
from troupe.run import AloneRun, JoinedRun, Run, RunEnded, connect

__all__ = ["join", "Run", "RunEnded"]
__version__ = "0.2.0"


def join(model: Any = None, optimizer: Any = None, *, params: Optional[Dict[str, Any]] = None,
         update: Optional[Callable[..., None]] = None, seed: int = 0) -> Run:
    """Makes `model` (a torch.nn.Module) with its optimizer, or `params` (arrays of float32 by name) with a function that steps, part of a
    run. Parameters then live in memory that the run shares: keep using `model`, or `params`, whose arrays are replaced by views."""
    joined: Model
    if (model is None) == (params is None):
        raise TypeError("join() takes a model, or params=…")
    if params is not None:
        joined = NumpyModel(params, update)
    else:
        from troupe._torch import TorchModel
        joined = TorchModel(model, optimizer)
    name = os.environ.get("TROUPE_GUEST")
    if not name:
        return AloneRun(joined, seed)
    run = JoinedRun(joined, Frames(connect(name)), os.environ.get("TROUPE_TOKEN", ""))
    hook = sys.excepthook

    def tell(kind: Any, error: Any, trace: Any) -> None:
        run.failed(error)
        hook(kind, error, trace)

    sys.excepthook = tell
    return run
