"""The modules of scripts/checking: commands that take too long, what is left of their results, and who gets how much time. No test waits for a deadline."""
import contextlib
import io
import os
import pathlib
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from checking import gtest_results, machine, parts, report, runner  # noqa: E402

# A GoogleTest program by what it prints and writes. What a process does with its part of the tests stands in `parts`, by its index.
GOOGLETEST = """#!/usr/bin/env python3
import json, os, signal, sys
part = open(os.path.join(os.path.dirname(__file__), "parts")).read().split()[int(os.environ["GTEST_SHARD_INDEX"])]
good, other = "Suite.Good/" + part, "Suite.Other/" + part
print("[ RUN      ] " + good, "[       OK ] " + good + " (1 ms)", "[ RUN      ] " + other, sep="\\n", flush=True)
if part == "crashes":
    print("about to read address 0", flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)
if part == "hangs":
    print("compiling engine 7", flush=True)
    signal.pause()
if part == "leaves":
    os._exit(0)
failures = {}
if part == "fails":
    print("a line of the test", "other_test.cpp:3: Failure", "Expected equality of these values: 1 and 2", sep="\\n")
    failures = {"failures": [{"failure": "other_test.cpp:3\\nExpected equality of these values: 1 and 2"}]}
print("[  FAILED  ] " + other + ", where GetParam() = 1 (1 ms)" if failures else "[       OK ] " + other + " (1 ms)")
tests = [{"name": "Good/" + part, "result": "COMPLETED"}, dict({"name": "Other/" + part, "result": "COMPLETED"}, **failures)]
with open(os.environ["GTEST_OUTPUT"][len("json:"):], "w") as results:
    json.dump({"testsuites": [{"name": "Suite", "testsuite": tests}]}, results)
print("[  FAILED  ] 1 test, listed below:\\n[  FAILED  ] " + other + ", where GetParam() = 1" if failures else "[  PASSED  ] 2 tests.")
sys.exit(1 if failures else 0)
"""
HANG = [sys.executable, "-c", "import os, signal; print('working', os.getpid(), flush=True); signal.pause()"]


