"""Finds the shared libraries that a program needs, directly and indirectly, and the packages that they came with."""

import dataclasses

import elf
from debian import Package
from failure import Failure

# Every distribution has a C library, and it must be the one that fits the running system.
C_LIBRARY = "libc6"


@dataclasses.dataclass(frozen=True)
class Library:
    name: str  # the name that binaries need
    path: str  # inside the root
    package: Package

    @property
    def is_c_library(self):
        return self.package.name == C_LIBRARY


def libraries_of(root, binary):
    """Returns the Library objects that a program and its libraries need, sorted by name. Raises Failure."""
    found = {}
    waiting = elf.read(binary).needed
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


def shipped_libraries_of(root, binary):
    """Returns the libraries that packages ship with the program: all except the C library's. Raises Failure."""
    return [library for library in libraries_of(root, binary) if not library.is_c_library]
