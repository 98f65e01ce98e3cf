"""Commands with deadlines: one that takes too long is ended with all that it started, and the next one runs."""
import collections
import os
import shlex
import signal
import subprocess
import time

LAST_LINES = 12


class Step:
    """A command, and what its output says. `read(output, seconds, folder)` gives figures, a dict; raises ValueError where the output is wrong."""

    def __init__(self, part, name, command, seconds, read=None, why_not="", environment=None, goal=None, judge=None):
        self.part, self.name, self.seconds, self.why_not = part, name, seconds, why_not
        self.command = [str(c) for c in command]
        self.read = read or (lambda output, seconds, folder: {})
        self.environment = environment or {}
        self.judge = judge  # judge(figures, results so far) -> text for the table, and whether the goal is reached (None: there is none)
        self.goal = goal  # as text

    def text(self):
        return " ".join([k + "=" + shlex.quote(v) for k, v in self.environment.items()] + [shlex.quote(c) for c in self.command])


class Result:
    """ok, failed, ended (it took too long), skipped (this machine lacks something), not run (no time was left)."""

    def __init__(self, step, status, seconds=0.0, figures=None, why="", lines=()):
        self.step, self.status, self.seconds, self.figures, self.why, self.lines = step, status, seconds, figures or {}, why, list(lines)
        self.text, self.reached = "", None

    def to_json(self):
        found = {"part": self.step.part, "name": self.step.name, "status": self.status, "seconds": round(self.seconds, 2)}
        if self.figures:
            found["figures"] = self.figures
        if self.step.goal:
            found["goal"] = self.step.goal
        if self.reached is not None:
            found["reached"] = self.reached
        if self.why:
            found["why"] = self.why
        if self.status in ("failed", "ended"):
            found["command"], found["last_lines"] = self.step.text(), self.lines
        return found


def end(child):
    """The child and every process of its session."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
        except (ProcessLookupError, PermissionError):
            pass
        try:
            child.wait(timeout=2)
        except subprocess.TimeoutExpired:
            continue
        if number == signal.SIGTERM:
            continue  # what it started may ignore the first signal
    child.wait()


def run(step, machine, seconds):
    """One command, of at most so many seconds."""
    environment = machine.environment()
    environment.update(step.environment)
    out, err = machine.work / "output", machine.work / "errors"
    began = time.monotonic()
    with out.open("wb") as output, err.open("wb") as errors:
        try:
            child = subprocess.Popen(step.command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, cwd=str(machine.work), env=environment, start_new_session=True)
        except OSError as error:
            return Result(step, "failed", why="{}: {}".format(step.command[0], error.strerror))
        try:
            child.wait(timeout=seconds)
            late = False
        except subprocess.TimeoutExpired:
            late = True
        finally:  # also where the user interrupts
            if child.poll() is None:
                end(child)
    took = time.monotonic() - began
    text = out.read_bytes().decode(errors="replace")
    lines = [line for line in (text + "\n" + err.read_bytes().decode(errors="replace")).splitlines() if line.strip()]
    last = collections.deque(lines, LAST_LINES)
    if late:
        return Result(step, "ended", took, why="took longer than {:.0f} s".format(seconds), lines=last)
    if child.returncode != 0:
        how = "exit code {}".format(child.returncode) if child.returncode > 0 else "signal {}".format(-child.returncode)
        result = Result(step, "failed", took, why=how, lines=last)
    else:
        result = Result(step, "ok", took, lines=last)
    try:
        result.figures = step.read(text, took, machine.work)
    except (ValueError, KeyError, IndexError, TypeError, OSError) as error:
        if result.status == "ok":
            result.status, result.why = "failed", "its output has not what it should: {!r}".format(error)
    return result


def run_all(steps, machine, total, parts, longest):
    """Results in order; `total` seconds for all, `parts` for those of a part, by name."""
    until = time.monotonic() + total
    results, part, part_until = [], None, until
    for step in steps:
        if step.part != part:
            part, part_until = step.part, time.monotonic() + parts[step.part]
        left = min(until, part_until) - time.monotonic()
        if step.why_not:
            result = Result(step, "skipped", why=step.why_not)
        elif left < 2:
            result = Result(step, "not run", why="no time is left")
        else:
            result = run(step, machine, min(step.seconds, longest, left))
            if result.status == "ended" and left < min(step.seconds, longest):
                result.why, result.status = "no time is left: it had {:.0f} s".format(left), "not run"
        if result.status == "ok" and step.judge:
            result.text, result.reached = step.judge(result.figures, results)
        results.append(result)
        yield result
