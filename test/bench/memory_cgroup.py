"""A memory cgroup for one program: it also counts memory files and kernel memory, which are no resident memory."""

import os
import pathlib
import time

ROOT = pathlib.Path("/sys/fs/cgroup")


class MemoryCgroup:
    """with MemoryCgroup() as cgroup: …start cgroup.prefix + command…; cgroup.kib()"""

    def __init__(self):
        self._is_v1 = (ROOT / "memory" / "memory.usage_in_bytes").exists()
        self._directory = (ROOT / "memory" if self._is_v1 else ROOT) / f"tributary-bench-{os.getpid()}-{time.monotonic_ns()}"
        self.prefix = ["sh", "-c", f'echo $$ > {self._directory}/cgroup.procs && exec "$@"', "sh"]

    def __enter__(self):
        if not self._is_v1:
            (ROOT / "cgroup.subtree_control").write_text("+memory")
        self._directory.mkdir()
        return self

    def __exit__(self, *_):
        for _ in range(100):
            try:
                return self._directory.rmdir()
            except OSError:
                time.sleep(0.1)  # a process of it is about to end
        return None

    def kib(self):
        """Returns anonymous memory and memory files. Pages of the disk's files are left out: other programs use them too."""
        fields = dict(line.split() for line in (self._directory / "memory.stat").read_text().splitlines())
        keys = ("total_rss", "total_shmem") if self._is_v1 else ("anon", "shmem")
        return sum(int(fields.get(key, 0)) for key in keys) / 1024
