"""Where gpu-check finds things: the program, the tests, the GPU with its libraries, data, PyTorch."""
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from .runner import end, lives

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LONGEST_S = 60  # that a question to this machine may take


def ask(command, environment=None):
    """Standard output, empty where the command fails or is not there; and whether it took too long."""
    with tempfile.TemporaryFile() as output:
        try:
            child = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL, env=environment, start_new_session=True)
        except OSError:
            return "", False
        try:
            child.wait(timeout=LONGEST_S)
        except subprocess.TimeoutExpired:
            return "", True
        finally:  # also where the user interrupts
            if lives(child):
                end(child)
        output.seek(0)
        return output.read().decode(errors="replace") if child.returncode == 0 else "", False


def output_of(command):
    return ask(command)[0]


def absolute(program):
    """Commands run in another folder than the caller's. Links stay: through one, Python finds the packages of its virtual environment."""
    found = shutil.which(str(program))
    return os.path.abspath(found) if found else str(program)


class Machine:
    def __init__(self, on_host, data):
        self.on_host = on_host
        self.work = None  # a temporary folder, while commands run
        self.torch, self.torch_late = None, False  # of PyTorch: version, whether it finds a GPU, whether it compiles; empty: not there
        troupe = os.environ.get("TROUPE") or next((p for p in (ROOT / "bin/troupe", ROOT / "build/bin/troupe") if p.exists()), ROOT / "build/bin/troupe")
        self.troupe = pathlib.Path(os.path.abspath(troupe))
        self.has_program = self.troupe.exists()
        self.configs = ROOT / "configs"
        self.python = absolute(os.environ.get("PYTHON") or sys.executable or "python3")
        self.wheels = self.wheel_folders()
        self.doctor, self.doctor_late = self.ask_doctor()
        self.data = data or next((p for p in (ROOT.parent / "shared/data", ROOT / "data") if p.is_dir()), None)
        self.peers = pathlib.Path(os.path.abspath(os.environ.get("PEERS") or ROOT.parent / "shared/peers"))
        self.device = "cuda"
        if on_host:  # the program's own stand-in, if it trains with that
            self.device = "cuda_on_host" if "cuda_on_host" in output_of([self.troupe, "bench", "step", "--help"]) else "cpu"

    def program(self, name):
        """A test program or benchmark beside the program; None: not there."""
        path = self.troupe.resolve().parent / name
        return path if path.exists() else None

    def wheel_folders(self):
        """Folders of NVIDIA's libraries that Python packages brought."""
        paths = output_of([self.python, "-c", "import sys; print('\\n'.join(sys.path))"]).splitlines()
        return sorted({folder for path in paths if path for folder in glob.glob(os.path.join(path, "nvidia", "*", "lib")) if glob.glob(os.path.join(folder, "*.so*"))})

    def environment(self):
        """For the program: it finds the wheels' libraries behind those that the caller names, and keeps its measurements in the work folder."""
        environment = dict(os.environ)
        for name, more in (("LD_LIBRARY_PATH", self.wheels), ("PYTHONPATH", [])):
            folders = [os.path.abspath(f) for f in environment.get(name, "").split(":") if f] + more
            if folders:
                environment[name] = ":".join(folders)
        if self.work:
            environment["XDG_CACHE_HOME"] = str(self.work / "cache")
            environment["HOME"] = environment.get("HOME") or str(self.work)
        return environment

    def ask_doctor(self):
        text, late = ask([self.troupe, "doctor", "--json"], self.environment()) if self.has_program else ("", False)
        try:
            return json.loads(text), late
        except ValueError:
            return {}, late

    def missing(self):
        """Why nothing can run, in one line; empty: it can."""
        if not self.has_program:
            return "there is no {}: run scripts/build, or set TROUPE".format(self.troupe)
        if self.doctor_late:
            return "{} doctor --json took longer than {} s: the driver may hang".format(self.troupe, LONGEST_S)
        if not self.doctor:
            return "{} doctor --json says nothing: this machine cannot run the program".format(self.troupe)
        cuda = self.doctor["cuda"]
        if self.on_host or (cuda["built"] and cuda["devices"] and cuda["libraries"]):
            return ""
        return "no GPU can be used: {} (--on-host runs what needs none)".format("; ".join(cuda["why"]) or "troupe doctor finds none")

    def why_no_torch(self, compiles=False):
        """Why nothing can be compared with PyTorch; empty: it can."""
        if not (self.peers / "torch_train.py").exists():
            return "no torch_train.py in {} (PEERS names its folder)".format(self.peers)
        if self.torch is None:
            probe = "import torch, torchvision; print(torch.__version__, torch.cuda.is_available(), hasattr(torch, 'compile'))"
            text, self.torch_late = ask([self.python, "-c", probe])
            self.torch = text.split()
        if self.torch_late:
            return "{} took longer than {} s to import torch and torchvision".format(self.python, LONGEST_S)
        if len(self.torch) != 3:
            return "{} has no torch and torchvision (PYTHON names another one)".format(self.python)
        if not self.on_host and self.torch[1] != "True":
            return "the torch {} of {} finds no GPU".format(self.torch[0], self.python)
        if compiles and self.torch[2] != "True":
            return "torch {} has no compile()".format(self.torch[0])
        return ""

    def sanitizer(self):
        """compute-sanitizer; None: not there."""
        found = absolute("compute-sanitizer") if shutil.which("compute-sanitizer") else None
        places = [os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin/compute-sanitizer"), "/usr/local/cuda/bin/compute-sanitizer"]
        places += [p for folder in self.wheels for p in glob.glob(os.path.join(os.path.dirname(folder), "**", "compute-sanitizer"), recursive=True)]
        return found or next((os.path.abspath(p) for p in places if os.access(p, os.X_OK) and os.path.isfile(p)), None)

    def dataset(self, name):
        """The folder of a data set, None where it is not on this machine."""
        path = self.data / name if self.data else None
        return path.resolve() if path and path.is_dir() and any(path.iterdir()) else None

    def facts(self):
        """What the figures belong to."""
        cuda = self.doctor.get("cuda", {})
        smi = output_of(["nvidia-smi", "--query-gpu=name,driver_version,memory.total,power.limit", "--format=csv,noheader"]).strip()
        facts = {"version": self.doctor.get("version"), "device": (cuda.get("names") or [None])[0], "driver_cuda": cuda.get("driver"), "libraries": cuda.get("libraries"),
                 "nvidia_smi": smi.splitlines()[0] if smi else None, "cpu": self.doctor.get("cpu"), "threads": self.doctor.get("threads"),
                 "data": {name: str(self.dataset(name)) if self.dataset(name) else None for name in ("mnist", "cifar10")}}
        facts["torch"] = self.torch[0] if self.torch else None
        return facts
