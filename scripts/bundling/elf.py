"""What scripts/bundle reads and changes in ELF files (x86-64): the libraries that a file needs, and the versions of their symbols.

`readelf -V` shows the same table. Layout: "Symbol versioning" in the Linux Standard Base, and elf.h.
"""
import pathlib
import re
import struct
import subprocess

SHT_GNU_VERNEED = 0x6FFFFFFE


def is_elf(path):
    path = pathlib.Path(path)
    if not path.is_file() or path.is_symlink():
        return False
    with path.open("rb") as file:
        return file.read(5) == b"\x7fELF\x02"


def needed(path):
    """The names of the libraries that the loader finds for this file."""
    text = subprocess.run(["readelf", "--wide", "--dynamic", str(path)], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text)


def _text(data, at):
    return data[at:data.index(b"\0", at)].decode()


def _version_needs(data):
    """(library, version, offset of its entry) for each version that the file asks for."""
    sections, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    header = [struct.unpack_from("<IIQQQQII", data, sections + i * size) for i in range(count)]
    for _, kind, _, _, offset, _, link, entries in header:
        if kind != SHT_GNU_VERNEED:
            continue
        strings = header[link][4]
        for _ in range(entries):
            _, versions, file, first, following = struct.unpack_from("<HHIII", data, offset)
            at = offset + first
            for _ in range(versions):
                _, _, _, name, step = struct.unpack_from("<IHHII", data, at)
                yield _text(data, strings + file), _text(data, strings + name), at
                at += step
            offset += following


def glibc_number(version):
    """(2, 34) of "GLIBC_2.34"; None of other versions."""
    found = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", version)
    return (int(found[1]), int(found[2])) if found else None


def glibc_needs(path):
    """The versions of glibc that the file needs."""
    return {version for _, version, _ in _version_needs(pathlib.Path(path).read_bytes()) if glibc_number(version)}


def free_of_versions(path, newest):
    """What the file needs of glibc's versions above `newest` it asks of an older one instead: glibc has no such symbols there, so that the
    loader takes them from a library without versions. Returns the versions."""
    path = pathlib.Path(path)
    data = bytearray(path.read_bytes())
    needs = list(_version_needs(data))
    freed = set()
    for library, version, at in needs:
        number = glibc_number(version)
        if number and number > newest:
            older = next(entry for of, other, entry in needs if of == library and glibc_number(other) and glibc_number(other) <= newest)
            data[at:at + 4] = data[older:older + 4]  # the hash of the name
            data[at + 8:at + 12] = data[older + 8:older + 12]  # the name
            freed.add(version)
    if freed:
        path.write_bytes(data)
    return freed


def symbols_of(path, versions):
    """The symbols of these versions that the file takes from other files."""
    text = subprocess.run(["objdump", "--dynamic-syms", str(path)], capture_output=True, text=True, check=True).stdout
    return {name for version, name in re.findall(r"\*UND\*\s+\S+\s+\(?(\S+?)\)?\s+(\S+)$", text, re.MULTILINE) if version in versions}


def symbols_defined(path):
    """The symbols that other files may take from this one."""
    text = subprocess.run(["objdump", "--dynamic-syms", str(path)], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^\S+ g\s.* (\S+)$", text, re.MULTILINE))
