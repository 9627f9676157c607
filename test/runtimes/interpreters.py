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
SYSTEM = "/usr/bin/python3.11"
SUITES = ("bullseye", "trixie", "sid", "sid-newest")
BUILT = ("static", "musl", "free-threaded")
NAMES = ("system", "venv", *SUITES, *BUILT)


class Interpreter:
    """`root`: the folder that is / for the interpreter."""

    def __init__(self, name, command, root="/", missing=()):
        self.name, self.command, self.root = name, [str(word) for word in command], pathlib.Path(root)
        self.missing = set(missing)  # parts whose modules this interpreter does not have

    def folder(self, directory):
        """Returns the folder in which the programs run."""
        return directory / f"programs-{self.name}" if self.root == pathlib.Path("/") else self.root / "work" / directory.name

    def run(self, directory, program, *arguments):
        """Starts a program of this folder, in a copy of the folder. Returns the process; its output is text on a pipe."""
        folder = self.folder(directory)
        folder.mkdir(parents=True, exist_ok=True)
        for each in {*PROGRAMS, program}:
            shutil.copy(HERE / each, folder)
        inside = "/" + str(folder.relative_to(self.root))
        words = [*self.command, f"{inside}/{program}", *(str(word).replace("FOLDER", inside) for word in arguments)]
        environment = {"PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, encoding="utf-8", env=environment)

    def forget(self, directory):
        if self.root != pathlib.Path("/"):
            shutil.rmtree(self.root / "work" / directory.name, ignore_errors=True)


def root_of(suite):
    return pathlib.Path(subprocess.run([HERE / "root.sh", suite], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())


def of_suite(name):
    """Returns the default Python of a Debian suite (root.sh), or its newest one if the name ends in -newest."""
    root = root_of(name.removesuffix("-newest"))
    program = "python3"
    if name.endswith("-newest"):
        programs = [path.name for path in (root / "usr/bin").iterdir() if re.fullmatch(r"python3\.\d+", path.name)]
        program = max(programs, key=lambda each: int(each.split(".")[1]))
    return Interpreter(name, [*lib.ROOT, "/usr/sbin/chroot", root, f"/usr/bin/{program}"], root)


def built(kind):
    """Returns an interpreter that build_python.sh builds."""
    printed = subprocess.run([HERE / "build_python.sh", kind], check=True, stdout=subprocess.PIPE, text=True).stdout
    return Interpreter(kind, [printed.strip()], missing=("callbacks", "key_derivation"))


def virtual_environment(directory):
    subprocess.run([SYSTEM, "-m", "venv", "--without-pip", directory / "venv"], check=True)
    return Interpreter("venv", [directory / "venv/bin/python"])


def find(name, directory=None):
    """Returns the interpreter with this name: a word of NAMES, or the path of a program."""
    if name == "system":
        return Interpreter(name, [SYSTEM])
    if name == "venv":
        return virtual_environment(directory)
    if name in SUITES:
        return of_suite(name)
    if name in BUILT:
        return built(name)
    lib.check(os.path.isfile(name), f"there is no interpreter '{name}'")
    return Interpreter(pathlib.Path(name).resolve().parent.parent.name, [name])
