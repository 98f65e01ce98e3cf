"""Run: what join() returns. Alone: the program trains as it always did. Under `troupe launch`: one of the run's workers (troupe/_joined.py)."""

from __future__ import annotations

import contextlib
import operator
import sys
from typing import Any, Callable, ContextManager, Dict, Iterator, Mapping, NamedTuple, Optional

import numpy

Metrics = Mapping[str, float]


class RunEnded(SystemExit):
    """The run ended, or refused this program; the exit code is the run's. The reason has been printed."""


class Plan(NamedTuple):
    samples: int
    size: int
    epochs: int


class Run:
    """One program's part of a run. Thread rule: the thread that called join()."""

    #: "worker", or "evaluator": the program that evaluates the run's model and gets no batches.
    role: str = "worker"
    #: This worker's number, and how many there are. The evaluator's number is 0, as that of the first worker: see is_main.
    worker: int = 0
    workers: int = 1
    #: The run's, or join()'s.
    seed: int = 0
    #: The epoch of the current batch, from 0.
    epoch: int = 0
    #: How far the run is: from 0, below 1. Workers that step together have the same progress in a step; else it is that of the batch, whichever
    #: worker has it. For learning-rate schedules.
    progress: float = 0.0

    @property
    def is_main(self) -> bool:
        """Whether this process saves the model: in a run the evaluator, which has the run's model after run.evaluate; without one, the only
        process."""
        return self.role == "evaluator"

    _plan: Optional[Plan] = None
    _over = False  # the loop over batches has ended
    _noted = False

    def batches(self, samples: int, size: int, epochs: int = 1) -> Iterator[Any]:
        """Batches of at most `size` sample numbers below `samples` (arrays of int64): each sample once per epoch over all workers. After each
        batch comes one run.step. `troupe launch --epochs` overrides `epochs`. One loop in a program: it has all epochs."""
        values = []
        for name, value in (("samples", samples), ("size", size), ("epochs", epochs)):
            try:
                number = operator.index(value)
            except TypeError:
                raise TypeError(f"run.batches: {name} is {value!r}: an integer is needed") from None
            if number < 1:
                raise ValueError(f"run.batches: {name} is {number}: at least 1 is needed")
            values.append(number)
        plan = Plan(*values)
        if self._plan is None:
            self._plan = plan
            self._planned(plan)
            return self._loop(plan)
        if plan != self._plan:
            raise ValueError(f"run.batches: a second loop, with {plan}, after one with {self._plan}: a run has one plan")
        if not self._over:
            raise RuntimeError("run.batches: a second loop began before the first one ended")
        if not self._noted:
            print("troupe: a second loop over run.batches has no batches: write run.batches(…, epochs=N), and run.epoch says where it is",
                  file=sys.stderr)
            self._noted = True
        return iter(())

    def step(self, loss: Any, gradients: Optional[Mapping[str, Any]] = None) -> None:
        """After loss.backward(): the optimizer's step, and what the run's strategy does after one. `loss`: the batch's mean. `gradients`: of a
        model of arrays, by the parameters' names."""
        raise NotImplementedError

    def evaluate(self, evaluation: Callable[[], Metrics]) -> Optional[Metrics]:
        """After the loop. Alone: calls `evaluation`, which returns numbers by name, and returns them. In a run the evaluator's process calls it
        whenever the run is to be evaluated, and returns the last numbers; in a worker's nothing happens, and the result is None. A module is in
        evaluation mode meanwhile, without gradients."""
        raise NotImplementedError

    def _planned(self, plan: Plan) -> None:
        pass

    def _loop(self, plan: Plan) -> Iterator[Any]:
        raise NotImplementedError


class Alone:
    """What a run of one program alone does with its model: only what the program would."""

    def step(self, gradients: Optional[Mapping[str, Any]]) -> None:
        """One step of the program's optimizer, if join() was given one."""

    def evaluating(self) -> ContextManager[None]:
        return contextlib.nullcontext()


class AloneModule(Alone):
    def __init__(self, module: Any, optimizer: Any) -> None:
        self._module = module
        self._optimizer = optimizer

    def step(self, gradients: Optional[Mapping[str, Any]]) -> None:
        if gradients is not None:
            raise TypeError("run.step(loss) of a torch model takes no gradients: backward() leaves them in the parameters")
        if self._optimizer is not None:
            self._optimizer.step()

    def evaluating(self) -> ContextManager[None]:
        from troupe._torch import evaluating
        return evaluating(self._module)


class AloneArrays(Alone):
    def __init__(self, parameters: Dict[str, Any], step: Optional[Callable[..., None]]) -> None:
        self._parameters = parameters
        self._step = step

    def step(self, gradients: Optional[Mapping[str, Any]]) -> None:
        if self._step is not None:
            if gradients is None:
                raise ValueError("run.step(loss, gradients) needs the gradients, by the parameters' names: join() was given a step function")
            self._step(self._parameters, gradients, 1.0)


class AloneRun(Run):
    """Without `troupe launch`: every sample once per epoch in random order, an optimizer step after each batch."""

    def __init__(self, model: Alone, seed: int) -> None:
        self._model = model
        self.seed = seed
        self._open = False

    @property
    def is_main(self) -> bool:
        return True

    def _loop(self, plan: Plan) -> Iterator[Any]:
        for self.epoch in range(plan.epochs):
            order = numpy.random.default_rng([self.seed, self.epoch]).permutation(plan.samples)
            for first in range(0, plan.samples, plan.size):
                self.progress = (self.epoch * plan.samples + first) / (plan.epochs * plan.samples)
                self._open = True
                yield order[first : first + plan.size]
                if self._open:
                    raise left_without_step()
        self._over = True

    def step(self, loss: Any, gradients: Optional[Mapping[str, Any]] = None) -> None:
        if not self._open:
            raise step_without_batch()
        self._open = False
        self._model.step(gradients)

    def evaluate(self, evaluation: Callable[[], Metrics]) -> Optional[Metrics]:
        with self._model.evaluating():
            return evaluation()


def left_without_step() -> RuntimeError:
    return RuntimeError("a batch was left without run.step(loss): every batch of run.batches needs one (a DataLoader over it: num_workers=0)")


def step_without_batch() -> RuntimeError:
    return RuntimeError("run.step(loss) without a batch: call it once for each batch of run.batches")
