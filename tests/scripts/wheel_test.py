"""scripts/wheel: pip installs what it packs, without network, and the command and the package work there."""
import base64
import csv
import hashlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from bundling import elf  # noqa: E402


def has(python, *modules):
    looks = f"import importlib.util as u; raise SystemExit(not all(u.find_spec(m) for m in {modules!r}))"
    return os.path.exists(python) and subprocess.run([python, "-c", looks]).returncode == 0


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        build = pathlib.Path(os.environ["TROUPE"]).parent.parent
        done = subprocess.run([ROOT / "scripts" / "wheel", "--build", build, "--output", cls.folder.name], capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        cls.wheel, = pathlib.Path(cls.folder.name).glob("*.whl")
        cls.zip = zipfile.ZipFile(cls.wheel)

    @classmethod
    def tearDownClass(cls):
        cls.zip.close()
        cls.folder.cleanup()

    def test_its_name_says_what_its_files_need(self):
        version, major, minor = re.fullmatch(r"troupe-([\d.]+)-py3-none-manylinux_(\d+)_(\d+)_x86_64.whl", self.wheel.name).groups()
        self.assertIn(f"project(troupe VERSION {version} ", (ROOT / "CMakeLists.txt").read_text())
        with tempfile.TemporaryDirectory() as folder:
            self.zip.extractall(folder)
            binaries = [f for f in pathlib.Path(folder).rglob("*") if elf.is_elf(f)]
            needs = [elf.glibc_number(v) for f in binaries for v in elf.glibc_needs(f)]
        self.assertGreater(len(binaries), 20)
        self.assertEqual(max(needs), (int(major), int(minor)))

    def test_its_record_lists_every_file_with_its_hash(self):
        record, = (name for name in self.zip.namelist() if name.endswith(".dist-info/RECORD"))
        listed = {row[0]: row[1:] for row in csv.reader(io.StringIO(self.zip.read(record).decode()))}
        self.assertEqual(sorted(listed), sorted(self.zip.namelist()))
        for name, (digest, size) in listed.items():
            if name != record:
                data = self.zip.read(name)
                self.assertEqual(digest, "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode())
                self.assertEqual(int(size), len(data))

    def test_it_carries_the_package_and_licences(self):
        names = self.zip.namelist()
        for source in (ROOT / "python" / "troupe").iterdir():
            if source.is_file():
                self.assertIn(f"troupe/{source.name}", names)
        self.assertIn("troupe/_program/share/doc/libcaf-core0.17/copyright", names)
        self.assertFalse([name for name in names if "__pycache__" in name])

    def test_pip_installs_it(self):
        python = next((p for p in ("/usr/bin/python3", sys.executable) if has(p, "venv", "ensurepip")), None)
        if python is None:
            self.skipTest("no Python here makes virtual environments (python3-venv)")
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder) / "venv"
            subprocess.run([python, "-m", "venv", "--system-site-packages", place], check=True)
            pip = subprocess.run([place / "bin" / "pip", "install", "--no-index", "--no-deps", "--no-compile", "--quiet", self.wheel], capture_output=True, text=True)
            self.assertEqual(pip.returncode, 0, pip.stderr)
            doctor = subprocess.run([place / "bin" / "troupe", "doctor"], capture_output=True, text=True, env={}, cwd="/")
            self.assertEqual(doctor.returncode, 0, doctor.stderr)
            unknown = subprocess.run([place / "bin" / "troupe", "no-such-command"], capture_output=True, text=True, env={}, cwd="/")
            self.assertEqual(unknown.returncode, 2)  # the program's own exit code
            if not has(python, "numpy"):
                return
            program = "import numpy, troupe; p = {'w': numpy.ones(1, 'f')}; r = troupe.join(params=p)\nfor b in r.batches(4, 2): r.step(0)\nprint(troupe.__file__)"
            alone = subprocess.run([place / "bin" / "python", "-c", program], capture_output=True, text=True, env={}, cwd="/")
            self.assertEqual(alone.returncode, 0, alone.stderr)
            self.assertTrue(alone.stdout.startswith(str(place)), alone.stdout)


if __name__ == "__main__":
    unittest.main()
