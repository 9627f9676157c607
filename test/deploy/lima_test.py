"""Tests deploy/lima: its keys are Lima's, its scripts are valid, and the installation chooses the right packages.

TRIBUTARY_LIMACTL may name a limactl, whose own parser then reads the template, too. It does not run as root.
"""

import os
import pathlib
import subprocess
import tempfile
import unittest

from compose_model import SOURCE, documents

FILE = SOURCE / "deploy/lima/tributary.yaml"
TEMPLATE = documents(FILE)[0]
# Keys of Lima 1.1's templates that this one uses.
KEYS = {"minimumLimaVersion", "base", "containerd", "param", "mounts", "portForwards", "provision", "probes", "message"}
INNER = {"mounts": {"location", "mountPoint", "writable"}, "portForwards": {"guestPort", "hostIP", "hostPort"}, "provision": {"mode", "script"},
         "probes": {"mode", "description", "script", "hint"}}
STUB = """#!/bin/bash
case $(basename "$0") in
  dpkg) echo arm64 ;;
  *) echo "$(basename "$0") $*" >>"$LOG" ;;
esac
"""


class Lima(unittest.TestCase):
    def test_keys_are_those_of_lima(self):
        self.assertEqual(set(TEMPLATE) - KEYS, set())
        for key, known in INNER.items():
            for entry in TEMPLATE[key]:
                self.assertEqual(set(entry) - known, set(), key)
        self.assertEqual({entry["mode"] for entry in TEMPLATE["provision"] + TEMPLATE["probes"]}, {"system", "readiness"})
        if limactl := os.environ.get("TRIBUTARY_LIMACTL"):
            result = subprocess.run([limactl, "validate", FILE], capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_the_page_is_forwarded_to_loopback(self):
        self.assertEqual({(entry["guestPort"], entry["hostPort"], entry["hostIP"]) for entry in TEMPLATE["portForwards"]},
                         {(4040, 4040, "127.0.0.1"), (4041, 4041, "127.0.0.1")})

    def test_only_the_packages_are_mounted(self):
        self.assertEqual(TEMPLATE["mounts"], [{"location": "{{.Param.packages}}", "mountPoint": "/mnt/tributary", "writable": False}])
        self.assertEqual(set(TEMPLATE["param"]), {"packages"})

    def test_scripts_are_valid(self):
        for entry in TEMPLATE["provision"] + TEMPLATE["probes"]:
            self.assertTrue(entry["script"].startswith("#!/bin/bash\n"))
            result = subprocess.run(["bash", "-n"], input=entry["script"], capture_output=True, text=True, check=False)
            self.assertEqual((result.returncode, result.stderr), (0, ""))

    def install(self, files):
        """Runs the installation with stand-ins for the system's programs. Returns its result and the calls of the stand-ins."""
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            for name in ("bin", "packages"):
                (work / name).mkdir()
            for name in ("dpkg", "apt-get", "systemctl", "curl"):
                (work / "bin" / name).write_text(STUB)
                (work / "bin" / name).chmod(0o755)
            for name in files:
                (work / "packages" / name).write_text("")
            script = TEMPLATE["provision"][0]["script"].replace("/mnt/tributary", str(work / "packages"))
            result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False,
                                    env={"PATH": f"{work}/bin:{os.environ['PATH']}", "LOG": str(work / "log")})
            log = (work / "log").read_text() if (work / "log").exists() else ""
            return result, log.replace(f"{work}/packages/", "").splitlines()

    def test_the_newest_packages_of_the_architecture_are_installed(self):
        names = ("tributary", "tributary-reducer", "tributary-kernel-collector")
        result, calls = self.install([f"{name}_{version}_{arch}.deb" for name in (*names, "tributary-k8s-collector")
                                      for version in ("0.9.0", "0.10.0") for arch in ("arm64", "amd64")])
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(calls, ["apt-get install -y -q " + " ".join(f"{name}_0.10.0_arm64.deb" for name in names),
                                 "systemctl enable --now tributary-reducer tributary-kernel-collector"])

    def test_a_missing_package_is_named(self):
        result, calls = self.install(["tributary_0.1.0_arm64.deb", "tributary-reducer_0.1.0_amd64.deb"])
        self.assertEqual((result.returncode, calls), (1, []))
        self.assertEqual(result.stderr, "tributary: there is no tributary-reducer_VERSION_arm64.deb in the folder of .param.packages\n")


if __name__ == "__main__":
    unittest.main()
