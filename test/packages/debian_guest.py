"""A Debian 12 guest with systemd and Docker, emulated (qemu without KVM).

mmdebstrap makes its root disk, which is cached.

    with debian_guest.Guest(directory, folder) as guest:     `folder` appears in the guest as /mnt
        guest.run("systemctl is-active tributary-reducer")   → its output; a failure raises

Changes to the disk are lost when the guest ends. Commands are sent over a virtio port. The console goes to a file.
"""

import base64
import contextlib
import hashlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

CACHE = pathlib.Path(os.environ.get("TRIBUTARY_CACHE") or pathlib.Path.home() / ".cache/tributary") / "guests"
PACKAGES = ["systemd-sysv", "udev", "dbus", "initramfs-tools", "linux-image-cloud-amd64", "adduser", "init-system-helpers", "apt",
            "curl", "iproute2", "procps", "docker.io", "iptables"]
DISK_GIB = 4
BOOT_S = 600  # a boot takes a minute on an idle machine
COMMAND_S = 600
# The option -cx16 is explained in test/kernels/guest.py.
QEMU = ["qemu-system-x86_64", "-machine", "q35,accel=tcg,smm=off", "-cpu", "max,-cx16", "-smp", "2", "-m", "2048", "-nodefaults",
        "-display", "none", "-monitor", "none", "-no-reboot"]
# AppArmor is off, because Docker would need the parser of AppArmor.
KERNEL_OPTIONS = ("root=/dev/vda rw console=ttyS0 no_timer_check mitigations=off quiet panic=-1 systemd.show_status=false "
                  "apparmor=0")

AGENT = """#!/bin/sh
# Runs what the host sends, one command in base64 a line; answers with its status and output.
exec 3<>/dev/virtio-ports/agent
echo ready >&3
while read -r line <&3; do
  echo "$line" | base64 -d >/run/agent.command
  sh /run/agent.command >/run/agent.output 2>&1 </dev/null
  echo "$? $(base64 -w0 /run/agent.output)" >&3
done
"""
AGENT_UNIT = """[Unit]
Description=Runs the commands of a test
After=basic.target dev-virtio\\x2dports-agent.device
Requires=dev-virtio\\x2dports-agent.device
[Service]
ExecStart=/usr/local/sbin/agent
Environment=PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
[Install]
WantedBy=multi-user.target
"""
# Units that a machine does not need if it runs only for seconds.
MASKED = ["apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer",
          "systemd-timesyncd.service", "e2scrub_reap.service", "getty@tty1.service", "serial-getty@ttyS0.service"]


class Failure(Exception):
    pass


def package_sources():
    """Returns the lines of an apt list with the mirrors that this machine already uses."""
    out = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"],
                         check=True, capture_output=True, text=True).stdout
    found = sorted({line for line in out.splitlines() if " bookworm" in line and line.endswith(" main")})
    if not found:
        raise Failure("this machine's apt knows no package source of Debian 12; run apt-get update")
    return "".join(f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {line}\n" for line in found)


def prepare(root):
    """Changes a fresh Debian root so that a test can control the guest."""
    agent = root / "usr/local/sbin/agent"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    (root / "etc/systemd/system/agent.service").write_text(AGENT_UNIT)
    (root / "etc/fstab").write_text("")
    (root / "etc/hostname").write_text("guest\n")
    (root / "etc/apt/sources.list").write_text("")
    shutil.rmtree(root / "etc/apt/sources.list.d", ignore_errors=True)
    systemctl = ["systemctl", f"--root={root}", "--quiet"]
    subprocess.run([*systemctl, "enable", "agent.service"], check=True)
    subprocess.run([*systemctl, "mask", *MASKED], check=True)
    subprocess.run([*systemctl, "disable", "docker.service", "docker.socket", "containerd.service"], check=True)
    (root / "etc/systemd/journald.conf.d").mkdir(exist_ok=True)
    (root / "etc/systemd/journald.conf.d/test.conf").write_text("[Journal]\nStorage=volatile\n")


def disk(folder, path, size):
    """Makes an ext4 file system with the content of `folder`, in the sparse file `path`."""
    subprocess.run(["truncate", "-s", size, path], check=True)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", folder, path], check=True)


def base():
    """Returns the folder with disk.ext4, vmlinuz and initrd.img. Makes the folder if it is not cached."""
    recipe = "\n".join([*PACKAGES, *MASKED, AGENT, AGENT_UNIT, str(DISK_GIB)])
    ready = CACHE / hashlib.sha256(recipe.encode()).hexdigest()[:16]
    if ready.exists():
        return ready
    CACHE.mkdir(parents=True, exist_ok=True)
    work = pathlib.Path(tempfile.mkdtemp(prefix="making.", dir=CACHE))
    try:
        (work / "sources.list").write_text(package_sources())
        # No fsync: on any error the root is thrown away.
        result = subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", f"--include={','.join(PACKAGES)}",
                                 "--aptopt=Acquire::Check-Valid-Until false", "--dpkgopt=force-unsafe-io", "bookworm", work / "root",
                                 work / "sources.list"], check=False, stderr=subprocess.PIPE, text=True)
        if result.returncode != 0:
            raise Failure(f"mmdebstrap failed: {result.stderr[-2000:]}")
        prepare(work / "root")
        (work / "ready").mkdir()
        for name in ("vmlinuz", "initrd.img"):
            shutil.copy(next((work / "root/boot").glob(f"{name}-*")), work / "ready" / name)
        disk(work / "root", work / "ready/disk.ext4", f"{DISK_GIB}G")
        os.replace(work / "ready", ready)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return ready


