#!/usr/bin/env python3
"""Makes the image of one program, as a file that `docker load` reads. Docker itself is not needed.

The image holds what the program links and nothing else: no shell, no package manager. The same commit and libraries give the same
bytes. Prints the size of the files in it."""

import os
import pathlib
import re
import tempfile

import debian
from components import component_named
from failure import Failure, run_main
from image_archive import write_archive
from image_root import make_root
from source_tree import version_of
from stage import built, program_parser
from tree import Tree
from whole_file import whole_file

# Docker's own rule for names, without digests.
TAG = re.compile(r"(?:[A-Za-z0-9.-]+(?::\d+)?/)?[a-z0-9]+(?:(?:[._]|__|-+|/)[a-z0-9]+)*:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


def parse_arguments():
    parser = program_parser(__doc__)
    parser.add_argument("--tag", required=True, nargs="+", metavar="REPO:TAG", help="names that the image gets when it is loaded")
    parser.add_argument("--out", required=True, metavar="FILE.tar", help="the file to make or to replace")
    return parser.parse_args()


def unpacked_bytes(folder):
    """Returns the size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def make_image(arguments, component, version, fill):
    """Writes the image that the options --arch, --tag and --out name. `fill` gets the tree of its root, and a work folder."""
    os.umask(0o022)
    for tag in arguments.tag:
        if not TAG.fullmatch(tag):
            raise Failure(f"--tag: {tag!r} is not an image name: write REPOSITORY:TAG, the repository in lower case")
    out = pathlib.Path(arguments.out)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as work:
        root = pathlib.Path(work) / "root"
        with Tree(root, version.epoch) as tree:
            fill(tree, work)
        size = unpacked_bytes(root)
        with whole_file(out) as partial:
            write_archive(root, component, arguments.arch, arguments.tag, version, partial)
    print(f"{out}: {component.name} for {arguments.arch}, {size / 1e6:.1f} MB unpacked")


def main():
    arguments = parse_arguments()
    component = component_named(arguments.component)
    version = version_of()

    def fill(tree, _work):
        make_root(tree, component, built(arguments.build, component, arguments.arch), debian.root_of(arguments.arch), version)

    make_image(arguments, component, version, fill)


if __name__ == "__main__":
    run_main(main)
