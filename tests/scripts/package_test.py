"""The files of an installation, and the .deb of cpack: what is in it, and on what it depends. Skipped where dpkg-shlibdeps is missing."""
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

TROUPE = pathlib.Path(os.environ["TROUPE"]).resolve()
BUILD = TROUPE.parent.parent
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

FILES = [
    "usr/bin/troupe",
    "usr/lib/python3/dist-packages/troupe/__init__.py",
    "usr/lib/python3/dist-packages/troupe/py.typed",
    "usr/lib/systemd/system/troupe-node.service",
    "usr/lib/systemd/system/troupe-serve.service",
    "usr/share/bash-completion/completions/troupe",
    "usr/share/zsh/vendor-completions/_troupe",
    "usr/share/fish/vendor_completions.d/troupe.fish",
    "usr/share/man/man1/troupe.1.gz",
    "usr/share/man/man1/troupe-runs-list.1.gz",
    "usr/share/man/man5/troupe-config.5.gz",
    "usr/share/doc/troupe/README.md",
    "usr/share/doc/troupe/copyright",
    "usr/share/doc/troupe/docs/installing.md",
    "usr/share/troupe/slurm/train.sbatch",
]


@unittest.skipUnless(shutil.which("cpack") and shutil.which("dpkg-shlibdeps") and shutil.which("gzip"), "no cpack, dpkg-dev or gzip")
class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        here = pathlib.Path(cls.folder.name)
        done = subprocess.run(["cpack", "--config", BUILD / "CPackConfig.cmake", "-B", here], capture_output=True, text=True, cwd=here)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        cls.deb, = here.glob("*.deb")
        cls.root = here / "root"
        subprocess.run(["dpkg-deb", "--extract", cls.deb, cls.root], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def field(self, name):
        return subprocess.run(["dpkg-deb", "--field", self.deb, name], capture_output=True, text=True, check=True).stdout.strip()

    def test_files(self):
        wanted = FILES + [f"usr/share/troupe/{file.relative_to(ROOT)}" for file in sorted((ROOT / "configs").rglob("*.toml"))]
        wanted += [f"usr/lib/troupe/{module.name}" for module in (BUILD / "lib").glob("troupe_*.so")]
        self.assertEqual([file for file in wanted if not (self.root / file).is_file()], [])
        self.assertEqual([str(file) for file in self.root.rglob("__pycache__")], [])
        self.assertEqual({file.relative_to(self.root).parts[0] for file in self.root.rglob("*")}, {"usr"})

    def test_every_command_has_a_page(self):
        pages = {page.name for page in (self.root / "usr/share/man/man1").iterdir()}
        text = subprocess.run([TROUPE, "--help"], capture_output=True, text=True, check=True).stdout
        commands = re.findall(r"^  ([a-z]+)  ", text[text.index("Subcommands:"):], re.M)
        self.assertGreater(len(commands), 15)
        self.assertEqual([c for c in commands if f"troupe-{c}.1.gz" not in pages], [])
        with gzip.open(self.root / "usr/share/man/man1/troupe.1.gz", "rt") as page:
            self.assertIn("TROUPE", page.read())

    def test_modules_are_no_dependencies(self):
        depends, suggests = self.field("Depends"), self.field("Suggests")
        self.assertIn("libc6 (>= ", depends)
        for library in ("libopenmpi", "libucx", "libhdf5", "libcuda"):
            self.assertNotIn(library, depends)
        for module, library in (("mpi", "libopenmpi"), ("ucx", "libucx"), ("hdf5", "libhdf5")):
            if (BUILD / "lib" / f"troupe_{module}.so").exists():
                self.assertIn(library, suggests)

    def test_the_installed_program_runs_and_finds_its_modules(self):
        program = self.root / "usr/bin/troupe"
        self.assertEqual(subprocess.run([program, "--version"], capture_output=True, text=True).stdout, f"troupe {self.field('Version')}\n")
        doctor = subprocess.run([program, "doctor"], capture_output=True, text=True).stdout
        here = subprocess.run([TROUPE, "doctor"], capture_output=True, text=True).stdout
        for module in ("HDF5", "MPI", "UCX"):
            line = re.compile(rf"^{module} .*$", re.M)
            self.assertEqual(line.findall(doctor), line.findall(here))

    def test_units_are_valid(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze")
        units = self.root / "usr/lib/systemd/system"
        for unit in sorted(units.iterdir()):
            text = unit.read_text()
            # systemd looks for the program in /usr/bin; here it is elsewhere.
            checked = pathlib.Path(self.folder.name) / unit.name
            checked.write_text(text.replace("ExecStart=troupe", f"ExecStart={self.root}/usr/bin/troupe"))
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", checked], capture_output=True, text=True)
            self.assertEqual((done.returncode, [line for line in done.stderr.splitlines() if unit.name in line]), (0, []))


if __name__ == "__main__":
    unittest.main()
