"""The Python interpreters that the tests run. Each has a command, and folders as the test and as the program see them."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import lib  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = ["known.py", "python_parts.py", "chains.py"]
SUITES = ("bullseye", "trixie", "sid")


class Interpreter:
    """`root`: the folder that is / for the interpreter."""

    def __init__(self, name, command, root="/", missing=()):
        self.name, self.command, self.root = name, [str(word) for word in command], pathlib.Path(root)
        self.missing = set(missing)  # parts whose modules this interpreter does not have

    def run(self, directory, program, *arguments, **more):
        """Starts a program of this folder in a copy of the folder. Returns the process; its output is text on a pipe."""
        folder = directory / f"programs-{self.name}"
        if self.root != pathlib.Path("/"):
            folder = self.root / "work" / directory.name
        if not folder.exists():
            folder.mkdir(parents=True)
            for each in {*PROGRAMS, program}:
                shutil.copy(HERE / each, folder)
        inside = "/" + str(folder.relative_to(self.root))
        words = [*self.command, f"{inside}/{program}", *map(str, arguments)]
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, encoding="utf-8", env={"PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin",
                                                                                                 "LC_ALL": "C.UTF-8"}, **more)

    def forget(self, directory):
        if self.root != pathlib.Path("/"):
            shutil.rmtree(self.root / "work" / directory.name, ignore_errors=True)


def of_suite(suite):
    """Returns the newest Python of a Debian suite (root.sh)."""
    root = pathlib.Path(subprocess.run([HERE / "root.sh", suite], check=True, capture_output=True, text=True).stdout.strip())
    programs = [path.name for path in (root / "usr/bin").iterdir() if re.fullmatch(r"python3\.\d+", path.name)]
    newest = max(programs, key=lambda name: int(name.split(".")[1]))
    return Interpreter(suite, [*lib.ROOT, "/usr/sbin/chroot", root, f"/usr/bin/{newest}"], root)


def find(name):
    """Returns the interpreter with this name: "system", a Debian suite, or the path of a program."""
    if name == "system":
        return Interpreter(name, ["/usr/bin/python3.11"])
    if name in SUITES:
        return of_suite(name)
    lib.check(os.path.isfile(name), f"there is no interpreter '{name}'")
    return Interpreter(pathlib.Path(name).resolve().parent.parent.name, [name])
