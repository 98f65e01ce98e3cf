"""Troupe in your own training program: join() makes it a worker of a run, and nothing changes when it runs alone.

    run = troupe.join(model, optimizer)
    for batch in run.batches(len(dataset), size=64, epochs=3):
        loss = F.cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad(); loss.backward()
        run.step(loss)
    run.evaluate(lambda: {"accuracy": accuracy(model)})
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Optional

from troupe._checkpoint import Loaded, load
from troupe._version import __version__
from troupe.run import Alone, AloneArrays, AloneModule, AloneRun, Run, RunEnded

__all__ = ["join", "load", "local_worker", "Loaded", "Run", "RunEnded", "__version__"]

_joined = False


def local_worker() -> int:
    """This worker's number among those of its machine, from 0, also before join(): for the choice of a GPU. Alone: 0."""
    return int(os.environ.get("TROUPE_LOCAL_WORKER") or 0)


def join(model: Any = None, optimizer: Any = None, *, params: Optional[Dict[str, Any]] = None,
         step: Optional[Callable[..., None]] = None, seed: int = 0, overlap: bool = False, accumulate: int = 1) -> Run:
    """Makes `model`, a torch.nn.Module, with its optimizer part of a run; or `params`, numpy arrays of float32 by name, with `step(params, gradients,
    factor)`, which changes them in place. Once in a program, after the model is on its device. Parameters then live in memory that the run
    shares: go on with `model`, or with the arrays in `params`, which are others than before.

    Without an optimizer (without `step`) the program updates its parameters itself before run.step; then strategies that exchange
    gradients refuse it.

    seed: of the order of samples, alone. overlap: gradients are sent while backward goes on: then nothing may change them between backward and
    run.step (no clipping), and `accumulate` must say how many backward passes each step has."""
    global _joined
    if (model is None) == (params is None):
        raise TypeError("join() takes a model, or params=…")
    if params is not None and optimizer is not None:
        raise TypeError("join(params=…) takes step=…, not an optimizer")
    if model is not None and step is not None:
        raise TypeError("join(model) takes an optimizer, not step=…")
    if accumulate < 1:
        raise ValueError(f"join: accumulate is {accumulate}: at least 1 is needed")
    if _joined:
        raise RuntimeError("join() was called before: a program joins a run once")
    if not os.environ.get("TROUPE_GUEST"):
        alone: Alone = AloneArrays(params, step) if params is not None else AloneModule(model, optimizer)
        return AloneRun(alone, seed)
    from troupe._joined import join_run
    if params is not None:
        from troupe._numpy import NumpyModel
        joined: Run = join_run(NumpyModel(params, step), os.environ)
    else:
        from troupe._torch import TorchModel
        joined = join_run(TorchModel(model, optimizer, overlap, accumulate), os.environ)
    _joined = True
    return joined
