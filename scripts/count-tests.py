#!/usr/bin/env python3
"""Usage: count-tests.py DIRECTORY

Sums what scripts/test left in DIRECTORY and prints "N passed, N failed[, N skipped]", before it how many of the skipped ones need an NVIDIA
GPU; exits 1 when anything failed or nothing ran.

  PRESET.ctest    CTest's JUnit file: one of its tests each
  PRESET/*.xml    GoogleTest's own results of a test: its cases (tests that are not GoogleTest programs have none and count as one)
  checks          lines "ok …" and "not ok …"
"""
import pathlib
import sys
import xml.etree.ElementTree as xml


def count_test(program, results):
    """(passed, failed, skipped) of one CTest entry."""
    ctest_passed = program.get("status") == "run"
    why = program.find("skipped")  # also what CTest calls a program that was not built
    ctest_skipped = why is not None and why.get("message", "").startswith(("SKIP_", "Disabled"))
    path = results / f"{program.get('name')}.xml"
    if not path.exists():  # no GoogleTest program, or one that died before it could write
        return (int(ctest_passed), int(not ctest_passed and not ctest_skipped), int(ctest_skipped))
    suites = xml.parse(path).getroot()
    total, failed = int(suites.get("tests")), int(suites.get("failures")) + int(suites.get("errors"))
    skipped = sum(1 for case in suites.iter("testcase") if case.get("result") in ("skipped", "suppressed"))
    if not ctest_passed and failed == 0:  # e.g. a sanitizer's report at exit
        failed, total = 1, total + 1
    return (total - failed - skipped, failed, skipped)


def count_without_gpu(directory):
    """How many tests were skipped because there is no GPU: their message is the loader's, or CUDA's."""
    return sum(any(reason in why.get("message", "") for reason in ("NVIDIA", "troupe_gpu.so", "CUDA finds no device"))
               for path in directory.glob("*/*.xml") for why in xml.parse(path).getroot().iter("skipped"))


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0 if len(sys.argv) == 2 else 2
    directory = pathlib.Path(sys.argv[1])
    passed = failed = skipped = 0
    for junit in sorted(directory.glob("*.ctest")):
        for program in xml.parse(junit).getroot().iter("testcase"):
            counts = count_test(program, directory / junit.stem)
            passed, failed, skipped = passed + counts[0], failed + counts[1], skipped + counts[2]
            if counts[1]:
                print(f"failed: {program.get('name')} ({junit.stem}): {counts[1]} of {sum(counts)}")
    checks = directory / "checks"
    for line in checks.read_text().splitlines() if checks.exists() else []:
        passed += line.startswith("ok ")
        failed += line.startswith("not ok ")
    if without_gpu := count_without_gpu(directory):
        print(f"{without_gpu} skipped tests need an NVIDIA GPU")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
