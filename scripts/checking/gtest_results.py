"""The tests of a GoogleTest program that shards.py ran: how many passed, which failed, and what the first failure said."""
import json
import re

ENDS = re.compile(r"\[( RUN      |       OK |  FAILED  |  SKIPPED )\] ([\w./]+)")
MESSAGE_LINES, MESSAGE_WIDTH = 12, 300


def _short(text):
    """From the first failure on; the last lines where there is none, as after a crash."""
    lines = [line[:MESSAGE_WIDTH] for line in text.splitlines() if line.strip()]
    failure = next((at for at, line in enumerate(lines) if line.endswith(": Failure")), None)
    return "\n".join(lines[-MESSAGE_LINES:] if failure is None else lines[failure:failure + MESSAGE_LINES])


def _of_json(text):
    for suite in json.loads(text)["testsuites"]:
        for case in suite["testsuite"]:
            name = "{}.{}".format(suite["name"], case["name"])
            if case.get("failures"):
                yield name, "failed", _short(case["failures"][0]["failure"])
            else:
                yield name, "skipped" if case.get("result") in ("SKIPPED", "SUPPRESSED") else "passed", ""


def _of_log(text):
    running, began = None, 0
    for found in ENDS.finditer(text):
        what, name = found.group(1).strip(), found.group(2)
        if what == "RUN":
            running, began = name, found.end()
        elif name == running:  # the summary at a log's end names tests again
            outcome = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}[what]
            yield name, outcome, _short(text[began:found.start()]) if outcome == "failed" else ""
            running = None
    if running:
        yield running, "unfinished", _short(text[began:])


def _of_shard(folder, stem):
    """(name, outcome, message) of each test. GoogleTest writes its results when it ends: of a process that crashed or was ended there is only the log."""
    try:
        return list(_of_json((folder / (stem + ".json")).read_text(errors="replace")))
    except (OSError, ValueError, KeyError):
        pass
    try:
        return list(_of_log((folder / (stem + ".log")).read_text(errors="replace")))
    except OSError:
        return []


def read(folder, name, shards):
    """Figures: `tests` counts; what failed, and what was not finished, by name; `first_failure`."""
    found = [case for shard in range(1, shards + 1) for case in _of_shard(folder, "{}-{}".format(name, shard))]
    figures = {"tests": {outcome: sum(1 for case in found if case[1] == outcome) for outcome in ("passed", "failed", "skipped", "unfinished")}}
    bad = [case for outcome in ("failed", "unfinished") for case in found if case[1] == outcome]
    for outcome in ("failed", "unfinished"):
        if figures["tests"][outcome]:
            figures[outcome + "_tests"] = [case[0] for case in bad if case[1] == outcome]
    if bad:
        figures["first_failure"] = {"test": bad[0][0], "message": bad[0][2]}
    return figures


def tell(figures):
    text = "{passed} passed, {failed} failed, {skipped} skipped".format(**figures["tests"])
    names = figures.get("unfinished_tests", [])
    if names:
        text += ", unfinished: {}{}".format(names[0], " and {} more".format(len(names) - 1) if len(names) > 1 else "")
    return text
