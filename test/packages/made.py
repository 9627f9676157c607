"""Makes the packages and images that the tests install, from the build that TRIBUTARY_PACKAGE_BUILD names.

dev/test --packages makes that build.
"""

import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
COMPONENTS = ("kernel-collector", "reducer", "k8s-collector", "tributary")


class Failure(Exception):
    pass


def check(condition, message):
    if not condition:
        raise Failure(message)


def build_folder(arch="amd64"):
    variable = "TRIBUTARY_PACKAGE_BUILD" if arch == "amd64" else "TRIBUTARY_ARM64_BUILD"
    folder = os.environ.get(variable, "")
    check(folder and (pathlib.Path(folder) / "bin/kernel-collector").exists(), f"{variable} names no build; run dev/test --packages")
    return pathlib.Path(folder)


def script(name, *arguments, build=None):
    """Runs deb.py, rpm.py or archive.py. Returns the files that the script made."""
    result = subprocess.run([sys.executable, SOURCE / "deploy/packages" / name, "--build", build or build_folder(), *arguments],
                            capture_output=True, text=True, check=False)
    check(result.returncode == 0, f"{name}: {result.stderr}")
    return [pathlib.Path(line) for line in result.stdout.splitlines()]


def package(kind, component, out, revision=""):
    return script(f"{kind}.py", "--component", component, "--out", out, "--revision", revision)[0]


def image(component, out, arch="amd64"):
    path = out / f"{component}.tar"
    subprocess.run([sys.executable, SOURCE / "deploy/image.py", "--build", build_folder(arch), "--component", component, "--arch", arch,
                    "--tag", f"{component}:latest", "--out", path], check=True)
    return path


def main(*tests):
    """Runs the given functions. If the command line names functions, runs only those."""
    wanted = sys.argv[1:]
    failed = False
    for test in tests:
        if wanted and test.__name__ not in wanted:
            continue
        try:
            test()
            print(f"ok     {test.__name__}", flush=True)
        except Exception as e:  # pylint: disable=broad-except
            failed = True
            print(f"FAILED {test.__name__}: {type(e).__name__}: {e}", flush=True)
    sys.exit(failed)
