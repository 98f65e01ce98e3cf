"""`troupe watch` beside `troupe train` and `troupe serve`: the same lines, the same exit code, also over a service that restarts."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

TROUPE = pathlib.Path(os.environ["TROUPE"]).resolve()
PATIENCE = 90  # seconds: only a hang lasts so long

CONFIG = """
[run]
name = "{name}"
epochs = {epochs}
dir = "{runs}"
checkpoint_every = "1000 epochs"
[model]
name = "mlp"
[data]
name = "glyphs"
batch = [64]
train_samples = 4000
test_samples = 400
[train]
lr = {lr}
[strategy]
name = "easgd"
[cluster]
workers = 2
{more}
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def until(condition, what):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        threading.Event().wait(0.02)
    raise AssertionError(what)


class Lines:
    """What a process prints, as it comes."""

    def __init__(self, process):
        self.process, self.lines = process, []
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def has(self, pattern):
        return lambda: any(re.search(pattern, line) for line in list(self.lines))

    def end(self):
        code = self.process.wait(PATIENCE)
        self.thread.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return code


class WatchTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.runs = os.path.join(self.folder.name, "runs")
        os.mkdir(self.runs)
        self.port = free_port()
        self.token_file = os.path.join(self.folder.name, "token")
        added = subprocess.run([TROUPE, "serve", "--dir", self.runs, "--add-user", "w", "--role", "read"],
                               capture_output=True, text=True, check=True)
        pathlib.Path(self.token_file).write_text(added.stdout.split()[-1] + "\n")
        self.serve()
        self.addCleanup(lambda: self.end_service())

    def serve(self):
        self.service = subprocess.Popen([TROUPE, "serve", "--dir", self.runs, "--listen", f"127.0.0.1:{self.port}"],
                                        stdout=subprocess.PIPE, text=True)
        self.assertIn("serves", self.service.stdout.readline())

    def end_service(self):
        self.service.terminate()
        self.service.wait(PATIENCE)
        self.service.stdout.close()

    def watch(self, *arguments):
        process = subprocess.Popen(
            [TROUPE, "watch", f"http://127.0.0.1:{self.port}", *arguments, "--token-file", self.token_file],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return Lines(process)

    def train(self, epochs=3, lr=0.05, more="", name="watched"):
        config = os.path.join(self.folder.name, "a.toml")
        pathlib.Path(config).write_text(CONFIG.format(runs=self.runs, epochs=epochs, lr=lr, more=more, name=name))
        process = subprocess.Popen([TROUPE, "train", config], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   text=True, env={**os.environ, "TERM": "dumb"})
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def run_name(self, name="watched"):
        return until(lambda: [p.parent.name for p in pathlib.Path(self.runs).glob(f"*-{name}/metrics.jsonl")
                              if b"\n" in p.read_bytes()], "the run begins")[0]

    @staticmethod
    def telling(lines):
        """Without the lines that come every five seconds."""
        return [line for line in lines if line and not re.search(r"epoch \d+/\d+.*step", line)]

    def test_a_run_that_is_over_has_the_lines_of_train(self):
        trained = self.train().communicate(timeout=PATIENCE)[1].splitlines()
        watch = self.watch(self.run_name())
        self.assertEqual(watch.end(), 0)
        self.assertEqual(self.telling(watch.lines), self.telling(trained))
        self.assertTrue(any("test accuracy" in line for line in watch.lines))

    def test_a_run_is_watched_to_its_end_over_a_restart_of_the_service(self):
        training = self.train(epochs=2, more="synthetic_step_ms = 30.0")
        watch = self.watch(self.run_name(), "--json")
        until(watch.has('"kind":"worker"'), "reports")
        self.end_service()
        until(lambda: training.poll() is not None or len(watch.lines) > 3, "more lines, or the end")
        self.serve()
        training.communicate(timeout=PATIENCE)
        self.assertEqual(watch.end(), 0)
        file = (pathlib.Path(self.runs) / self.run_name() / "metrics.jsonl").read_text().splitlines()
        self.assertEqual(watch.lines, file, "each line comes once")

    def test_the_error_of_a_run_is_that_of_the_watch(self):
        training = self.train(lr=1e30)
        training.communicate(timeout=PATIENCE)
        self.assertEqual(training.returncode, 70)
        self.assertEqual(self.watch(self.run_name()).end(), 70)

    def test_a_run_whose_process_is_gone_ends_the_watch(self):
        training = self.train(epochs=100000, more="synthetic_step_ms = 20.0")
        watch = self.watch(self.run_name(), "--json")
        until(watch.has('"kind":"worker"'), "reports")
        training.kill()
        training.communicate()
        self.assertEqual(watch.end(), 75)

    def test_ctrl_c_ends_a_watch_and_not_the_run(self):
        training = self.train(epochs=100000, more="synthetic_step_ms = 20.0")
        watch = self.watch(self.run_name())
        until(watch.has("easgd"), "the first line")
        watch.process.send_signal(signal.SIGINT)
        self.assertEqual(watch.end(), 130)
        self.assertIsNone(training.poll())
        training.kill()
        training.communicate()

    def test_a_service_is_watched(self):
        watch = self.watch()
        json_watch = self.watch("--json")
        # A run before the watched one: the news of its end tell that both are connected.
        before = self.train(epochs=100000, more="synthetic_step_ms = 20.0", name="before")
        self.run_name("before")
        until(watch.has("-before: running"), "the run before")
        until(json_watch.has('-before".*"status":"running"'), "the run before as JSON")
        before.kill()
        before.communicate()
        until(watch.has("-before: killed"), "the end of the run before")
        until(json_watch.has('-before".*"status":"killed"'), "the same as JSON")
        training = self.train(epochs=3, more="synthetic_step_ms = 30.0")
        self.run_name()
        training.send_signal(signal.SIGSTOP)  # it does not end before it is seen
        until(watch.has("-watched: running"), "the run begins")
        until(json_watch.has('-watched".*"status":"running"'), "the same as JSON")
        training.send_signal(signal.SIGCONT)
        until(watch.has("-watched: .*accuracy"), "an evaluation")
        training.communicate(timeout=PATIENCE)
        until(watch.has("-watched: done, test accuracy"), "the run ends")
        told = [line.split("-watched: ", 1)[1] for line in watch.lines if "-watched: " in line]
        self.assertEqual(told[0], "running")
        self.assertRegex(told[1], "^watched: easgd", "its lines from the first one on")
        self.assertRegex(told[-2], "^ended after", "and to the last one, which comes before the news that it is done")
        self.assertEqual(sum("accuracy" in line and line.startswith("epoch") for line in told), 3)
        until(json_watch.has('"status":"done"'), "the same as JSON")
        for line in json_watch.lines:
            self.assertIn("event", json.loads(line))
        for one in (watch, json_watch):
            one.process.send_signal(signal.SIGINT)
            self.assertEqual(one.end(), 0)

    def test_wrong_tokens_and_runs_are_config_errors(self):
        self.assertEqual(self.watch("none").end(), 78)
        pathlib.Path(self.token_file).write_text("wrong\n")
        self.assertEqual(self.watch().end(), 78)


if __name__ == "__main__":
    unittest.main()
