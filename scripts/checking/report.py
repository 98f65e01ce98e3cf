"""gpu-check's table."""
import shutil

COLUMNS = "{:<14} {:<34} {:<9} {}"
STATUSES = ("ok", "failed", "ended", "skipped", "not run")


def print_row(result):
    text = result.text
    if result.status != "ok":
        text = result.why + (": " + result.text if result.text else "")
    if result.step.goal and result.status == "ok":
        text += "   goal {}{}".format(result.step.goal, "" if result.reached in (None, True) else ": BELOW")
    print(COLUMNS.format(result.step.part, result.step.name, result.status, text).rstrip(), flush=True)
    if result.status not in ("ok", "skipped"):
        width = max(shutil.get_terminal_size((160, 24)).columns, 100)
        first = result.figures.get("first_failure")
        for line in (["{test}:\n{message}".format(**first)] if first else []) + result.lines:
            print("\n".join("    | " + part[:width - 6] for part in line.splitlines()), flush=True)


def finish(results):
    """Sums: of results, and of the cases of test programs."""
    tests = {"passed": 0, "failed": 0, "skipped": 0, "unfinished": 0}
    for result in results:
        for key in tests:
            tests[key] += result.figures.get("tests", {}).get(key, 0)
    counts = {status: sum(1 for r in results if r.status == status) for status in STATUSES}
    below = ["{} {}".format(r.step.part, r.step.name) for r in results if r.reached is False]
    return {"counts": counts, "tests": tests, "below_goal": below}


def print_end(found, file):
    counts, tests = found["counts"], found["tests"]
    print("{}; {}; {}".format(found["device"] or "no GPU", found["libraries"] or "no libraries of CUDA", found["nvidia_smi"] or "no nvidia-smi"))
    print("tests: {passed} passed, {failed} failed, {skipped} skipped{0}".format(", {unfinished} unfinished".format(**tests) if tests["unfinished"] else "", **tests))
    print("{}, {:.0f} s{}".format(", ".join("{} {}".format(counts[s], s) for s in STATUSES), found["seconds"], "; interrupted" if found["interrupted"] else ""))
    if found["on_host"]:
        print("on the host: no figure of this run is a GPU's")
    print(str(file))
