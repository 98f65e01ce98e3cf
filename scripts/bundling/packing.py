"""Programs of a build with everything that they need but glibc and CUDA, in a folder that runs on other machines. Shared by scripts/bundle and
scripts/wheel."""
import fnmatch
import pathlib
import re
import shutil
import subprocess
import sys

from bundling import elf

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OLDEST_GLIBC = (2, 34)
COMPAT = "libtroupe_compat.so"

MODULES = ["troupe_gpu.so", "troupe_cuda.so", "troupe_ucx.so", "troupe_mpi.so", "troupe_hdf5.so"]
TOOLS = ["patchelf", "strip", "readelf", "objdump", "ldd", "gcc", "dpkg-query"]
# Part of glibc, which the machine has.
GLIBC = ["ld-linux-*", "libc.so.*", "libm.so.*", "libmvec.so.*", "libdl.so.*", "libpthread.so.*", "librt.so.*", "libresolv.so.*", "libutil.so.*", "libanl.so.*",
         "libnsl.so.*", "libnss_*", "libthread_db.so.*"]
# The driver's and CUDA's: the machine's own, found through LD_LIBRARY_PATH or the loader's folders.
NVIDIA = ["libcuda.so*", "libcud*", "libcublas*", "libnvidia*", "libnvrtc*", "libnccl*", "libnv*"]
# A launcher and its library belong together, as network cards and their libraries do.
MACHINES_OWN = ["libmpi*", "libopen-*", "libibverbs.so*", "librdmacm.so*", "libmlx5.so*"]
HDF5 = ["libhdf5*"]
# Packages of headers or static libraries that are compiled in.
COMPILED_IN = ["libboost1.74-dev", "libcli11-dev", "libexpected-dev", "libgtest-dev", "librapidcheck-dev", "nlohmann-json3-dev", "libbenchmark-dev"]


def die(message):
    sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {message}")


def run(*command):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        die(f"{' '.join(map(str, command))}: {result.stderr.strip() or result.returncode}")
    return result.stdout


def matches(name, patterns):
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755 if source.stat().st_mode & 0o100 else 0o644)


class Libraries:
    """The shared libraries that files of the bundle need, and where this machine has them."""

    def __init__(self, left_out):
        self.left_out = left_out
        self.found = {}  # name -> path

    def add(self, file):
        """The file's libraries, and theirs."""
        places = dict(re.findall(r"^\s*(\S+) => (/\S+)", run("ldd", file), re.MULTILINE))
        pending = [file]
        while pending:
            for name in elf.needed(pending.pop()):
                if name in self.found or matches(name, self.left_out):
                    continue
                if name not in places:
                    die(f"{file} needs {name}, which is not on this machine")
                self.found[name] = pathlib.Path(places[name])
                pending.append(self.found[name])


def ucx_plugins(libraries):
    """UCX's transports: its library looks for them in the folder ucx beside itself."""
    folder = libraries.found["libucs.so.0"].resolve().parent / "ucx" if "libucs.so.0" in libraries.found else None
    return sorted(folder.glob("*.so.0")) if folder and folder.is_dir() else []


