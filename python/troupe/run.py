"""Run: what join() returns. Alone: the program trains as it always did. Under `troupe launch`: one of the run's workers."""

from __future__ import annotations

import os
import socket
import sys
import time
import traceback
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

import numpy

from troupe import _frames as frames
from troupe._model import Model, NumpyModel
from troupe._vectors import Vector

PROTOCOL = 1
Metrics = Mapping[str, float]


class RunEnded(SystemExit):
    """The run has ended, or refused this program; the exit code is the run's."""


class Run:
    """One program's part of a run. Thread rule: the thread that called join()."""

    #: This worker's number and how many there are.
    worker: int = 0
    workers: int = 1
    epoch: int = 0

    def batches(self, samples: int, size: int, epochs: int = 1) -> Iterator[Any]:
        raise NotImplementedError

    def step(self, loss: Any, gradients: Optional[Mapping[str, Any]] = None) -> None:
        raise NotImplementedError

    def evaluate(self, evaluation: Callable[[], Metrics]) -> Optional[Metrics]:
        raise NotImplementedError


def _number(loss: Any) -> float:
    return float(loss.detach()) if hasattr(loss, "detach") else float(loss)


class AloneRun(Run):
    """Without `troupe launch`: every sample once per epoch in random order, an optimizer step after each batch."""

    def __init__(self, model: Model, seed: int) -> None:
        self._model = model
        self._seed = seed
        self._steps = 0

    def batches(self, samples: int, size: int, epochs: int = 1) -> Iterator[Any]:
        for self.epoch in range(epochs):
            order = numpy.random.default_rng([self._seed, self.epoch]).permutation(samples)
            for first in range(0, samples, size):
                yield order[first : first + size]

    def step(self, loss: Any, gradients: Optional[Mapping[str, Any]] = None) -> None:
        self._steps += 1
        if gradients is not None and isinstance(self._model, NumpyModel):
            self._model.give(gradients)
        self._model.optimize(self._steps, 1.0)

    def evaluate(self, evaluation: Callable[[], Metrics]) -> Optional[Metrics]:
        return evaluation()


