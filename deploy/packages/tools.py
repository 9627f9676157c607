"""What deb.py, rpm.py, archive.py and dev/release share: files that appear whole."""

import contextlib
import gzip
import os
import pathlib
import shutil
import tempfile

from failure import Failure


@contextlib.contextmanager
def whole_file(path):
    """Yields a path to write to; the file gets its final name once it is complete, and is removed on any error."""
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        os.replace(partial, path)
    except OSError as e:
        raise Failure(f"writing {path} failed: {e.strerror}; make room or choose another folder with --out") from e
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