def package_of(file):
    """The Debian package that has this file; None: none."""
    path = file.resolve()
    for name in (str(path), str(path).removeprefix("/usr"), f"/usr{path}"):
        found = subprocess.run(["dpkg-query", "--search", name], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    return None


def carry_licences(bundle, libraries):
    """share/doc/PACKAGE/copyright of every package of which something is carried, and the licences that these name by path."""
    packages = set(COMPILED_IN)
    for path in libraries:
        package = package_of(path)
        if package is None:
            die(f"{path} is carried, and of no package: its licence is unknown")
        packages.add(package)
    common = set()
    for package in sorted(packages):
        source = pathlib.Path("/usr/share/doc") / package / "copyright"
        if not source.exists():
            if package in COMPILED_IN:
                continue
            die(f"{source} is missing: its licence must be carried")
        copy(source.resolve(), bundle / "share" / "doc" / package / "copyright")
        common.update(re.findall(r"/usr/share/common-licenses/([A-Za-z][\w.+-]*[\w+])", source.read_text(errors="replace")))
    for name in sorted(common):
        source = pathlib.Path("/usr/share/common-licenses") / name
        if source.exists():
            copy(source.resolve(), bundle / "share" / "doc" / "common-licenses" / name)
    lines = ["Folders of this one have the licences of what is carried, as the packages of Debian 12 state them; the texts that they name as",
             "/usr/share/common-licenses/… are in common-licenses/. Their source code is in the archive of Debian 12, by package and version:", ""]
    versions = run("dpkg-query", "--show", "--showformat=${Package} ${Version}\n", *sorted(packages & installed()))
    lines += sorted(set(versions.splitlines()))
    lines += ["", "lib/troupe_gpu.so contains NVIDIA's CUDA runtime (cudart, static), under the CUDA Toolkit's End User License Agreement.", ""]
    (bundle / "share" / "doc" / "README").write_text("\n".join(lines))


def installed():
    return set(run("dpkg-query", "--show", "--showformat=${Package}\n").split())


def make_loadable(bundle):
    """Every file finds the others by its own place, before those of the machine, and loads with the oldest glibc."""
    compat = bundle / "lib" / COMPAT
    run("gcc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", f"-Wl,-soname,{COMPAT}", "-o", compat, ROOT / "scripts/bundling/glibc_compat.c")
    ours = elf.symbols_defined(compat)
    for file in sorted(f for f in bundle.rglob("*") if elf.is_elf(f)):
        run("strip", "--strip-unneeded", file)
        folder = file.parent.relative_to(bundle)
        path = {"bin": "$ORIGIN/../lib", "lib": "$ORIGIN", "lib/ucx": "$ORIGIN:$ORIGIN/.."}[str(folder)]
        run("patchelf", "--force-rpath", "--set-rpath", path, file)
        later = {v for v in elf.glibc_needs(file) if elf.glibc_number(v) > OLDEST_GLIBC}
        if later:
            missing = elf.symbols_of(file, later) - ours
            if missing:
                die(f"{file.name} needs {', '.join(sorted(missing))} of {', '.join(sorted(later))}: add it to scripts/bundling/glibc_compat.c")
            run("patchelf", "--add-needed", COMPAT, file)
            elf.free_of_versions(file, OLDEST_GLIBC)


def check(bundle):
    """(version, files) of the newest glibc that anything needs. Ends the script where a library would not be found."""
    carried = {f.name for f in bundle.rglob("*.so*")}
    machines = GLIBC + NVIDIA + MACHINES_OWN + HDF5 + ["libnuma.so.*"]
    newest, users = (0, 0), []
    for file in sorted(f for f in bundle.rglob("*") if elf.is_elf(f)):
        if matches(file.name, GLIBC + NVIDIA):
            die(f"{file} must not be carried")
        for name in elf.needed(file):
            if name not in carried and not matches(name, machines):
                die(f"{file.relative_to(bundle)} needs {name}, which is not in the bundle")
        for version in elf.glibc_needs(file):
            number = elf.glibc_number(version)
            if number > newest:
                newest, users = number, []
            if number == newest:
                users.append(str(file.relative_to(bundle)))
    return newest, sorted(set(users))


def version():
    return re.search(r"project\(troupe VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]


def ready(build, tools):
    """The build's folder. Ends the script where a tool, or the program, is missing."""
    for tool in tools:
        if shutil.which(tool) is None:
            die(f"there is no {tool} on this machine: scripts/setup installs it")
    build = build.resolve()
    if not (build / "bin" / "troupe").exists():
        die(f"there is no {build}/bin/troupe: run scripts/build")
    return build


def carry_programs(build, bundle, programs, modules, with_hdf5):
    """bin/ and lib/ of the bundle: programs and modules of the build, and their libraries. Returns the libraries' paths here."""
    libraries = Libraries(GLIBC + NVIDIA + MACHINES_OWN + ([] if with_hdf5 else HDF5))
    for name in programs:
        copy(build / "bin" / name, bundle / "bin" / name)
        libraries.add(build / "bin" / name)
    for name in modules:
        copy(build / "lib" / name, bundle / "lib" / name)
        libraries.add(build / "lib" / name)
    plugins = ucx_plugins(libraries)
    for path in plugins:
        libraries.add(path)
        copy(path, bundle / "lib" / "ucx" / path.name)
        (bundle / "lib" / "ucx" / path.name.removesuffix(".0")).symlink_to(path.name)
    for name, path in libraries.found.items():
        copy(path, bundle / "lib" / name)
    return list(libraries.found.values()), plugins


def finish(bundle, libraries):
    """Licences, and files that find each other and load with the oldest glibc. Returns the newest glibc that is needed."""
    carry_licences(bundle, libraries)
    make_loadable(bundle)
    newest, users = check(bundle)
    if newest > OLDEST_GLIBC:
        die(f"glibc {newest[0]}.{newest[1]} is needed by {', '.join(users)}")
    return newest
