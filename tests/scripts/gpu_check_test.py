"""scripts/gpu-check on a machine without a GPU: all of it with the program's stand-in, and what it does with commands that fail or hang. PyTorch is a stub.
checking_test.py has its modules."""
import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GPU_CHECK = ROOT / "scripts" / "gpu-check"
sys.path.insert(0, str(ROOT / "scripts"))
from checking import machine, parts  # noqa: E402

# What the stub of torch_train.py does, by the layout of its command line.
TRAIN = """#!/usr/bin/env python3
import json, os, signal, subprocess, sys
behaviour = open(os.path.join(os.path.dirname(__file__), "behaviour")).read()
compiled = "--compile" in sys.argv
print("warming up", flush=True)
if behaviour == "hangs" and not compiled:
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"])
    open(os.path.join(os.path.dirname(__file__), "child"), "w").write(str(child.pid))
    signal.pause()
if behaviour == "fails" and not compiled:
    sys.exit("out of memory: tried to allocate 1 byte")
if behaviour == "babbles" and not compiled:
    print("nothing to see")
    sys.exit(0)
print(json.dumps({"images_per_s": 0.5, "ms_per_step": 4000.0, "torch": "9.9"}))
"""

DOCTOR = """#!/usr/bin/env python3
import json, sys
if sys.argv[1] == "doctor":
    BEFORE
    print(json.dumps({"version": "0", "cpu": "", "threads": 2, "cuda": CUDA}))
"""
WITHOUT = {"built": True, "devices": 0, "libraries": "", "driver": "", "names": [], "why": ["no NVIDIA driver is installed", "libcudnn.so.9 cannot be loaded"]}
WITH = {"built": True, "devices": 1, "libraries": "CUDA 13.0", "driver": "13.0", "names": ["NVIDIA H200, 139.7 GiB"], "why": []}


