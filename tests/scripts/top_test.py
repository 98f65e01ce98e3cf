"""`troupe top` on a real terminal (a pseudo one) and a real run: what it draws, what keys do, and that it leaves the terminal as it was."""
import codecs
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

TROUPE = pathlib.Path(os.environ["TROUPE"]).resolve()
PATIENCE = 60  # seconds: only a hang lasts so long

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


class Screen:
    """The few control sequences that the program sends, on a grid of characters: nothing here is the program's code."""

    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.clear()
        self.alternate, self.cursor = False, True
        self.decoder, self.rest = codecs.getincrementaldecoder("utf-8")(), ""

    def clear(self):
        self.grid = [[" "] * self.columns for _ in range(self.rows)]
        self.row = self.column = 0

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.grid)

    def feed(self, data):
        # A read may end within a character or a control sequence: the rest comes with the next one.
        text, self.rest = self.rest + self.decoder.decode(data), ""
        at = 0
        while at < len(text):
            if text[at] != "\x1b":
                if self.row < self.rows and self.column < self.columns:
                    self.grid[self.row][self.column] = text[at]
                self.column += 1
                at += 1
                continue
            if at + 1 == len(text):
                break
            assert text[at + 1] == "[", repr(text[at : at + 10])
            end = at + 2
            while end < len(text) and not text[end].isalpha():
                end += 1
            if end == len(text):
                break
            self.obey(text[at + 2 : end], text[end])
            at = end + 1
        self.rest = text[at:]

    def obey(self, parameters, command):
        if parameters.startswith("?"):
            on = command == "h"
            if parameters == "?1049":
                self.alternate = on
            elif parameters == "?25":
                self.cursor = on
            else:
                assert parameters == "?7", parameters
        elif command == "H":
            row, column = (parameters or "1;1").split(";")
            self.row, self.column = int(row) - 1, int(column) - 1
        elif command == "J":
            assert parameters == "2"
            self.clear()
        elif command == "K":
            if self.row < self.rows:
                for column in range(self.column, self.columns):
                    self.grid[self.row][column] = " "
        else:
            assert command == "m", command


class Top:
    """The program on a terminal of its own."""

    def __init__(self, arguments, rows=30, columns=110, **options):
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.output = b""
        self.process = subprocess.Popen(
            [TROUPE, "top", *arguments],
            stdin=self.slave,
            stdout=self.slave,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", "LANG": "C.UTF-8", **options.get("env", {})},
            cwd=options.get("cwd"),
        )

    def resize(self, rows, columns):
        before = getattr(self, "screen", None)
        self.screen = Screen(rows, columns)
        if before:
            self.screen.decoder, self.screen.rest = before.decoder, before.rest
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if hasattr(self, "process"):
            os.kill(self.process.pid, signal.SIGWINCH)

    def read(self):
        while select.select([self.master], [], [], 0.05)[0]:
            data = os.read(self.master, 65536)
            self.output += data
            self.screen.feed(data)

    def until(self, condition, what):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.read()
            if condition(self.screen.text()):
                return
        raise AssertionError(f"{what}; the screen:\n{self.screen.text()}")

    def press(self, keys):
        os.write(self.master, keys)

    def end(self):
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < end:
            self.read()
        self.read()
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()
        os.close(self.master)
        os.close(self.slave)


CONFIG = """
[run]
name = "watched"
epochs = 100000
dir = "{runs}"
evaluate_every = "100000 epochs"
[model]
name = "mlp"
[data]
name = "glyphs"
batch = [16]
[strategy]
name = "easgd"
[cluster]
workers = 2
synthetic_step_ms = 20.0
"""


class TopTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.runs = os.path.join(cls.folder.name, "runs")
        config = os.path.join(cls.folder.name, "a.toml")
        pathlib.Path(config).write_text(CONFIG.format(runs=cls.runs))
        cls.training = subprocess.Popen(
            [TROUPE, "train", config], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(StopIteration, FileNotFoundError):
                cls.run_path = next(pathlib.Path(cls.runs).glob("*-watched"))
                if b'"kind":"worker"' in (cls.run_path / "metrics.jsonl").read_bytes():
                    return
            assert cls.training.poll() is None, cls.training.stderr.read()
        raise AssertionError("the run has not begun")

    @classmethod
    def tearDownClass(cls):
        cls.training.terminate()
        cls.training.wait()
        cls.training.stderr.close()
        cls.folder.cleanup()

    def top(self, *arguments, **options):
        top = Top([*arguments, "--dir", self.runs], **options)
        self.addCleanup(top.close)
        return top

    def assert_restored(self, top):
        self.assertEqual(termios.tcgetattr(top.slave), top.before)
        self.assertFalse(top.screen.alternate)
        self.assertTrue(top.screen.cursor)
        self.assertEqual(top.output.count(ENTER), top.output.count(LEAVE))

    def test_it_shows_the_newest_running_run_and_q_ends_it(self):
        top = self.top()
        top.until(lambda text: "running" in text and self.run_path.name in text, "the header")
        top.until(lambda text: "easgd, mlp on glyphs" in text and "samples/s" in text, "workers")
        steps = lambda text: text.split(" steps")[0].split()[-1]
        first = steps(top.screen.text())
        top.until(lambda text: steps(text) != first, "the steps go on")
        self.assertNotEqual(termios.tcgetattr(top.slave), top.before)
        top.press(b"q")
        self.assertEqual(top.end(), 0)
        self.assert_restored(top)

    def test_keys_change_the_view(self):
        top = self.top(str(self.run_path))
        top.until(lambda text: "[overview]" in text, "the overview")
        top.press(b"\t")
        top.until(lambda text: "[workers]" in text, "tab")
        top.press(b"s")
        top.until(lambda text: "sort: rate" in text, "s")
        top.press(b"3")
        top.until(lambda text: "[waits]" in text, "3")
        top.press(b"5")
        top.until(lambda text: "[members]" in text and "exchange" in text and "2 workers take part" in text, "5")
        top.press(b"?")
        top.until(lambda text: "scroll by a page" in text, "?")
        top.press(b"\x1b")
        top.until(lambda text: "scroll by a page" not in text, "Escape")
        top.press(b"\x03")
        self.assertEqual(top.end(), 0)
        self.assert_restored(top)

    def test_a_resized_terminal_is_filled_again(self):
        top = self.top(str(self.run_path))
        top.until(lambda text: "q quit" in text, "the last row")
        top.resize(10, 40)
        top.until(lambda text: "q quit" in text.splitlines()[-1] and "[overview]" in text, "a small screen")
        top.resize(1, 1)
        top.until(lambda text: text == self.run_path.name[0], "one character")
        top.press(b"q")
        self.assertEqual(top.end(), 0)
        self.assert_restored(top)

    def test_signals_restore_the_terminal(self):
        for number, code in ((signal.SIGTERM, 130), (signal.SIGHUP, 130), (signal.SIGQUIT, 130), (signal.SIGINT, 0),
                             (signal.SIGSEGV, -signal.SIGSEGV), (signal.SIGABRT, -signal.SIGABRT)):
            with self.subTest(number):
                top = self.top(str(self.run_path))
                top.until(lambda text: "q quit" in text, "the last row")
                os.kill(top.process.pid, number)
                self.assertEqual(top.end(), code)
                self.assert_restored(top)

    def test_a_suspended_program_gives_the_terminal_back_and_takes_it_again(self):
        for how in (lambda top: top.press(b"\x1a"), lambda top: os.kill(top.process.pid, signal.SIGTSTP)):
            top = self.top(str(self.run_path))
            top.until(lambda text: "q quit" in text, "the last row")
            how(top)
            _, status = os.waitpid(top.process.pid, os.WUNTRACED)
            self.assertTrue(os.WIFSTOPPED(status))
            top.read()
            self.assert_restored(top)
            os.kill(top.process.pid, signal.SIGCONT)
            top.until(lambda text: "q quit" in text and top.screen.alternate, "the screen again")
            top.press(b"q")
            self.assertEqual(top.end(), 0)
            self.assert_restored(top)

    def test_without_a_terminal_it_prints_the_state_once(self):
        lines = subprocess.run([TROUPE, "top", "--dir", self.runs], capture_output=True, text=True, check=True).stdout
        self.assertIn(self.run_path.name + "  running", lines)
        self.assertIn("samples/s", lines)
        self.assertNotIn("\x1b", lines)
        state = subprocess.run([TROUPE, "top", self.run_path.name, "--dir", self.runs, "--json"], capture_output=True,
                               text=True, check=True).stdout
        self.assertEqual(json.loads(state)["run"], self.run_path.name)
        self.assertEqual(len(json.loads(state)["workers"]), 2)

    def test_a_run_that_does_not_exist_leaves_the_terminal_alone(self):
        top = self.top("nonsense")
        self.assertEqual(top.end(), 78)
        self.assertEqual(top.output, b"")
        self.assert_restored(top)


if __name__ == "__main__":
    unittest.main()
