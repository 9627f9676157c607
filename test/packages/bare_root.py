"""A root file system with only the C library: no shell, no other library. Self-contained programs run in it."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = [] if os.geteuid() == 0 else ["sudo", "-n"]
PARTS = ("/etc/", "/lib/", "/lib64/", "/usr/lib/x86_64-linux-gnu/")


def c_library_files():
    """Returns the paths of the dynamic linker and the libraries of Debian's libc6."""
    listed = subprocess.run(["dpkg", "-L", "libc6:amd64"], check=True, capture_output=True, text=True).stdout.split()
    return [path for path in listed if path.startswith(PARTS) and ".so" in path and "/gconv/" not in path and pathlib.Path(path).is_file()]


def copy_c_library(root):
    for path in c_library_files():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    for name in ("proc", "sys", "dev", "tmp", "data"):
        (root / name).mkdir(exist_ok=True)


@contextlib.contextmanager
def bare_root():
    """Yields the root. It contains /proc, /sys and /dev of this machine."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="tributary-root-"))
    mounted = []
    try:
        copy_c_library(root)
        for name in ("proc", "sys", "dev"):
            subprocess.run([*ROOT, "mount", "--rbind", f"/{name}", root / name], check=True)
            mounted.append(root / name)
            subprocess.run([*ROOT, "mount", "--make-rslave", root / name], check=True)
        yield root
    finally:
        for path in mounted:
            subprocess.run([*ROOT, "umount", "-l", path], check=True)
        subprocess.run([*ROOT, "rm", "-rf", "--one-file-system", root], check=True)


def command(root, *words):
    """Returns a command that runs a program in the root, without environment variables that help to find libraries."""
    return [*ROOT, "env", "-i", "/usr/sbin/chroot", str(root), *map(str, words)]


def libraries(root, program):
    """Returns the paths of the libraries that the dynamic linker loads for a program in the root."""
    out = subprocess.run(command(root, "/lib64/ld-linux-x86-64.so.2", "--list", program), check=True, capture_output=True, text=True).stdout
    return [line.split("=>")[1].rsplit(" (", 1)[0].strip() for line in out.splitlines() if "=>" in line]
