"""What deb.py, rpm.py and archive.py share: how files are written."""

import contextlib
import gzip
import os
import pathlib
import shutil
import tempfile


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
