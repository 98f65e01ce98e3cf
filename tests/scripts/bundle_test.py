"""scripts/bundle: what it packs runs from another folder with nothing of this machine but glibc, and asks for glibc 2.34 at most."""
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from bundling import elf  # noqa: E402

GLIBC = r"ld-linux-x86-64|libc\.|libm\.|libdl\.|libpthread\.|librt\.|libresolv\.|linux-vdso"


class Found(ctypes.Structure):
    """struct dl_find_object of dlfcn.h."""
    _fields_ = [("flags", ctypes.c_ulonglong), ("map_start", ctypes.c_void_p), ("map_end", ctypes.c_void_p), ("link_map", ctypes.c_void_p), ("eh_frame", ctypes.c_void_p),
                ("reserved", ctypes.c_ulonglong * 7)]


class BundleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        build = pathlib.Path(os.environ["TROUPE"]).parent.parent
        done = subprocess.run([ROOT / "scripts" / "bundle", "--no-archive", "--build", build, "--output", cls.folder.name], capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        cls.printed = done.stdout
        cls.bundle, = pathlib.Path(cls.folder.name).iterdir()
        cls.files = [f for f in cls.bundle.rglob("*") if elf.is_elf(f)]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_there(self, *command):
        """Without a variable of this environment, from another folder."""
        return subprocess.run([str(c) for c in command], capture_output=True, text=True, env={}, cwd="/", stdin=subprocess.DEVNULL)

    def test_nothing_needs_a_later_glibc(self):
        newest = {str(f.relative_to(self.bundle)): max(map(elf.glibc_number, elf.glibc_needs(f)), default=(2, 0)) for f in self.files}
        self.assertEqual({name: version for name, version in newest.items() if version > (2, 34)}, {})
        self.assertIn("needs glibc 2.34\n", self.printed)

    def test_libraries_come_from_the_bundle_alone(self):
        for program in (self.bundle / "bin").iterdir():
            found = self.run_there("/usr/bin/ldd", program).stdout
            self.assertNotIn("not found", found)
            foreign = [line for line in found.splitlines() if str(self.bundle) not in line and not re.search(GLIBC, line)]
            self.assertEqual(foreign, [], program.name)

    def test_nothing_of_nvidia_is_carried(self):
        carried = [f.name for f in self.files if re.match(r"lib(cuda|cudnn|cublas|cudart|nvrtc|nccl|nvidia)", f.name)]
        self.assertEqual(carried, [])

    def test_every_library_has_its_licence(self):
        documented = {f.parent.name for f in (self.bundle / "share" / "doc").glob("*/copyright")}
        for package in ("libdnnl2", "libcaf-core0.17", "libfmt9", "libssl3", "libstdc++6", "libarchive13", "nlohmann-json3-dev"):
            self.assertIn(package, documented)
        self.assertTrue((self.bundle / "LICENSE").exists())
        self.assertTrue(any((self.bundle / "share" / "doc" / "common-licenses").iterdir()))

    def test_it_trains_and_its_tests_run_elsewhere(self):
        doctor = self.run_there(self.bundle / "bin" / "troupe", "doctor")
        self.assertEqual(doctor.returncode, 0, doctor.stderr)
        with tempfile.TemporaryDirectory() as runs:
            trained = self.run_there(self.bundle / "build" / "bin" / "troupe", "train", self.bundle / "configs" / "glyphs-easgd.toml", "--quiet", "--set", "run.dir=" + runs,
                                     "--set", "run.epochs=1", "--set", "data.train_samples=256", "--set", "data.test_samples=64")
            self.assertEqual(trained.returncode, 0, trained.stderr)
        if (self.bundle / "bin" / "gpu_tests").exists():
            # Exceptions are thrown and caught: libgcc's unwinder finds its frames.
            tests = self.run_there(self.bundle / "bin" / "gpu_tests", "--gtest_filter=KernelsOf.*", "--gtest_brief=1")
            self.assertEqual(tests.returncode, 0, tests.stdout)
            self.assertRegex(tests.stdout, r"PASSED  \] [1-9]")

    def test_gpu_check_is_there(self):
        listed = self.run_there(sys.executable, self.bundle / "scripts" / "gpu-check", "--dry-run", "--on-host")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertIn(str(self.bundle / "bin" / "troupe"), listed.stdout)

    def test_replacements_of_glibcs_functions_do_as_glibc_does(self):
        with tempfile.TemporaryDirectory() as folder:
            library = pathlib.Path(folder) / "compat.so"
            # As on a glibc that has no _dl_find_object.
            subprocess.run(["gcc", "-std=c11", "-O2", "-fPIC", "-shared", "-Ddlvsym(handle,name,version)=NULL", "-o", library, ROOT / "scripts/bundling/glibc_compat.c"], check=True)
            compat, glibc = ctypes.CDLL(str(library)), ctypes.CDLL("libc.so.6")
            for function in (glibc.printf, compat.arc4random):  # of two files
                address, ours, theirs = ctypes.cast(function, ctypes.c_void_p), Found(), Found()
                self.assertEqual(compat._dl_find_object(address, ctypes.byref(ours)), 0)
                if hasattr(glibc, "_dl_find_object"):
                    self.assertEqual(glibc._dl_find_object(address, ctypes.byref(theirs)), 0)
                    self.assertEqual(ours.eh_frame, theirs.eh_frame)
                self.assertLessEqual(ours.map_start, address.value)
                self.assertGreater(ours.map_end, address.value)
            self.assertEqual(compat._dl_find_object(ctypes.c_void_p(16), ctypes.byref(Found())), -1)
            first, second = ctypes.create_string_buffer(1000), ctypes.create_string_buffer(1000)
            compat.arc4random_buf(first, ctypes.c_size_t(1000))
            compat.arc4random_buf(second, ctypes.c_size_t(1000))
            self.assertNotEqual(first.raw, second.raw)
            self.assertGreater(len(set(first.raw)), 100)


if __name__ == "__main__":
    unittest.main()
