"""Which shared libraries a binary needs, all the way down, and which packages these came with."""

import dataclasses

import elf
from debian import Package
from failure import Failure

# Every distribution has a C library, and it must be the one that fits the running system.
C_LIBRARY = "libc6"


@dataclasses.dataclass(frozen=True)
class Library:
    name: str  # as binaries ask for it
    path: str  # inside the root
    package: Package

    @property
    def is_c_library(self):
        return self.package.name == C_LIBRARY


def libraries_of(root, binary):
    """The Library objects that a binary and its libraries need, by name. Raises Failure."""
    try:
        top = elf.read(binary)
    except elf.NotElf as error:
        raise Failure(f"{error}: build it again") from error
    if top.arch != root.arch:
        raise Failure(f"{binary} is for {top.arch}, not for {root.arch}: name the build folder of {root.arch}")
    found = {}
    waiting = sorted(top.needed)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        path = root.find_library(name)
        if path is None:
            raise Failure(f"{name}, which {binary} needs, is not in {root.path}: run dev/deps")
        found[name] = Library(name, path, root.owner_of(path))
        waiting += elf.read(root.host_path(path)).needed
    return [found[name] for name in sorted(found)]


def interpreter_of(binary):
    """The path of the dynamic linker that a binary asks for."""
    return elf.read(binary).interpreter