def add_dependencies(folder):
    """Downloads into `folder` the packages that apt needs to install the packages of `folder` in the guest."""
    with tempfile.TemporaryDirectory(prefix="tributary-apt-") as d:
        work = pathlib.Path(d)
        (work / "archives/partial").mkdir(parents=True)
        status = subprocess.run(["debugfs", "-R", "cat /var/lib/dpkg/status", base() / "disk.ext4"], check=True, capture_output=True).stdout
        (work / "status").write_bytes(status)
        result = subprocess.run(["apt-get", "-o", f"Dir::State::status={work}/status", "-o", f"Dir::Cache={work}", "-o", "Debug::NoLocking=1",
                                 "-o", "APT::Sandbox::User=root", "-y", "-q", "--no-install-recommends", "--download-only", "install",
                                 *sorted(folder.glob("*.deb"))], check=False, capture_output=True, text=True)
        if result.returncode != 0:
            raise Failure(f"apt cannot resolve what the packages depend on: {result.stdout}{result.stderr}")
        for path in (work / "archives").glob("*.deb"):
            shutil.move(path, folder / path.name)


class Guest:
    def __init__(self, directory, folder):
        self.directory = pathlib.Path(directory)
        self.folder = folder
        self.process = None
        self.port = None

    def __enter__(self):
        ready = base()
        disk(self.folder, self.directory / "folder.ext4", "1G")
        self.console = self.directory / "console.log"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.directory / "agent"))
        listener.listen(1)
        listener.settimeout(60)
        self.process = subprocess.Popen(
            [*QEMU, "-kernel", ready / "vmlinuz", "-initrd", ready / "initrd.img", "-append", KERNEL_OPTIONS,
             "-serial", f"file:{self.console}",
             "-drive", f"file={ready}/disk.ext4,format=raw,if=virtio,snapshot=on",
             "-drive", f"file={self.directory}/folder.ext4,format=raw,if=virtio,snapshot=on",
             "-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,path={self.directory}/agent",
             "-device", "virtserialport,chardev=agent,name=agent"], stdin=subprocess.DEVNULL)
        try:
            connection, _ = listener.accept()
            connection.settimeout(BOOT_S)
            self.port = connection.makefile("rwb")
            self.expect_ready()
            self.run("mount -o ro /dev/vdb /mnt")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        finally:
            listener.close()
        connection.settimeout(COMMAND_S)
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            if self.port:
                self.port.close()

    def text(self):
        return self.console.read_text(errors="replace").replace("\r", "") if self.console.exists() else ""

    def expect_ready(self):
        try:
            line = self.port.readline()
        except TimeoutError:
            line = b""
        if line != b"ready\n":
            raise Failure(f"the guest did not start:\n{self.text()[-3000:]}")

    def ask(self, command):
        """Runs a shell command in the guest, as root. Returns (status, output)."""
        self.port.write(base64.b64encode(command.encode()) + b"\n")
        self.port.flush()
        try:
            line = self.port.readline()
        except TimeoutError as e:
            raise Failure(f"the guest did not finish: {command}\n{self.text()[-3000:]}") from e
        if not line:
            raise Failure(f"the guest ended during: {command}\n{self.text()[-3000:]}")
        status, _, output = line.decode().strip().partition(" ")
        return int(status), base64.b64decode(output).decode(errors="replace")

    def run(self, command):
        status, output = self.ask(command)
        if status != 0:
            raise Failure(f"in the guest, exit status {status}: {command}\n{output}")
        return output

    def wait_for(self, command, timeout_s=300):
        """Repeats a command until it succeeds. Returns its output."""
        deadline = time.monotonic() + timeout_s
        while True:
            status, output = self.ask(command)
            if status == 0:
                return output
            if time.monotonic() > deadline:
                raise Failure(f"in the guest, {timeout_s} s in vain: {command}\n{output}")
            time.sleep(1)
