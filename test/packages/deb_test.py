"""Tests the Debian packages in a guest with systemd.

The steps are install, start, samples, reload, restart, upgrade, removal and purge.
"""

import json
import pathlib
import re
import subprocess
import tempfile
import time

import debian_guest
import made
from made import check

SERVICES = ("reducer", "kernel-collector")
URL = "http://127.0.0.1:4040"
# The capabilities that kernel-collector's unit allows. After start-up the program itself keeps fewer.
ALLOWED = {"dac_read_search": 2, "sys_ptrace": 19, "sys_admin": 21, "syslog": 34, "perfmon": 38, "bpf": 39, "checkpoint_restore": 40}


def unit(name):
    return f"tributary-{name}"


def install(guest, files):
    # The guest has no network and no package lists, so a package that Depends does not name is missing.
    guest.run("DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends " + " ".join(f"/mnt/{file.name}" for file in files))


def shown(guest, name, key):
    return guest.run(f"systemctl show --value -p {key} {unit(name)}").strip()


def active(guest, name):
    return guest.ask(f"systemctl is-active --quiet {unit(name)}")[0] == 0


def stored(guest):
    return json.loads(guest.run(f"curl -fsS {URL}/api/v1/status"))["total"]["stored"]


def wait_for_more(guest, count):
    """Waits until more than `count` samples are stored. Returns the number of stored samples."""
    guest.wait_for(f"test $(curl -fsS {URL}/api/v1/status | grep -o '\"stored\":[0-9]*' | tail -n 1 | cut -d: -f2) -gt {count}")
    return stored(guest)


def wait_active(guest):
    guest.wait_for(" && ".join(f"systemctl is-active --quiet {unit(name)}" for name in SERVICES) + f" && curl -fsS {URL}/readyz")


def check_started(guest):
    wait_active(guest)
    for name in SERVICES:
        check(shown(guest, name, "Type") == "notify", f"{name} does not tell systemd that it is ready")
        check(shown(guest, name, "NRestarts") == "0", f"{name} had to be started again:\n{guest.run(f'journalctl -u {unit(name)}')}")
        check(guest.run(f"systemctl is-enabled {unit(name)}").strip() == "enabled", f"{name} does not start with the machine")
    check("disabled" in guest.ask(f"systemctl is-enabled {unit('k8s-collector')}")[1], "k8s-collector starts before it is configured")
    check(guest.run("stat -c %U:%a /var/lib/tributary").strip() == "tributary:750", "the data belong to somebody else")
    pid = shown(guest, "reducer", "MainPID")
    check(guest.run(f"stat -c %U /proc/{pid}").strip() == "tributary", "the reducer does not run as its user")


def check_confined(guest):
    """Checks that the collector has no capability that its unit does not allow, and cannot gain privileges."""
    pid = shown(guest, "kernel-collector", "MainPID")
    status = dict(line.split(":\t", 1) for line in guest.run(f"cat /proc/{pid}/status").splitlines() if ":\t" in line)
    allowed = sum(1 << bit for bit in ALLOWED.values())
    check(int(status["CapEff"], 16) & ~allowed == 0, f"kernel-collector has capabilities {status['CapEff']}")
    check(status["NoNewPrivs"] == "1", "kernel-collector may gain privileges")


def check_names(guest):
    shown = guest.run("tributary top --from -1h")
    check(re.search(r"\[kernel\]\s*$", shown, re.MULTILINE), f"tributary top shows no named function of the kernel:\n{shown}")


def check_files(guest):
    for name in made.COMPONENTS:
        guest.run(f"ls /usr/share/bash-completion/completions/{name} /usr/share/fish/vendor_completions.d/{name}.fish "
                  f"/usr/share/zsh/vendor-completions/_{name} && zcat /usr/share/man/man[18]/{name}.[18].gz | grep -q '^[.]TH'")
    for name in ("kernel-collector", "reducer", "k8s-collector"):
        guest.run(f"{name} --config /etc/tributary/{name}.yaml --print-config")
    problems = guest.run("dpkg --verify tributary tributary-reducer tributary-kernel-collector tributary-k8s-collector")
    check(problems == "", f"dpkg --verify: {problems}")