def is_alive(process):
    try:
        return pathlib.Path("/proc/{}/stat".format(process)).read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class GpuCheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.json = self.folder / "result.json"
        self.peers = self.folder / "peers"
        self.peers.mkdir()
        (self.peers / "torch_train.py").write_text(TRAIN)
        (self.folder / "torch.py").write_text("__version__ = '9.9'\ncompile = None\nclass cuda:\n    is_available = staticmethod(lambda: True)\n")
        (self.folder / "torchvision.py").write_text("")
        self.behave("well")

    def behave(self, behaviour):
        (self.peers / "behaviour").write_text(behaviour)

    def run_check(self, *arguments, troupe=None, **more):
        environment = dict(os.environ, **dict({"PEERS": str(self.peers), "PYTHON": sys.executable, "PYTHONPATH": str(self.folder)}, **more))
        if troupe:
            environment["TROUPE"] = str(troupe)
        return subprocess.run([sys.executable, "-B", str(GPU_CHECK), "--json", str(self.json), *map(str, arguments)], env=environment, cwd=str(self.folder), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def results(self):
        found = json.loads(self.json.read_text())
        return found, {(r["part"], r["name"]): r for r in found["results"]}

    def stub(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def stub_troupe(self, cuda, before="pass"):
        return self.stub("troupe", DOCTOR.replace("CUDA", repr(cuda)).replace("BEFORE", before))

    def test_everything_runs_on_the_host(self):
        done = self.run_check("--on-host")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found, results = self.results()
        self.assertTrue(found["on_host"])
        self.assertEqual({r["part"] for r in found["results"]},
                         {"tests", "sanitizer", "training", "speed", "start", "device", "workers", "torch_eager", "torch_compile"})
        self.assertEqual({r["status"] for r in found["results"] if r["part"] != "sanitizer"}, {"ok"})
        self.assertEqual(found["counts"]["failed"], 0)
        self.assertEqual(sum(1 for part, _ in results if part == "training"), 11)
        self.assertGreater(found["tests"]["passed"], 20)
        # The suite has as many cases on the real device as on its stand-in: without one they are skipped, and counted.
        contract = results["tests", "backend contract"]["figures"]["tests"]
        self.assertEqual((contract["passed"] + contract["skipped"]) % 15, 0)
        self.assertGreaterEqual(contract["passed"], 30)
        speed = results["speed", "lenet, batch 2"]["figures"]["images_per_s"]
        together, apart = (results["speed", "lenet, batch 2, bf16, any order" + more] for more in ("", ", statistics apart"))
        listed = self.run_check("--on-host", "--dry-run").stdout
        self.assertEqual(listed.count("--statistics-apart"), 2, listed)
        self.assertEqual(listed.count("--nondeterministic"), 4, listed)
        self.assertAlmostEqual(together["figures"]["of_the_other"], together["figures"]["images_per_s"] / speed)
        self.assertAlmostEqual(apart["figures"]["of_the_other"], apart["figures"]["images_per_s"] / together["figures"]["images_per_s"])
        for part in ("torch_eager", "torch_compile"):
            self.assertAlmostEqual(results[part, "lenet, batch 2"]["figures"]["troupe_by_torch"], speed / 0.5)
        self.assertIn("elastic_pair", results["device", "kernels over vectors"]["figures"]["of_a_copy"])
        self.assertGreaterEqual(results["device", "waits in a step"]["figures"]["operations_per_step"], 4)
        self.assertGreater(results["workers", "2 EASGD workers"]["figures"]["of_one_worker"], 0)
        self.assertIn("tests: {passed} passed, {failed} failed, {skipped} skipped".format(**found["tests"]), done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], str(self.json))

    def test_a_command_that_hangs_is_ended_with_its_children_and_the_rest_goes_on(self):
        self.behave("hangs")
        done = self.run_check("--on-host", "--parts", "torch_eager,torch_compile", "--longest", 1)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        found, results = self.results()
        hung = results["torch_eager", "lenet, batch 2"]
        self.assertEqual((hung["status"], hung["why"], hung["last_lines"]), ("ended", "took longer than 1 s", ["warming up"]))
        self.assertIn("    | warming up", done.stdout.splitlines())
        self.assertIn("torch_train.py", hung["command"])
        self.assertEqual(results["torch_compile", "lenet, batch 2"]["status"], "ok")
        self.assertFalse(is_alive(int((self.peers / "child").read_text())))

    def test_a_failure_is_named_with_its_last_lines(self):
        self.behave("fails")
        done = self.run_check("--on-host", "--parts", "torch_compile,torch_eager")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        found, results = self.results()
        failed = results["torch_eager", "lenet, batch 2"]
        self.assertEqual((failed["status"], failed["why"]), ("failed", "exit code 1"))
        self.assertEqual(failed["last_lines"], ["warming up", "out of memory: tried to allocate 1 byte"])
        self.assertIn("    | out of memory: tried to allocate 1 byte", done.stdout.splitlines())
        self.assertEqual(found["counts"], {"ok": 1, "failed": 1, "ended": 0, "skipped": 0, "not run": 0})

    def test_output_without_figures_is_a_failure(self):
        self.behave("babbles")
        self.assertEqual(self.run_check("--on-host", "--parts", "torch_eager").returncode, 1)
        _, results = self.results()
        self.assertEqual(results["torch_eager", "lenet, batch 2"]["status"], "failed")

    def test_what_no_time_is_left_for_is_listed(self):
        done = self.run_check("--on-host", "--parts", "start,torch_eager", "--minutes", 0.02)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found, _ = self.results()
        self.assertEqual({r["status"] for r in found["results"]}, {"not run"})
        self.assertEqual(found["counts"]["not run"], 3)

    def test_what_the_machine_is_asked_counts_as_time(self):
        troupe = self.stub_troupe(WITHOUT, before="import signal; signal.signal(signal.SIGALRM, lambda *_: None); signal.alarm(2); signal.pause()")
        done = self.run_check("--on-host", "--parts", "torch_eager", "--minutes", 0.06, troupe=troupe)  # 3.6 s: enough without the doctor's 2 s
        found, results = self.results()
        self.assertEqual(results["torch_eager", "lenet, batch 2"]["status"], "not run", done.stdout)
        self.assertGreaterEqual(found["seconds"], 2)

    def test_an_interrupt_while_the_machine_is_asked_ends_what_runs(self):
        asked = self.folder / "asked"
        troupe = self.stub_troupe(WITHOUT, before="import os, signal; print(os.getpid(), file=open({!r}, 'w'), flush=True); signal.pause()".format(str(asked)))
        check = subprocess.Popen([sys.executable, "-B", str(GPU_CHECK), "--on-host", "--json", str(self.json)], env=dict(os.environ, TROUPE=str(troupe)), cwd=str(self.folder),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while not (asked.exists() and asked.read_text().endswith("\n")):
            self.assertIsNone(check.poll())
        check.send_signal(signal.SIGTERM)
        self.assertEqual(check.communicate()[1], "gpu-check: interrupted before it had results\n")
        self.assertEqual(check.returncode, 130)
        self.assertFalse(is_alive(int(asked.read_text())))

    def test_an_interrupt_ends_what_runs_and_leaves_the_results(self):
        self.behave("hangs")
        environment = dict(os.environ, PEERS=str(self.peers), PYTHON=sys.executable, PYTHONPATH=str(self.folder))
        command = [sys.executable, "-B", str(GPU_CHECK), "--on-host", "--parts", "start,torch_eager,torch_compile", "--json", str(self.json)]
        check = subprocess.Popen(command, env=environment, cwd=str(self.folder), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in check.stdout:
            if "engines known" in line:
                break
        check.send_signal(signal.SIGTERM)  # as a batch system does when the time is over
        rest = check.stdout.read()
        check.stdout.close()
        self.assertEqual(check.wait(), 130, rest)
        found, results = self.results()
        self.assertTrue(found["interrupted"])
        self.assertEqual([r["part"] for r in found["results"]], ["start", "start"])
        if (self.peers / "child").exists():
            self.assertFalse(is_alive(int((self.peers / "child").read_text())))

    def test_without_a_gpu_one_line_says_what_is_missing(self):
        done = self.run_check(troupe=self.stub_troupe(WITHOUT))
        self.assertEqual(done.returncode, 77)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr, "gpu-check: no GPU can be used: no NVIDIA driver is installed; libcudnn.so.9 cannot be loaded (--on-host runs what needs none)\n")
        self.assertFalse(self.json.exists())

    def test_a_dry_run_lists_every_command_with_its_deadline(self):
        done = self.run_check("--dry-run", troupe=self.stub_troupe(WITH))
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        count = {part: sum(1 for line in lines if line.startswith(part + " ")) for part in ("training", "speed", "torch_eager", "torch_compile", "sanitizer")}
        self.assertEqual(count, {"training": 20, "speed": 12, "torch_eager": 8, "torch_compile": 8, "sanitizer": 6})
        self.assertTrue(all("at most" in line for line in lines))
        self.assertFalse(self.json.exists())
        commands = [line for line in lines if "cluster.workers=8" in line]
        self.assertEqual(len(commands), 7)  # two data sets by three strategies, and the part `workers`
        self.assertTrue(all("cluster.device=cuda " in line for line in commands))
        first = [line for line in lines if line.startswith("training ")][:2]
        self.assertTrue(all("exchange.endpoint=tcp" in line for line in first), first)
        self.assertIn("torch_compile  alexnet, batch 256 ", next(line for line in lines if line.startswith("torch_compile ")))

    def test_the_sanitizer_runs_over_tests_that_there_are(self):
        lines = self.run_check("--dry-run", "--parts", "sanitizer", troupe=self.stub_troupe(WITH)).stdout.splitlines()
        steps = parts.steps("sanitizer", machine.Machine(False, None))
        self.assertEqual(len(steps), len(lines))
        for step in steps:
            program = next(pathlib.Path(word) for word in step.command if word.endswith("_tests"))
            tests = next(word for word in step.command if word.startswith("--gtest_filter="))
            listed = subprocess.run([program, "--gtest_list_tests", tests], stdout=subprocess.PIPE, text=True, check=True).stdout
            self.assertGreaterEqual(sum(1 for line in listed.splitlines() if line.startswith("  ")), tests.count(":") + 1, step.name)

    def test_libraries_of_wheels_come_behind_those_that_the_caller_names(self):
        wheel = self.folder / "nvidia" / "cudnn" / "lib"
        wheel.mkdir(parents=True)
        (wheel / "libcudnn.so.9").write_text("")
        with unittest.mock.patch.dict(os.environ, {"PYTHONPATH": str(self.folder), "PYTHON": sys.executable, "LD_LIBRARY_PATH": "/opt/own", "TROUPE": str(self.stub_troupe(WITH))}):
            folders = machine.Machine(False, None).environment()["LD_LIBRARY_PATH"].split(":")
        self.assertEqual(folders[0], "/opt/own")
        self.assertIn(str(wheel), folders[1:])

    def test_programs_may_be_named_from_the_callers_folder(self):
        self.stub("python", "#!/bin/sh\nexec '{}' \"$@\"\n".format(sys.executable))
        self.stub_troupe(WITHOUT)
        done = self.run_check("--on-host", "--parts", "torch_eager", PYTHON="./python", PYTHONPATH=".", troupe="troupe", PEERS="peers")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found, results = self.results()
        self.assertEqual((results["torch_eager", "lenet, batch 2"]["status"], found["torch"]), ("ok", "9.9"))

    def test_a_question_that_takes_too_long_is_told_from_an_absence(self):
        values = {"PYTHONPATH": str(self.folder), "PYTHON": sys.executable, "PEERS": str(self.peers)}
        with unittest.mock.patch.dict(os.environ, dict(values, TROUPE=str(self.stub_troupe(WITH)))):
            here = machine.Machine(False, None)
            (self.folder / "torch.py").write_text("import signal\nsignal.pause()\n")
            with unittest.mock.patch.object(machine, "LONGEST_S", 0.5):
                self.assertEqual(here.why_no_torch(), sys.executable + " took longer than 0.5 s to import torch and torchvision")
            (self.folder / "torch.py").write_text("raise ImportError\n")
            here.torch = None
            self.assertEqual(here.why_no_torch(), sys.executable + " has no torch and torchvision (PYTHON names another one)")
            self.stub_troupe(WITH, before="import signal; signal.pause()")
            with unittest.mock.patch.object(machine, "LONGEST_S", 0.5):
                self.assertIn("doctor --json took longer than 0.5 s", machine.Machine(False, None).missing())

    def test_wrong_arguments(self):
        for arguments in (["--parts", "tests,speeed"], ["--parts", ","], ["--minutes", "0"], ["--data", self.folder / "none"], ["--frobnicate"]):
            done = self.run_check("--dry-run", *arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn("gpu-check: error: ", done.stderr)


if __name__ == "__main__":
    signal.alarm(280)
    unittest.main()
