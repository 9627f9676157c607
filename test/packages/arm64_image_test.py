"""Tests the arm64 image in an emulated arm64 machine: the image's collector profiles the truth workload there."""

import pathlib
import subprocess
import sys
import tempfile

import made


def profiles_the_truth_workload():
    with tempfile.TemporaryDirectory(prefix="tributary-arm64-") as d:
        image = made.image("kernel-collector", pathlib.Path(d), "arm64")
        result = subprocess.run([sys.executable, made.SOURCE / "test/kernels/guest_test.py", "6.12", "arm64", image], check=False)
        made.check(result.returncode == 0, "guest_test.py failed; its output is above")


if __name__ == "__main__":
    made.main(profiles_the_truth_workload)
