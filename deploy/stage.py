#!/usr/bin/env python3
"""Lays out one program as it is installed: usr/bin, usr/lib/tributary, usr/share/doc/tributary.

The program comes from a build folder of the preset package or package-arm64. Its shared libraries, except glibc's, go to
usr/lib/tributary, where its RPATH leads; the copyright file of each library's package goes to usr/share/doc/tributary. The same
commit and libraries give the same bytes, modes and times."""

import argparse
import os
import pathlib
import shutil

import bundle
import debian
import elf
from commands import run
from components import COMPONENTS, component_named
from failure import Failure, Parser, run_main
from source_tree import SOURCE, version_of
from tree import Tree

RPATH = "$ORIGIN/../lib/tributary"


def built(build, component, arch):
    """Returns the path of a program in a build folder. Raises Failure."""
    binary = pathlib.Path(build) / "bin" / component.name
    if not binary.exists():
        raise Failure(f"{binary} is missing: build it first, for example: "
                      f"cmake --preset package && ninja -C build/package {component.name}")
    found = elf.read(binary)
    if found.arch != arch:
        raise Failure(f"{binary} is for {found.arch}, not for {arch}: give the build folder of {arch}")
    if found.rpath != RPATH:
        raise Failure(f"{binary} has no RPATH {RPATH}: build it with the preset package")
    return binary


def _strip(binary, arch, target):
    tool = shutil.which(f"{debian.TRIPLES[arch]}-strip") or (arch == debian.NATIVE and shutil.which("strip"))
    if not tool:
        raise Failure(f"strip for {arch} is missing: install g++-{debian.TRIPLES[arch].replace('_', '-')}")
    run(tool, "--strip-all", "-o", target, binary)


def add_program(tree, binary, arch, prefix="usr"):
    """Adds the stripped program."""
    target = tree.folder(f"{prefix}/bin") / binary.name
    _strip(binary, arch, target)
    target.chmod(0o755)


def add_licenses(tree, component, root, libraries, folder):
    """Adds the licence of the program, and the copyright files of its libraries and of the packages linked into it."""
    tree.copy(f"{folder}/LICENSE", SOURCE / "LICENSE")
    if component.has_bpf:
        tree.copy(f"{folder}/GPL-2.0-only.txt", SOURCE / "LICENSES/GPL-2.0-only.txt")
    packages = {library.package.name: library.package for library in libraries}
    packages.update({name: root.package(name) for name in component.linked_in})
    for name, package in packages.items():
        tree.write(f"{folder}/copyright/{name}", root.copyright_of(package))


def stage(tree, component, binary, root, libraries, prefix="usr", licenses="usr/share/doc/tributary"):
    """Adds the program and its libraries below `prefix`, and their licences in the folder `licenses`."""
    add_program(tree, binary, root.arch, prefix)
    add_licenses(tree, component, root, libraries, licenses)
    for library in libraries:
        if not library.is_c_library:  # the C library has its own place in an image
            tree.copy(f"{prefix}/lib/tributary/{library.name}", root.host_path(library.path))


def program_parser(description):
    """Returns a Parser with the options that name a program: --build, --component, --arch."""
    parser = Parser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, metavar="DIR", help="build folder of the preset package or package-arm64")
    parser.add_argument("--component", required=True, metavar="NAME", help=f"one of {', '.join(COMPONENTS)}")
    parser.add_argument("--arch", required=True, choices=debian.TRIPLES,
                        help="architecture that the program was built for")
    return parser


def parse_arguments():
    parser = program_parser(__doc__)
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to make; must not exist, or be empty")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    os.umask(0o022)
    component = component_named(arguments.component)
    binary = built(arguments.build, component, arguments.arch)
    root = debian.root_of(arguments.arch)
    with Tree(arguments.out, version_of().epoch) as tree:
        stage(tree, component, binary, root, bundle.shipped_libraries_of(root, binary))


if __name__ == "__main__":
    run_main(main)
