"""scripts/count-tests.py: what it makes of results."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

PROGRAM = """<testsuites tests="5" failures="1" errors="0"><testsuite>
<testcase name="a" status="run" result="completed"/>
<testcase name="b" status="run" result="completed"><failure message="no"/></testcase>
<testcase name="c" status="run" result="skipped"><skipped message="x.cpp:1&#x0A;no NVIDIA driver is installed on this machine (libcuda.so.1)"/></testcase>
<testcase name="d" status="run" result="skipped"><skipped message="x.cpp:2&#x0A;'gpu': its module troupe_gpu.so is not there"/></testcase>
<testcase name="e" status="run" result="skipped"><skipped message="x.cpp:3&#x0A;this build has no HDF5"/></testcase>
</testsuite></testsuites>"""


class CountTests(unittest.TestCase):
    def count(self, program):
        with tempfile.TemporaryDirectory() as directory:
            results = pathlib.Path(directory)
            (results / "release").mkdir()
            (results / "release" / "gpu.xml").write_text(program)
            (results / "release.ctest").write_text('<testsuite><testcase name="gpu" status="run"/></testsuite>')
            (results / "checks").write_text("ok headers\nok layers\n")
            command = [sys.executable, ROOT / "scripts" / "count-tests.py", directory]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            return done.returncode, done.stdout.splitlines()

    def test_skipped_tests_are_counted_and_those_that_need_a_gpu(self):
        code, lines = self.count(PROGRAM)
        self.assertEqual(code, 1)
        self.assertEqual(lines[-2:], ["2 skipped tests need an NVIDIA GPU", "3 passed, 1 failed, 3 skipped"])

    def test_nothing_is_said_of_gpus_where_all_tests_ran(self):
        code, lines = self.count('<testsuites tests="1" failures="0" errors="0"><testcase name="a" result="completed"/></testsuites>')
        self.assertEqual((code, lines), (0, ["3 passed, 0 failed"]))


if __name__ == "__main__":
    unittest.main()
