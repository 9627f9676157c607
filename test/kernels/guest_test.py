"""Boots another kernel (qemu, software emulation) with our binaries, profiles the truth workload in the guest and checks its
stacks, names and law from what the guest prints.

    guest_test.py VERSION      a version that fetch.sh knows
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(os.environ["TRIBUTARY_BIN"])
HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = ["reducer", "kernel-collector", "tributary", "truth"]
CHAIN = "main;serve;handle;dispatch;work;"
SHARES = {"hash_blocks": 0.6, "sort_rows": 0.3, "parse_text": 0.1}

INIT = """#!/bin/sh
export PATH=/bin LD_LIBRARY_PATH=/lib64:/lib HOME=/tmp
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
mount -t bpf bpf /sys/fs/bpf; mount -t cgroup2 cgroup2 /sys/fs/cgroup
ifconfig lo 127.0.0.1 up
echo guest > /proc/sys/kernel/hostname
uname -r
reducer --data-dir /tmp/data --ports-file /tmp/ports 2>/tmp/reducer.log &
R=$!
for i in $(seq 100); do [ -e /tmp/ports ] && break; sleep 0.2; done
kernel-collector --sample-rate 199 --batch-interval 1s 2>/tmp/collector.log &
C=$!
for i in $(seq 100); do tributary status --json 2>/dev/null | grep -q '"captured"' && break; sleep 0.2; done
sleep 1
truth 5
sleep 1
kill -TERM $C; wait $C; echo "collector exit $?"
sleep 1
echo BEGIN-STATUS; tributary status --json; echo; echo END-STATUS
echo BEGIN-FOLDED
tributary flamegraph --query '{process_executable_name="truth"}' --from -10m --to now --format folded --unit count --out -
echo END-FOLDED
kill -TERM $R; wait $R; echo "reducer exit $?"
echo BEGIN-LOGS; cat /tmp/collector.log /tmp/reducer.log; echo END-LOGS
poweroff -f
"""


def libraries(binary):
    """What the dynamic linker loads, and itself."""
    out = subprocess.run(["ldd", binary], check=True, capture_output=True, text=True).stdout
    return {match for match in re.findall(r"(/\S+)", out) if ".so" in match}


def build_initramfs(directory):
    root = directory / "root"
    for name in ("bin", "lib", "lib64", "proc", "sys", "dev", "tmp"):
        (root / name).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin/busybox")
    for applet in ("sh", "mount", "ifconfig", "echo", "uname", "seq", "sleep", "grep", "cat", "kill", "poweroff"):
        (root / "bin" / applet).symlink_to("busybox")
    found = set()
    for program in PROGRAMS:
        # Line tables of a debug build are of no use in the guest and would only be unpacked.
        subprocess.run(["strip", "--strip-debug", "-o", root / "bin" / program, BIN / program], check=True)
        found |= libraries(BIN / program)
    for library in found:
        target = root / ("lib64" if "ld-linux" in library else "lib") / pathlib.Path(library).name
        shutil.copy(os.path.realpath(library), target)
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    image = directory / "initramfs.cpio"
    with open(image, "wb") as out:
        files = subprocess.run(["find", "."], cwd=root, check=True, capture_output=True).stdout
        subprocess.run(["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0"], cwd=root, input=files, stdout=out, check=True)
    return image


def between(text, name):
    match = re.search(rf"BEGIN-{name}\n(.*?)END-{name}", text, re.S)
    if not match:
        raise AssertionError(f"the guest printed no {name}")
    return match.group(1)


def check(text, version):
    release = re.search(rf"(?<![\d.]){re.escape(version)}\.\d\S*-cloud\S*", text)  # the firmware leaves escapes before it
    assert release, f"the guest is not {version}"
    status = json.loads(between(text, "STATUS"))
    total = status["total"]
    assert total["captured"] == total["stored"] + sum(total["lost"].values()), f"the law is broken: {total}"
    assert "collector exit 0" in text and "reducer exit 0" in text, "an exit code is not 0"

    leaves, chained, count = dict.fromkeys(SHARES, 0), 0, 0
    for line in between(text, "FOLDED").splitlines():
        stack, _, number = line.strip().rpartition(" ")
        count += int(number)
        chained += int(number) if CHAIN in stack + ";" else 0
        user = [f for f in stack.split(";") if not f.endswith("_[k]")]
        if user and user[-1] in leaves:
            leaves[user[-1]] += int(number)
    assert count > 500, f"{count} samples of the truth program"
    print(f"{release.group(0)}: {count} samples, {chained / count:.3f} with the whole chain, "
          + ", ".join(f"{name} {n / count:.3f}" for name, n in leaves.items()) + f", law {total}")
    # Emulated timers are coarse: the bound on shares is wider than on a real machine, the one on stacks is not.
    assert chained / count > 0.95, "the chain main → … → work is missing from too many stacks"
    for name, share in SHARES.items():
        assert abs(leaves[name] / count - share) < 0.1, f"{name}: {leaves[name] / count:.3f}, true {share}"


def main():
    version = sys.argv[1]
    kernel = subprocess.run([HERE / "fetch.sh", version], check=True, capture_output=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="tributary-guest-") as d:
        image = build_initramfs(pathlib.Path(d))
        started = time.monotonic()
        try:
            guest = subprocess.run(
                ["qemu-system-x86_64", "-machine", "q35,accel=tcg", "-cpu", "max", "-smp", "2", "-m", "1536", "-nographic", "-no-reboot",
                 "-kernel", kernel, "-initrd", image, "-append", "console=ttyS0 quiet panic=-1 mitigations=off", "-nic", "none"],
                stdin=subprocess.DEVNULL, capture_output=True, timeout=240, check=False)
            text = guest.stdout.decode(errors="replace").replace("\r", "")
        except subprocess.TimeoutExpired as e:
            text = (e.stdout or b"").decode(errors="replace").replace("\r", "")
            text += "\n(the guest did not end within 240 s)"
        try:
            check(text, version)
        except (AssertionError, ValueError) as e:
            print("\n".join(text.splitlines()[-60:]))
            print(f"FAILED: {e}")
            sys.exit(1)
        print(f"guest ran {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main()
