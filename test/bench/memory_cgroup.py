"""A memory cgroup for one program: it also counts memory files and kernel memory, which are no resident memory."""

import os
import pathlib
import sys
import time

ROOT = pathlib.Path("/sys/fs/cgroup")


class MemoryCgroup:
    """with MemoryCgroup() as cgroup: …start cgroup.prefix + command…; cgroup.kib()

    With cgroup v2, it switches the memory controller on for the children of the root, and off again at the end. Raises
    RuntimeError if the system does not allow this."""

    def __init__(self, root=ROOT):
        self._is_v1 = (root / "memory" / "memory.usage_in_bytes").exists()
        self._directory = (root / "memory" if self._is_v1 else root) / f"tributary-bench-{os.getpid()}-{time.monotonic_ns()}"
        self._control = root / "cgroup.subtree_control"
        self._has_switched_on = False
        self.prefix = ["sh", "-c", f'echo $$ > {self._directory}/cgroup.procs && exec "$@"', "sh"]

    def __enter__(self):
        try:
            if not self._is_v1 and "memory" not in self._control.read_text().split():
                self._control.write_text("+memory")
                self._has_switched_on = True
            self._directory.mkdir()
        except OSError as error:
            self._switch_off()
            raise RuntimeError(f"cannot make a memory cgroup: {error}; this needs root, and a writable {self._control.parent}") from error
        return self

    def __exit__(self, *_):
        try:
            self._remove()
        finally:
            self._switch_off()

    def _remove(self):
        for attempt in range(100):
            try:
                return self._directory.rmdir()
            except OSError:
                if attempt == 99:
                    print(f"warning: {self._directory} has processes and stays", file=sys.stderr)
                else:
                    time.sleep(0.1)  # a process of it is about to end
        return None

    def _switch_off(self):
        if not self._has_switched_on:
            return
        self._has_switched_on = False
        try:
            self._control.write_text("-memory")
        except OSError as error:  # another program uses it by now
            print(f"warning: the memory controller stays on: {error}", file=sys.stderr)

    def limit(self, bytes_max):
        (self._directory / ("memory.limit_in_bytes" if self._is_v1 else "memory.max")).write_text(str(bytes_max))

    def kib(self):
        """Returns anonymous memory and memory files. Pages of the disk's files are left out: other programs use them too."""
        fields = dict(line.split() for line in (self._directory / "memory.stat").read_text().splitlines())
        keys = ("total_rss", "total_shmem") if self._is_v1 else ("anon", "shmem")
        return sum(int(fields.get(key, 0)) for key in keys) / 1024
