"""Commands with deadlines: one that takes too long is ended with all that it started, and the next one runs."""
import collections
import glob
import os
import shlex
import signal
import subprocess
import time

LAST_LINES = 12
LEAST_S = 2  # with less than this left a command is not begun
ENDING = ((signal.SIGTERM, 2), (signal.SIGKILL, 5))  # seconds that a process has to end after each


class Step:
    """A command, and what its output says. `read(output, seconds, folder)` gives figures, a dict; raises ValueError where the output is wrong."""

    def __init__(self, part, name, command, seconds, read=None, why_not="", environment=None, goal=None, judge=None, late=None):
        self.part, self.name, self.seconds, self.why_not = part, name, seconds, why_not
        self.command = [str(c) for c in command]
        self.read = read or (lambda output, seconds, folder: {})
        self.environment = environment or {}
        self.judge = judge  # judge(figures, results so far) -> text for the table, and whether the goal is reached (None: there is none)
        self.goal = goal  # as text
        self.late = late or "took longer than {:.0f} s"  # what is said of one that is ended

    def text(self):
        return " ".join([k + "=" + shlex.quote(v) for k, v in self.environment.items()] + [shlex.quote(c) for c in self.command])


class Result:
    """ok, failed, ended (it took too long), skipped (this machine lacks something), not run (no time was left, or less than half of what it may take)."""

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
        if self.status in ("failed", "ended") or (self.lines and self.status != "ok"):
            found["command"], found["last_lines"] = self.step.text(), self.lines
        return found


def lives(child):
    """Whether the child, or a process of its group, is still there."""
    if child.poll() is None:
        return True
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, "rb") as stat:
                state, _, group = stat.read().rsplit(b")", 1)[1].split()[:3]
        except (OSError, IndexError):
            continue  # it has ended meanwhile
        if int(group) == child.pid and state not in (b"Z", b"X"):
            return True
    return False


def end(child):
    """Ends the child and all processes of its group. False: one is still there, as it is while a driver's call cannot be interrupted."""
    for number, seconds in ENDING:
        try:
            os.killpg(child.pid, number)
        except (ProcessLookupError, PermissionError):
            pass
        until = time.monotonic() + seconds
        while lives(child) and time.monotonic() < until:
            time.sleep(0.02)
    return not lives(child)


def run(step, machine, seconds, deadline):
    """One command, of at most so many seconds, where it should have had until its deadline."""
    environment = machine.environment()
    environment.update(step.environment)
    out, err = machine.work / "output", machine.work / "errors"
    began = time.monotonic()
    with out.open("wb") as output, err.open("wb") as errors:
        try:
            child = subprocess.Popen(step.command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, cwd=str(machine.work), env=environment, start_new_session=True)
        except OSError as error:
            return Result(step, "failed", why="{}: {}".format(step.command[0], error.strerror))
        late, over = False, True
        try:
            child.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            late = True
        finally:  # also where the user interrupts
            if lives(child):
                over = end(child)
    took = time.monotonic() - began
    text = out.read_bytes().decode(errors="replace")
    lines = [line for line in (text + "\n" + err.read_bytes().decode(errors="replace")).splitlines() if line.strip()]
    last = collections.deque(lines, LAST_LINES)
    if late:
        result = Result(step, "ended", took, why=step.late.format(seconds), lines=last)
    elif child.returncode != 0:
        how = "exit code {}".format(child.returncode) if child.returncode > 0 else "signal {}".format(-child.returncode)
        result = Result(step, "failed", took, why=how, lines=last)
    else:
        result = Result(step, "ok", took, lines=last)
    try:
        result.figures = step.read(text, took, machine.work)
    except (ValueError, KeyError, IndexError, TypeError, OSError) as error:
        if result.status == "ok":
            result.status, result.why = "failed", "its output has not what it should: {!r}".format(error)
    if not over:
        result.why += ", and could not be ended"
    elif late and seconds < deadline / 2 and not result.figures.get("failed_tests"):
        result.status, result.why = "not run", "no time is left: " + result.why
    return result


def run_all(steps, machine, until, parts, longest):
    """Results in order, until that time of the monotonic clock. `parts`: the seconds of each part, by name; it may take more where that leaves the parts behind it theirs."""
    waiting = {step.part: parts[step.part] for step in steps if not step.why_not}
    results, part, part_until = [], None, until
    for step in steps:
        if step.part != part:
            part, own = step.part, waiting.pop(step.part, 0)
            part_until = min(until, max(time.monotonic() + own, until - sum(waiting.values())))
        left, deadline = part_until - time.monotonic(), min(step.seconds, longest)
        if step.why_not:
            result = Result(step, "skipped", why=step.why_not)
        elif left < LEAST_S:
            result = Result(step, "not run", why="no time is left")
        else:
            result = run(step, machine, min(deadline, left), deadline)
        if step.judge and (result.status == "ok" or result.figures):
            result.text, reached = step.judge(result.figures, results)
            result.reached = reached if result.status == "ok" else None
        results.append(result)
        yield result
