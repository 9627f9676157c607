"""A folder of files whose modes and times depend only on the commit."""

import os
import pathlib
import shutil

from failure import Failure


class Tree:
    """Files below `path`, which appears under this name only when everything is in it. Use it in a `with` statement."""

    def __init__(self, path, epoch):
        self._final = pathlib.Path(path)
        self._epoch = epoch
        self.path = self._final.with_name(self._final.name + ".partial")

    def __enter__(self):
        if self._final.exists() and (not self._final.is_dir() or any(self._final.iterdir())):
            raise Failure(f"{self._final} already exists: give a new or an empty folder")
        if self.path.exists():
            shutil.rmtree(self.path)
        self.path.mkdir(parents=True)
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            return
        # Children first: writing to a folder changes its time.
        for path in sorted(self.path.rglob("*"), reverse=True):
            os.utime(path, (self._epoch, self._epoch), follow_symlinks=False)
        os.utime(self.path, (self._epoch, self._epoch))
        self.path.chmod(0o755)
        if self._final.exists():
            self._final.rmdir()
        self.path.rename(self._final)

    def folder(self, name, mode=0o755):
        """Makes a folder and the folders above it. Returns its current path."""
        path = self.path / name.lstrip("/")
        for missing in [*reversed(path.parents), path]:
            if not missing.exists():
                missing.mkdir()
                missing.chmod(0o755)
        if mode != 0o755:
            path.chmod(mode)
        return path

    def _place(self, name):
        """Makes the folder of a file. Returns the current path of the file."""
        return self.folder(os.path.dirname(name)) / os.path.basename(name)

    def write(self, name, data, mode=0o644):
        """Writes a file from bytes or text."""
        path = self._place(name)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        path.chmod(mode)

    def copy(self, name, source, mode=0o644):
        """Copies the bytes of a file, not its mode and times."""
        path = self._place(name)
        shutil.copyfile(source, path)
        path.chmod(mode)

    def link(self, name, target):
        """Makes a symbolic link."""
        self._place(name).symlink_to(target)
