"""Tests that the systemd units are valid, name programs and files that the packages have, and are confined."""

import pathlib
import re
import subprocess
import tempfile

import made
from made import check

UNITS = sorted((made.SOURCE / "deploy/systemd").glob("*.service"))
# Limits in systemd's own measure: 0 (confined) to 100. A unit without any setting has 96. The collector needs root.
EXPOSURE_MAX = {"tributary-kernel-collector.service": 45, "tributary-reducer.service": 20, "tributary-k8s-collector.service": 20}
NEEDED = ("Type=notify", "WatchdogSec=", "ExecReload=/bin/kill -HUP $MAINPID", "LimitNOFILE=", "NoNewPrivileges=yes", "ProtectSystem=strict",
          "CapabilityBoundingSet=", "Restart=on-failure")


def analyze(*words):
    return subprocess.run(["systemd-analyze", *map(str, words)], capture_output=True, text=True, check=False)


def are_valid():
    check(len(UNITS) == 3, f"units: {UNITS}")
    with tempfile.TemporaryDirectory() as d:
        folder = pathlib.Path(d)
        for unit in UNITS:
            text = unit.read_text()
            program = re.search(r"^ExecStart=/usr/bin/(\S+) --config /etc/tributary/\1\.yaml$", text, re.MULTILINE)
            check(program and program.group(1) in made.COMPONENTS, f"{unit.name} starts no program of ours")
            # The unit's program and manual need not be installed here.
            text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.MULTILINE)
            (folder / unit.name).write_text(re.sub(r"^Documentation=.*\n", "", text, flags=re.MULTILINE))
        result = analyze("verify", *(folder / unit.name for unit in UNITS))
        check(result.returncode == 0 and not result.stderr, f"systemd-analyze verify: {result.stderr}")


def a_wrong_line_is_found():
    with tempfile.TemporaryDirectory() as d:
        wrong = pathlib.Path(d) / "wrong.service"
        wrong.write_text("[Service]\nExecStart=/bin/true\nProtectSystemm=strict\n")
        check("ProtectSystemm" in analyze("verify", wrong).stderr, "systemd-analyze verify does not see an unknown setting")


def are_confined():
    for unit in UNITS:
        missing = [line for line in NEEDED if not re.search(rf"^{re.escape(line)}", unit.read_text(), re.MULTILINE)]
        check(not missing, f"{unit.name} lacks {missing}")
        result = analyze("security", "--offline=yes", f"--threshold={EXPOSURE_MAX[unit.name]}", unit)
        print(f"{unit.name}: {result.stdout.splitlines()[-1].strip() if result.stdout else result.stderr}")
        check(result.returncode == 0, f"{unit.name} is more exposed than {EXPOSURE_MAX[unit.name] / 10}")


if __name__ == "__main__":
    made.main(are_valid, a_wrong_line_is_found, are_confined)
