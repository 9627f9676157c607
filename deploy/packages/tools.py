"""What deb.py, rpm.py, archive.py and dev/release share: errors of one sentence, the version, files that appear whole."""

import contextlib
import dataclasses
import gzip
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent


class Problem(Exception):
    """What the user reads: one sentence that says what to do next."""


@dataclasses.dataclass(frozen=True)
class Version:
    number: str  # 0.1.0
    commit: str
    epoch: int  # the commit's time, Unix seconds: the time of every packed file


def run(*command, **options):
    """Runs a command that must succeed; returns what it printed."""
    command = [str(word) for word in command]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    except FileNotFoundError as e:
        raise Problem(f"{command[0]} is not installed; run dev/deps --packages") from e
    if result.returncode != 0:
        raise Problem(f"{command[0]} failed: {last_line(result)}")
    return result.stdout


def run_script(path, *arguments):
    """Runs a script of this project, whose own last line says what to do."""
    result = subprocess.run([sys.executable, path, *map(str, arguments)], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Problem(last_line(result))


def last_line(result):
    return (result.stderr.strip() or result.stdout.strip() or f"exit status {result.returncode}").splitlines()[-1]


def version(source=SOURCE):
    number, commit, epoch = run(source / "deploy/version.sh").split()
    return Version(number, commit, int(epoch))


def reproducible_environment(epoch):
    """For tools that write times, names of this machine or sorted lists."""
    return os.environ | {"SOURCE_DATE_EPOCH": str(epoch), "LC_ALL": "C.UTF-8", "TZ": "UTC"}


@contextlib.contextmanager
def whole_file(path):
    """Yields a path to write to; the file gets its final name once it is complete, and is removed on any error."""
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        os.replace(partial, path)
    except OSError as e:
        raise Problem(f"writing {path} failed: {e.strerror}; make room or choose another folder with --out") from e
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


@contextlib.contextmanager
def work_folder():
    path = pathlib.Path(tempfile.mkdtemp(prefix="tributary-package-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def write_gzip(path, text):
    """Without a name and a time in its header."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    path.chmod(0o644)


def settle(root, epoch):
    """Gives every file below `root` the same time, and modes that do not depend on who built it."""
    for path in sorted(root.rglob("*"), reverse=True):
        if path.is_symlink():
            pass
        elif path.is_dir() or path.stat().st_mode & 0o100:
            path.chmod(0o755)
        else:
            path.chmod(0o644)
        os.utime(path, (epoch, epoch), follow_symlinks=False)
    root.chmod(0o755)
    os.utime(root, (epoch, epoch))


def main(program, body):
    """Runs body() and prints a Problem as the one line that the user needs."""
    try:
        body()
    except Problem as e:
        sys.exit(f"{program}: {e}")
    except OSError as e:
        where = f" {e.filename}" if e.filename else ""
        sys.exit(f"{program}:{where}: {e.strerror}; check that the disk has room and that the folder can be written")
