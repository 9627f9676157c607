"""A guest: its kernel and initramfs, and how qemu runs it.

qemu uses only software emulation, for both architectures.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = ["kernel-collector", "truth", "truth_nofp", "bpf_burner", "lives"]
APPLETS = ["cat", "chroot", "cp", "date", "echo", "grep", "ifconfig", "insmod", "kill", "mount", "nc", "poweroff", "sh", "sleep", "sort",
           "taskset", "uname", "wc"]
CACHE = pathlib.Path(os.environ.get("TRIBUTARY_CACHE") or pathlib.Path.home() / ".cache/tributary")


@dataclasses.dataclass(frozen=True)
class Machine:
    """The differences between architectures."""

    arch: str  # Debian's name
    build: str  # environment variable with the folder where our programs were built
    triple: str
    libraries: tuple  # folders, searched in this order
    busybox: pathlib.Path
    qemu: tuple
    kernel_options: str


# An emulated cmpxchg16b sometimes leaves garbage in the flags (qemu 7.2). Kernels that use it to allocate memory then
# crash.
AMD64 = Machine("amd64", "TRIBUTARY_BUILD", "x86_64-linux-gnu", ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"),
                pathlib.Path("/bin/busybox"), ("qemu-system-x86_64", "-machine", "q35,accel=tcg", "-cpu", "max,-cx16"),
                # A busy host can delay the timer's interrupts so long that the kernel gives up on them.
                "console=ttyS0 no_timer_check")
# pauth-impdef: return addresses are signed with a cipher that is fast to emulate.
ARM64 = Machine("arm64", "TRIBUTARY_ARM64_BUILD", "aarch64-linux-gnu",
                (str(CACHE / "arm64-sysroot/usr/lib/aarch64-linux-gnu"),), CACHE / "arm64-sysroot/bin/busybox",
                ("qemu-system-aarch64", "-machine", "virt,accel=tcg", "-cpu", "max,pauth-impdef=on"), "console=ttyAMA0")
MACHINES = {machine.arch: machine for machine in (AMD64, ARM64)}


def build_folder(machine):
    return pathlib.Path(os.environ[machine.build])


def tool(machine, name):
    """Returns a binutils program for the machine's architecture: the plain one if it is the host's architecture."""
    return shutil.which(f"{machine.triple}-{name}") or name


def needed(machine, binary):
    """Returns the names of the libraries that a binary needs, including its dynamic linker."""
    out = subprocess.run([tool(machine, "readelf"), "-dlW", binary], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[([^\]]+)\]", out) + re.findall(r"program interpreter: \S*/([^/\]]+)\]", out)


def copy_libraries(machine, binary, root):
    """Copies the libraries that the binary needs, directly or indirectly, into root/lib."""
    for name in needed(machine, binary):
        target = root / "lib" / name
        if target.exists():
            continue
        source = next((pathlib.Path(d) / name for d in machine.libraries if (pathlib.Path(d) / name).exists()), None)
        if not source:
            raise FileNotFoundError(f"{name}, which {binary} needs, is in none of {machine.libraries}")
        shutil.copy(source.resolve(), target)
        copy_libraries(machine, source, root)


def unpack_image(archive, folder):
    """Unpacks the root file system of an image that `docker save` or deploy/image.py wrote."""
    with tarfile.open(archive) as outer:
        for layer in json.load(outer.extractfile("manifest.json"))[0]["Layers"]:
            with tarfile.open(fileobj=outer.extractfile(layer)) as inner:
                inner.extractall(folder)
    for name in ("proc", "sys", "dev"):
        (folder / name).mkdir(exist_ok=True)


def build_initramfs(machine, kernel, directory, container=None):
    """Makes one cpio file of our programs and their libraries, busybox, the kernel's network modules and guest_init.sh.

    If `container` is the archive of a container image, the image's root is in /image, and guest_init.sh runs the
    collector of the image.
    """
    root = directory / "root"
    for name in ("bin", "lib", "modules", "proc", "sys", "dev", "tmp"):
        (root / name).mkdir(parents=True)
    (root / "lib64").symlink_to("lib")  # amd64 has its dynamic linker in lib64
    shutil.copy(machine.busybox, root / "bin/busybox")
    for applet in APPLETS:
        (root / "bin" / applet).symlink_to("busybox")
    for module in kernel.glob("*.ko"):
        shutil.copy(module, root / "modules")
    shutil.copy(kernel / "modules", root / "modules/order")
    for program in PROGRAMS:
        built = build_folder(machine) / "bin" / program
        # The guest does not need line tables, which would only take time to unpack. .symtab and .eh_frame stay.
        subprocess.run([tool(machine, "strip"), "--strip-debug", "-o", root / "bin" / program, built], check=True)
        copy_libraries(machine, built, root)
    if container:
        unpack_image(container, root / "image")
    shutil.copy(HERE / "guest_init.sh", root / "init")
    (root / "init").chmod(0o755)
    image = directory / "initramfs.cpio"
    with open(image, "wb") as out:
        files = subprocess.run(["find", "."], cwd=root, check=True, capture_output=True).stdout
        subprocess.run(["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0"], cwd=root, input=files, stdout=out, check=True)
    return image


class Guest:
    """A running guest. Its console output goes to a file. guest_init.sh reads words written to the console."""

    name = "guest"

    def __init__(self, machine, kernel, image, directory, variables):
        arguments = " ".join(f"{name}={value}" for name, value in variables.items())
        self.console_path = directory / "console.log"
        self.console = open(self.console_path, "wb")
        self.process = subprocess.Popen(
            [*machine.qemu, "-smp", "2", "-m", "1024", "-display", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot",
             "-kernel", kernel / "vmlinuz", "-initrd", image, "-nic", "user,model=virtio-net-pci",
             "-append", f"{machine.kernel_options} quiet panic=-1 mitigations=off epoch={int(time.time())} {arguments}"],
            stdin=subprocess.PIPE, stdout=self.console, stderr=subprocess.STDOUT)

    def text(self):
        return self.console_path.read_text(errors="replace").replace("\r", "")

    def running(self):
        return self.process.poll() is None

    def send(self, word):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{word}\n".encode())
            self.process.stdin.flush()

    def kill(self):
        self.process.kill()
        self.process.wait()