class CheckingTest(unittest.TestCase):
    on_host = True

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)

    def environment(self):
        return dict(os.environ)

    def program(self, name):
        path = self.work / name
        return path if path.exists() else None

    def run_steps(self, steps, seconds=1000, budgets=None, hangs=lambda: False):
        """Their results, and the seconds that each command was given. Where `hangs()`, these are over."""
        given = []

        class Child(subprocess.Popen):
            def __init__(child, *arguments, **more):
                super().__init__(*arguments, **more)
                self.addCleanup(super().wait)

            def wait(child, timeout=None):
                given.append(timeout)
                while child.poll() is None and not hangs():
                    time.sleep(0.01)
                if child.poll() is None:
                    raise subprocess.TimeoutExpired(child.args, timeout)
                return child.returncode

        with unittest.mock.patch.object(subprocess, "Popen", Child):
            results = list(runner.run_all(steps, self, time.monotonic() + seconds, budgets or {step.part: seconds for step in steps}, float("inf")))
        return results, given

    def works(self):
        """Whether the command that prints this is there."""
        return (self.work / "output").exists() and (self.work / "output").read_bytes().endswith(b"\n")

    def stub_tests(self, *what):
        """The contract's program; what each of its processes does."""
        (self.work / "parts").write_text(" ".join(what))
        path = self.work / "backend_contract_tests"
        path.write_text(GOOGLETEST)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def run_contract(self, *what):
        self.stub_tests(*what)
        step = next(step for step in parts.steps("tests", self) if step.name == "backend contract")

        def hangs():
            """Nothing happens any more: each process has ended, or hangs."""
            logs = [path.read_text() for path in self.work.glob("*.log")]
            return "hangs" in what and len(logs) == len(what) and all("compiling" in log or "PASSED" in log for log in logs)

        result = self.run_steps([step], hangs=hangs)[0][0]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            report.print_row(result)
        return result.to_json(), printed.getvalue(), report.finish([result])

    def test_a_process_of_tests_that_hangs_leaves_the_results_of_all(self):
        row, printed, sums = self.run_contract("passes", "hangs")
        self.assertEqual(row["status"], "ended")
        self.assertEqual(row["figures"]["tests"], {"passed": 3, "failed": 0, "skipped": 0, "unfinished": 1})
        self.assertEqual(row["figures"]["unfinished_tests"], ["Suite.Other/hangs"])
        self.assertEqual(row["figures"]["first_failure"], {"test": "Suite.Other/hangs", "message": "compiling engine 7"})
        self.assertEqual(row["last_lines"][-2:], ["compiling engine 7", "a process ended by signal 15"])
        self.assertIn("took longer than 30 s: 3 passed, 0 failed, 0 skipped, unfinished: Suite.Other/hangs\n", printed)
        self.assertEqual(sums["tests"], row["figures"]["tests"])

    def test_a_process_of_tests_that_crashes_is_seen(self):
        row, printed, _ = self.run_contract("crashes", "passes")
        self.assertEqual((row["status"], row["why"]), ("failed", "exit code 1"))
        self.assertEqual(row["figures"]["tests"], {"passed": 3, "failed": 0, "skipped": 0, "unfinished": 1})
        self.assertEqual(row["figures"]["first_failure"], {"test": "Suite.Other/crashes", "message": "about to read address 0"})
        self.assertEqual(row["last_lines"][-2:], ["about to read address 0", "a process ended by signal 11"])
        self.assertIn("    | Suite.Other/crashes:\n    | about to read address 0\n", printed)

    def test_the_first_failure_is_named_with_its_message(self):
        row, _, _ = self.run_contract("crashes", "fails")
        self.assertEqual(row["figures"]["tests"], {"passed": 2, "failed": 1, "skipped": 0, "unfinished": 1})
        self.assertEqual((row["figures"]["failed_tests"], row["figures"]["unfinished_tests"]), (["Suite.Other/fails"], ["Suite.Other/crashes"]))
        message = "other_test.cpp:3\nExpected equality of these values: 1 and 2"
        self.assertEqual(row["figures"]["first_failure"], {"test": "Suite.Other/fails", "message": message})

    def test_a_process_of_tests_that_exits_without_results_is_a_failure(self):
        row, _, _ = self.run_contract("passes", "leaves")
        self.assertEqual((row["status"], row["figures"]["unfinished_tests"]), ("failed", ["Suite.Other/leaves"]))

    def test_processes_that_failed_print_last_and_their_logs_say_what_results_say(self):
        program = self.stub_tests("crashes", "fails", "passes")
        done = subprocess.run([sys.executable, parts.SHARDS, "3", "stub", program], cwd=str(self.work), stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        places = [done.stdout.index("[ RUN      ] Suite.Good/" + part) for part in ("passes", "fails", "crashes")]
        self.assertEqual(places, sorted(places))
        self.assertEqual(done.stdout.splitlines()[-1], "a process ended by signal 11")
        of_results = gtest_results.read(self.work, "stub", 3)
        (self.work / "stub-2.json").write_text('{"testsuites": [')
        (self.work / "stub-3.json").unlink()
        of_logs = gtest_results.read(self.work, "stub", 3)
        self.assertEqual(of_logs["first_failure"].pop("message"), "other_test.cpp:3: Failure\nExpected equality of these values: 1 and 2")
        of_results["first_failure"].pop("message")
        self.assertEqual(of_logs, of_results)

    def test_a_command_that_had_half_of_its_time_is_ended_and_another_was_not_run(self):
        for deadline, status, why in ((1900, "ended", "still compiling after "), (2100, "not run", "no time is left: still compiling after ")):
            (self.work / "output").unlink(missing_ok=True)
            result = self.run_steps([runner.Step("a", "hangs", HANG, deadline, late="still compiling after {:.0f} s")], hangs=self.works)[0][0].to_json()
            self.assertEqual((result["status"], result["why"].rstrip("0123456789 s"), result["last_lines"][0][:7]), (status, why.rstrip(), "working"))

    def test_a_failed_test_counts_however_little_time_was_left(self):
        step = runner.Step("a", "hangs", HANG, 10000, lambda output, seconds, folder: {"failed_tests": ["Suite.Other"]})
        self.assertEqual(self.run_steps([step], hangs=self.works)[0][0].status, "ended")

    def test_a_part_has_its_own_seconds_and_those_that_no_part_behind_it_needs(self):
        def steps(*names):
            return [runner.Step(name, "works", ["true"], 9000, why_not="there is none" if name == "skipped" else "") for name in names]

        budgets = {"first": 100, "skipped": 5000, "second": 300, "last": 0}
        # The first: 1000 s less the 300 s of the second. The last has what is left.
        results, given = self.run_steps(steps("first", "skipped", "second", "last"), 1000, budgets)
        self.assertEqual([r.status for r in results], ["ok", "skipped", "ok", "ok"])
        for seconds, expected in zip(given, (700, 1000, 1000), strict=True):
            self.assertAlmostEqual(seconds, expected, delta=50)
        # With too little for all, those that come first have theirs.
        given = self.run_steps(steps("first", "second", "last"), 250, budgets)[1]
        self.assertAlmostEqual(given[0], 100, delta=0.001)
        self.assertAlmostEqual(given[1], 250, delta=50)

    def test_a_process_that_cannot_be_ended_is_named_and_the_rest_goes_on(self):
        steps = [runner.Step("a", "hangs", HANG, 2), runner.Step("a", "works", ["true"], 2)]
        with unittest.mock.patch.object(runner, "ENDING", ((signal.SIGTERM, 0.1), (signal.SIGKILL, 0.1))), unittest.mock.patch.object(os, "killpg"):
            results = self.run_steps(steps, hangs=self.works)[0]
        os.kill(int(results[0].lines[0].split()[1]), signal.SIGKILL)
        self.assertEqual([(r.status, r.why) for r in results], [("ended", "took longer than 2 s, and could not be ended"), ("ok", "")])

    def test_the_parts_fit_into_the_time(self):
        self.assertLessEqual(sum(parts.NAMES.values()), 60 * 8.75)
        self.assertEqual(parts.NAMES["torch_compile"], 0)

    def test_each_test_of_the_contract_is_in_one_row(self):
        here = machine.Machine(False, None)

        def tests_of(tests):
            listed = subprocess.run([here.program("backend_contract_tests"), "--gtest_list_tests", tests], stdout=subprocess.PIPE, text=True, check=True).stdout
            suite, names = "", []
            for line in listed.splitlines():
                name = line.split("#")[0].strip()
                suite, names = (suite, names + [suite + name]) if line.startswith(" ") else (name, names)
            return names

        rows = [next(word for word in step.command if word.startswith("--gtest_filter=")) for step in parts.steps("tests", here)[-2:]]
        contract, slowest = map(tests_of, rows)
        self.assertEqual(len(slowest), 2)
        self.assertEqual(sorted(contract + slowest), sorted(tests_of("--gtest_filter=*/cuda*")))


if __name__ == "__main__":
    signal.alarm(280)
    unittest.main()