class JoinedRun(Run):
    """Under `troupe launch`. Between frames of the engine the program computes; it never waits for a time of its own."""

    def __init__(self, model: Model, link: frames.Frames, token: str) -> None:
        self._model = model
        self._link = link
        self._evaluation: Optional[Callable[[], Metrics]] = None
        self._lease: Optional[int] = None
        self._count = 0
        self._began = 0.0
        self._ended: Optional[Dict[str, Any]] = None
        self._next: Optional[bytes] = None
        self._look: List[Vector] = []
        tensors, statistics = model.tensors(), model.statistics()
        link.send_json(frames.HELLO, {
            "protocol": PROTOCOL, "token": token, "library": "troupe-python", "pid": os.getpid(),
            "tensors": [[t.name, list(t.shape)] for t in tensors],
            "statistics": [[t.name, list(t.shape)] for t in statistics]})
        welcome = self._expect(frames.WELCOME, "WELCOME")
        self.worker, self.workers = int(welcome["worker"]), int(welcome["workers"])
        self._wants_gradients = bool(welcome["gradients"])
        self._tensors, self._statistic_tensors = tensors, statistics
        self._shape = (int(welcome["floats"]), list(map(int, welcome["offsets"])),
                       int(welcome["statistics_floats"]), list(map(int, welcome["statistics_offsets"])))
        parameters, gradients, statistic_values = link.descriptors(3)
        floats, offsets, statistics_floats, statistics_offsets = self._shape
        gradient_vector = Vector(gradients, floats if self._wants_gradients else 0, tensors if self._wants_gradients else [],
                                 offsets)
        model.bind(Vector(parameters, floats, tensors, offsets), gradient_vector if self._wants_gradients else None,
                   Vector(statistic_values, statistics_floats, statistics, statistics_offsets))
        model.before_read()
        link.send(frames.READY)

    def _expect(self, kind: int, name: str) -> Dict[str, Any]:
        got, payload = self._link.receive()
        if got == frames.END:
            self._end(frames.parse_json("END", payload))
        if got != kind:
            raise frames.ProtocolError(f"frame {got} came, {name} was expected")
        return dict(frames.parse_json(name, payload))

    def batches(self, samples: int, size: int, epochs: int = 1) -> Iterator[Any]:
        self._link.send_json(frames.PLAN, {"samples": samples, "batch": size, "epochs": epochs})
        while True:
            payload = self._serve()
            if payload is None:
                return
            lease, self.epoch, _, _, numbers = frames.parse_step(payload)
            batch = numpy.frombuffer(numbers, "<u8").astype(numpy.int64)
            if batch.size and batch.max() >= samples:
                raise frames.ProtocolError(f"sample {batch.max()} of {samples}")
            self._lease, self._count, self._began = lease, len(batch), time.perf_counter()
            yield batch
            if self._lease is not None:
                raise RuntimeError("a batch was left without run.step(loss): every batch of run.batches needs one")

    def step(self, loss: Any, gradients: Optional[Mapping[str, Any]] = None) -> None:
        if self._lease is None:
            raise RuntimeError("run.step(loss) without a batch of run.batches")
        if gradients is not None and isinstance(self._model, NumpyModel):
            self._model.give(gradients)
        self._model.give_gradients()
        lease, self._lease = self._lease, None
        self._link.send_done(lease, _number(loss), self._count, time.perf_counter() - self._began)
        self._next = self._serve()

    def evaluate(self, evaluation: Callable[[], Metrics]) -> Optional[Metrics]:
        """Says how this program evaluates its model. Called before the loop: at every evaluation of the run. After it: at the last one."""
        self._evaluation = evaluation
        if self._ended is None and self._finished:
            self._link.send(frames.WAITS)
            self._serves_on = True
            self._serve()
        return None

    _finished = False  # no more batches
    _serves_on = False  # the program's loop has ended

    def _serve(self) -> Optional[bytes]:
        """Does what the engine asks until it gives a batch (its payload) or there are no more (None)."""
        if self._next is not None or self._finished and not self._serves_on:
            payload, self._next = self._next, None
            return payload
        while self._ended is None:
            kind, payload = self._link.receive()
            if kind == frames.LAST:
                self._finished = True
                return None
            if kind == frames.STEP:
                return payload
            if kind == frames.OPTIMIZE:
                self._model.optimize(*frames.parse_optimize(payload))
                self._link.send(frames.STEPPED)
            elif kind == frames.CHANGED:
                self._model.after_write()
            elif kind == frames.SYNC:
                self._model.before_read()
                self._link.send(frames.SYNCED)
            elif kind == frames.EVALUATE:
                self._evaluate()
            elif kind == frames.END:
                self._ended = dict(frames.parse_json("END", payload))
                if int(self._ended.get("code", 0)) != 0:
                    self._end(self._ended)
            else:
                raise frames.ProtocolError(f"an unknown frame of type {kind}")
        return None

    def _evaluate(self) -> None:
        if not self._look:
            parameters, statistics = self._link.descriptors(2)
            floats, offsets, statistics_floats, statistics_offsets = self._shape
            self._look = [Vector(parameters, floats, self._tensors, offsets),
                          Vector(statistics, statistics_floats, self._statistic_tensors, statistics_offsets)]
        if self._evaluation is None:
            self._link.send_json(frames.EVALUATED, {"none": "the program has not called run.evaluate"})
            return
        self._model.look_at(*self._look)
        try:
            metrics = {str(name): float(value) for name, value in self._evaluation().items()}
        finally:
            self._model.look_back()
        self._link.send_json(frames.EVALUATED, {"metrics": metrics})

    def _end(self, end: Mapping[str, Any]) -> None:
        print(f"troupe: the run ended: {end.get('reason', '')}", file=sys.stderr)
        raise RunEnded(int(end.get("code", 1)))

    def failed(self, error: BaseException) -> None:
        """Tells the engine why this program ends; errors of the connection do not matter any more."""
        try:
            self._link.send_json(frames.FAILED, {"error": f"{type(error).__name__}: {error}",
                                                 "traceback": "".join(traceback.format_exception(None, error, error.__traceback__))[-65536:]})
        except (OSError, frames.EngineGone):
            pass


def connect(name: str) -> socket.socket:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.connect(b"\0" + name.encode())
    return link
