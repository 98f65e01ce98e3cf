"""A program's part of a run under `troupe launch`: the guest's side of docs/formats/guest.md."""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from typing import Any, Callable, Iterator, Mapping, MutableMapping, Optional

import numpy

from troupe import _frames as frames
from troupe._model import Description, Model
from troupe._vectors import Buckets, Vector, Vectors
from troupe._version import __version__
from troupe.run import Metrics, Plan, Run, RunEnded, left_without_step, step_without_batch

PROTOCOL = 1
MOST_TRACEBACK = 65536  #: characters
CONNECT_S = 60
EXIT_PROTOCOL, EXIT_GONE = 74, 75
BELOW_ONE = 1 - 2.0**-53  #: the greatest float below 1


class JoinedRun(Run):
    """Between frames of the engine the program computes; it waits for nothing but the next frame."""

    def __init__(self, model: Model, link: frames.Frames, token: str) -> None:
        self._model = model
        self._link = link
        self._process = os.getpid()
        self._ended = False  # by END, by a lost connection, or by an error that has been told
        self._has_plan = False  # said PLAN
        self._waiting = False  # said WAITS
        self._answered = False  # DONE was said, and no STEP came since
        self._pending: Optional[frames.Step] = None
        self._current: Optional[frames.Step] = None
        self._count = 0
        self._began = 0.0
        self._evaluation: Optional[Callable[[], Metrics]] = None
        self._metrics: Optional[Metrics] = None
        self._state = frames.StateInPieces()
        self._interrupt: Any = None
        description = model.description()
        with self._guarded():
            self._join(description, token)
        self._watch()

    def _join(self, described: Description, token: str) -> None:
        self._link.send_json(frames.HELLO, {
            "protocol": PROTOCOL, "token": token, "library": f"troupe-python {__version__}", "pid": os.getpid(),
            "tensors": [[t.name, list(t.shape)] for t in described.tensors],
            "statistics": [[t.name, list(t.shape)] for t in described.statistics],
            "optimizer": described.optimizer, "mirrors": described.mirrors, "program": described.fingerprint()})
        kind, payload = self._link.receive()
        if kind == frames.END:
            self._end(frames.parse_json(kind, payload))
            raise RunEnded(0)
        if kind != frames.WELCOME:
            raise frames.ProtocolError(f"{frames.NAMES[kind]} came, WELCOME was expected")
        self._model.bind(self._welcome(frames.parse_json(kind, payload), described))
        self._link.send(frames.READY)

    def _welcome(self, welcome: Mapping[str, Any], described: Description) -> Vectors:
        descriptors = self._link.descriptors(3)
        try:
            self.role = str(welcome["role"])
            self.worker, self.workers, self.seed = int(welcome["worker"]), int(welcome["workers"]), int(welcome["seed"])
            self._epochs = int(welcome.get("epochs") or 0)
            self._exchanges = bool(welcome["gradients"])
            floats, statistics = int(welcome["floats"]), int(welcome["statistics_floats"])
            offsets = [int(offset) for offset in welcome["offsets"]]
            statistics_offsets = [int(offset) for offset in welcome["statistics_offsets"]]
            buckets = [(int(offset), int(count)) for offset, count in welcome["buckets"]]
            self._link.limit_silence(float(welcome["silence_s"]))
            if self.role not in ("worker", "evaluator"):
                raise ValueError(f"role {self.role!r}")
            parameters = Vector(descriptors.pop(0), floats, described.tensors, offsets)
            gradients = None
            if self._exchanges:
                gradients = Vector(descriptors.pop(0), floats, described.tensors, offsets)
            else:
                os.close(descriptors.pop(0))
            averaged = Vector(descriptors.pop(0), statistics, described.statistics, statistics_offsets)
        except (KeyError, TypeError, ValueError, OverflowError, OSError) as error:
            raise frames.ProtocolError(f"WELCOME: {type(error).__name__}: {error}") from error
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        reports = Buckets(buckets, gradients, self._report) if gradients is not None and buckets else None
        return Vectors(parameters, gradients, averaged, reports, self.worker, welcome.get("missing_gradients") == "zeros")

    def _report(self, bucket: int) -> None:
        with self._guarded():
            self._link.send_bucket(bucket)

    def _planned(self, plan: Plan) -> None:
        self._has_plan = True
        with self._guarded():
            self._link.send_json(frames.PLAN, {"samples": plan.samples, "batch": min(plan.size, plan.samples), "epochs": plan.epochs})

    def _loop(self, plan: Plan) -> Iterator[Any]:
        while True:
            if self._pending is None:
                with self._guarded():
                    self._pending = self._serve()
            step, self._pending = self._pending, None
            if step is None:
                return
            batch = numpy.frombuffer(step.numbers, "<u8")
            with self._guarded():
                if len(batch) > plan.size or batch.max() >= plan.samples:
                    raise frames.ProtocolError(f"STEP with {len(batch)} samples up to number {batch.max()}; the plan is {plan}")
            self._current, self._count = step, len(batch)
            self.epoch = step.epoch
            total = max(self._epochs or plan.epochs, 1) * plan.samples
            self.progress = min((step.epoch * plan.samples + step.position) / total, BELOW_ONE)
            self._model.begin_step(self._exchanges and not step.flags & frames.FLAG_OPTIMIZE)
            yield batch.astype(numpy.int64)
            if self._current is not None:
                raise left_without_step()

    def step(self, loss: Any, gradients: Optional[Mapping[str, Any]] = None) -> None:
        step = self._current
        if step is None:
            raise step_without_batch()
        mean = float(loss.detach() if hasattr(loss, "detach") else loss)
        self._model.finish_step(gradients)
        if step.flags & frames.FLAG_OPTIMIZE:
            self._model.optimize(step.factor, False)
        self._current = None
        with self._guarded():
            self._link.send_done(step.lease, mean, self._count, time.perf_counter() - self._began)
            self._answered = True
            self._pending = self._serve()

    def evaluate(self, evaluation: Callable[[], Metrics]) -> Optional[Metrics]:
        if self.role != "evaluator" or not self._over or self._ended:
            return None
        self._evaluation = evaluation
        with self._guarded():
            self._link.send(frames.WAITS)
            self._waiting = True
            self._serve()
        return self._metrics

    def _serve(self) -> Optional[frames.Step]:
        """Does what the engine asks until it gives a batch, or there are no more (None)."""
        while not (self._over and not self._waiting):
            kind, payload = self._link.receive()
            if kind == frames.STEP:
                step = frames.parse_step(payload)
                if self.role != "worker" or self._over:
                    raise frames.ProtocolError("STEP to an evaluator")
                self._answered = False
                self._began = time.perf_counter()
                return step
            self._answer(kind, payload)
            if self._ended:
                break
        return None

    def _answer(self, kind: int, payload: bytes) -> None:
        if kind == frames.END:
            self._end(frames.parse_json(kind, payload))
        elif kind == frames.OPTIMIZE:
            _, factor = frames.parse_optimize(payload)
            if not self._answered:
                raise frames.ProtocolError("OPTIMIZE without a step before it")
            self._answered = False
            self._model.optimize(factor, self._exchanges)
            self._link.send(frames.STEPPED)
        elif kind == frames.EVALUATE:
            frames.parse_evaluate(payload)
            if not self._waiting:
                raise frames.ProtocolError("EVALUATE before WAITS")
            self._evaluate()
        elif kind == frames.LOAD:
            state = self._state.add(payload)
            if state is not None:
                if state:
                    self._model.load(state)
                self._link.send(frames.LOADED)
        elif kind in (frames.CHANGED, frames.SYNC, frames.SAVE, frames.LAST):
            frames.parse_empty(kind, payload)
            self._answer_empty(kind)
        else:
            raise frames.ProtocolError(f"{frames.NAMES[kind]} came between two steps")

    def _answer_empty(self, kind: int) -> None:
        if kind == frames.CHANGED:
            self._model.after_write()
        elif kind == frames.SYNC:
            self._model.before_read()
            self._link.send(frames.SYNCED)
        elif kind == frames.SAVE:
            self._link.send_state(self._model.save())
        elif self._over:
            raise frames.ProtocolError("LAST a second time")
        else:
            self._finish()

    def _evaluate(self) -> None:
        assert self._evaluation is not None
        self._model.after_write()
        with self._model.evaluating():
            result = self._evaluation()
        if not isinstance(result, Mapping):
            raise TypeError(f"run.evaluate: the function returned {type(result).__name__}: a dict of numbers is needed")
        self._metrics = {str(name): float(value) for name, value in result.items()}
        self._link.send_json(frames.EVALUATED, {
            "metrics": {name: value if math.isfinite(value) else None for name, value in self._metrics.items()}})

    def _end(self, end: Mapping[str, Any]) -> None:
        try:
            code, reason = int(end["code"]), str(end.get("reason", ""))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise frames.ProtocolError(f"END: {type(error).__name__}: {error}") from error
        self._ended = True
        self._finish()
        if code != 0:
            print(f"troupe: the run ended: {reason}", file=sys.stderr)
            raise RunEnded(code & 255 or 1)

    def _finish(self) -> None:
        self._over = True
        if self._interrupt is not None and (self._ended or self.role == "worker"):
            signal.signal(signal.SIGINT, self._interrupt)
            self._interrupt = None

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Errors of the connection end the program with one line; those of the program pass."""
        try:
            yield
        except frames.ProtocolError as error:
            self.failed(f"the engine sent what is not the protocol: {error}", "")
            self._lost(f"the engine sent what is not the protocol: {error}", EXIT_PROTOCOL)
        except frames.EngineGone as error:
            self._lost(str(error), EXIT_GONE)

    def _lost(self, why: str, code: int) -> None:
        self._ended = True
        self._finish()
        print(f"troupe: {why}", file=sys.stderr)
        raise RunEnded(code) from None

    def _watch(self) -> None:
        """Tells the engine of errors of the program. SIGINT is ignored: on Ctrl-C the engine ends the run in order, and says END."""
        if threading.current_thread() is threading.main_thread():
            self._interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
        hook = sys.excepthook

        def tell(kind: Any, error: Any, trace: Any) -> None:
            self.failed(f"{kind.__name__}: {error}", "".join(traceback.format_exception(kind, error, trace)))
            hook(kind, error, trace)

        def leave() -> None:
            if not self._over:
                self.failed("it ended within its loop over run.batches" if self._has_plan else "it ended without a loop over run.batches", "")

        sys.excepthook = tell
        atexit.register(leave)

    def failed(self, error: str, trace: str) -> None:
        """Tells the engine why this program ends. Nothing in a child process, and nothing once the run has ended."""
        if self._ended or os.getpid() != self._process:
            return
        self._ended = True
        with contextlib.suppress(OSError, frames.EngineGone):
            self._link.send_json(frames.FAILED, {"error": error[:MOST_TRACEBACK], "traceback": trace[-MOST_TRACEBACK:]})


def connect(name: str) -> socket.socket:
    """The engine's socket. RunEnded: there is no engine."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Not settimeout(): with it a full backlog is an error at once.
        link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", CONNECT_S, 0))
        link.connect(b"\0" + name.encode())
        link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 0))
    except OSError as error:
        link.close()
        print(f"troupe: TROUPE_GUEST names an engine that does not answer ({error}): start this program with troupe launch, or without the variable",
              file=sys.stderr)
        raise RunEnded(EXIT_GONE) from None
    return link


def join_run(model: Model, environment: MutableMapping[str, str]) -> JoinedRun:
    """The run that the environment names. Its variables go, so that child processes do not join, too."""
    link = frames.Frames(connect(environment.pop("TROUPE_GUEST")))
    return JoinedRun(model, link, environment.pop("TROUPE_TOKEN", ""))
