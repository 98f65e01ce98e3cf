#!/usr/bin/env python3
"""Usage: run.py pytest|mypy [--cache DIRECTORY] [--results FILE] [ARGUMENT …]

Runs the tests of the Python package, or checks its types, with the first Python of this machine that has what they need. Exits 77, with the reason,
where none has. More arguments are pytest's.

  --cache DIRECTORY  where mypy keeps what it has seen
  --results FILE     where pytest's results go, in the form that scripts/count-tests.py reads of GoogleTest's
"""
import argparse
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as xml

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
NEEDS = {"pytest": ["numpy", "pytest"], "mypy": ["numpy", "torch", "mypy"]}
SKIPPED = 77


def interpreter(modules):
    """A Python that has them; None: no one has."""
    for python in (sys.executable, "/usr/bin/python3"):
        looks = f"import importlib.util as u; raise SystemExit(not all(u.find_spec(m) for m in {modules!r}))"
        if os.path.exists(python) and subprocess.run([python, "-c", looks], stdin=subprocess.DEVNULL).returncode == 0:
            return python
    return None


def as_googletest(path):
    """pytest's file has the sums one level deeper, and skipped tests as GoogleTest does not write them."""
    root = xml.parse(path).getroot()
    suite = root.find("testsuite")
    for case in suite.iter("testcase"):
        if case.find("skipped") is not None:
            case.set("result", "skipped")
    xml.ElementTree(suite).write(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=sorted(NEEDS))
    parser.add_argument("--cache", type=pathlib.Path)
    parser.add_argument("--results", type=pathlib.Path)
    arguments, more = parser.parse_known_args()
    python = interpreter(NEEDS[arguments.what])
    if python is None:
        print(f"skipped: no Python here has {', '.join(NEEDS[arguments.what])} (scripts/setup installs them)")
        return SKIPPED
    command = [python, "-B", "-m", arguments.what]
    if arguments.what == "mypy":
        cache = ["--cache-dir", str(arguments.cache / "mypy")] if arguments.cache else []
        return subprocess.run([*command, *cache, "--strict", str(PACKAGE / "troupe"), str(PACKAGE / "tests" / "fake_engine.py")],
                              cwd=PACKAGE, env={**os.environ, "MYPYPATH": str(PACKAGE)}).returncode
    results = [f"--junitxml={arguments.results}"] if arguments.results else []
    code = subprocess.run([*command, "-q", "-p", "no:cacheprovider", *results, *more, str(PACKAGE / "tests")]).returncode
    if arguments.results and arguments.results.exists():
        as_googletest(arguments.results)
    return code


if __name__ == "__main__":
    sys.exit(main())
