"""Finds the Debian packages that a program needs, in the shlibs files of the packages that have its libraries.

dpkg-shlibdeps reads the same files. This machine's files serve every architecture: within one release of Debian the names
and versions of library packages do not differ by architecture.
"""

import pathlib
import re
import subprocess

import debian
import elf
from failure import Failure

INFO = pathlib.Path("/var/lib/dpkg/info")


def read():
    """Returns (library, version) → dependency, of every installed package of this machine's architecture."""
    known = {}
    for path in sorted(INFO.glob("*.shlibs")):
        if path.stem.partition(":")[2] not in ("", debian.NATIVE):
            continue
        for line in path.read_text().splitlines():
            # Lines that begin with "udeb:" are for the installer's packages.
            words = line.split(maxsplit=2)
            if len(words) == 3 and not words[0].startswith(("#", "udeb:")):
                known[words[0], words[1]] = words[2].strip()
    return known


def key(library):
    """Splits a library's name like shlibs files: libuv.so.1 → libuv 1; libcapnp-0.9.2.so → libcapnp 0.9.2."""
    found = re.fullmatch(r"(.+)\.so\.(.+)", library) or re.fullmatch(r"(.+)-(\d.*)\.so", library)
    return found.groups() if found else (library, "")


def stronger(one, other):
    """Returns the one of two dependencies on a package that has the higher version."""
    bound = re.compile(r"\(>= ([^)]+)\)")
    a, b = bound.search(one), bound.search(other)
    if not a or not b:
        return one if a else other
    later = subprocess.run(["dpkg", "--compare-versions", a.group(1), "ge", b.group(1)], check=False).returncode == 0
    return one if later else other


def depends(binary):
    """Returns the value of Depends, sorted by package."""
    known = read()
    chosen = {}
    for library in elf.read(binary).needed:
        if library.startswith("ld-linux"):
            continue  # part of the C library
        if key(library) not in known:
            raise Failure(f"no installed package has {library}, which {binary.name} needs; "
                          "run dev/deps, and build on Debian 12")
        wanted = known[key(library)]
        package = wanted.split()[0]
        chosen[package] = stronger(chosen[package], wanted) if package in chosen else wanted
    return [chosen[package] for package in sorted(chosen)]