def check_restart(guest):
    before = stored(guest)
    for name in SERVICES:
        guest.run(f"systemctl restart {unit(name)}")
    wait_active(guest)
    return wait_for_more(guest, before)


def check_upgrade(guest, newer):
    guest.run("echo 'sample_rate: 41' >>/etc/tributary/kernel-collector.yaml")
    guest.run(f"systemctl reload {unit('kernel-collector')}")
    guest.wait_for(f"journalctl -u {unit('kernel-collector')} | grep -q 'reloaded.*sample-rate'")
    before, pids = stored(guest), {name: shown(guest, name, "MainPID") for name in SERVICES}
    install(guest, newer)
    wait_active(guest)
    for name in SERVICES:
        check(shown(guest, name, "MainPID") != pids[name], f"{name} still runs as before the upgrade")
        check(guest.run(f"dpkg-query -W -f '${{Version}}' tributary-{name}").endswith("+newer"), f"{name} is not upgraded")
    guest.run("grep -q '^sample_rate: 41' /etc/tributary/kernel-collector.yaml")
    check(stored(guest) >= before, "the upgrade lost data")
    wait_for_more(guest, before)


def check_stays_stopped(guest, newer):
    """Checks that an upgrade does not start a service that the administrator stopped."""
    guest.run(f"systemctl stop {unit('kernel-collector')}")
    guest.run("apt-get install -y -q --reinstall " + " ".join(f"/mnt/{f.name}" for f in newer if "kernel" in f.name))
    check(not active(guest, "kernel-collector"), "an upgrade started what the administrator had stopped")


def check_removal(guest):
    packages = " ".join(f"tributary-{name}" for name in SERVICES)
    guest.run(f"apt-get remove -y -q {packages}")
    check(not any(active(guest, name) for name in SERVICES), "a removed service runs")
    guest.run("ls /etc/tributary/reducer.yaml /etc/tributary/kernel-collector.yaml && find /var/lib/tributary -name '*.db' | grep -q .")
    guest.run(f"apt-get purge -y -q {packages} tributary-k8s-collector tributary")
    left = guest.run("ls -d /etc/tributary /var/lib/tributary* /sys/fs/bpf/tributary /etc/systemd/system/*/tributary* 2>/dev/null; true")
    check(left == "", f"purge left {left}")
    check(guest.ask("getent passwd tributary")[0] != 0, "purge left the user")


def lintian_is_content():
    """Runs Debian's own checks. The programs have a search path for libraries because the archives contain the same
    programs. In a Debian package this path leads to no folder, so its tag is suppressed."""
    with tempfile.TemporaryDirectory(prefix="tributary-deb-") as d:
        debs = [made.package("deb", component, pathlib.Path(d)) for component in made.COMPONENTS]
        result = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", "--suppress-tags", "custom-library-search-path", *debs],
                                capture_output=True, text=True, check=False)
        check(result.returncode == 0, f"lintian: {result.stdout}{result.stderr}")


def life_of_the_packages():
    with tempfile.TemporaryDirectory(prefix="tributary-deb-") as d:
        directory, folder = pathlib.Path(d), pathlib.Path(d) / "debs"
        for component in made.COMPONENTS:
            made.package("deb", component, folder)
        debian_guest.add_dependencies(folder)
        all_older = sorted(folder.glob("*.deb"))
        newer = [made.package("deb", component, folder, "+newer") for component in SERVICES]
        with debian_guest.Guest(directory, folder) as guest:
            for step, *more in ((install, all_older), (check_started,), (wait_for_more, 0), (check_names,), (check_files,), (check_confined,),
                                (check_restart,), (check_upgrade, newer), (check_stays_stopped, newer), (check_removal,)):
                begin = time.monotonic()
                step(guest, *more)
                print(f"  {step.__name__}: {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    made.main(lintian_is_content, life_of_the_packages)
