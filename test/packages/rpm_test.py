"""Tests that the rpm packages install and run in a root file system that has only glibc."""

import pathlib
import re
import subprocess
import tempfile

import bare_root
import made
import profiling
from made import check

GLIBC_MAX = (2, 36)
GLIBC_SONAMES = r"(libc|libm|libdl|libpthread|librt|libresolv|libutil|ld-linux-x86-64)\.so\.\d+"
# The C library as a package. rpm itself finds the symbol versions that the package's files provide.
GLIBC_SPEC = """
Name: glibc
Version: 2.36
Release: 1
Summary: the C library
License: LGPL
Provides: rtld(GNU_HASH)
%global __os_install_post %{{nil}}
%global debug_package %{{nil}}
%define _build_id_links none
%description
Stands for a distribution's own.
%install
mkdir -p %{{buildroot}}
cp -a {root}/. %{{buildroot}}/
%files
/*
"""


def rpm(*words):
    result = subprocess.run([*bare_root.ROOT, "rpm", *map(str, words)], capture_output=True, text=True, check=False)
    check(result.returncode == 0, f"rpm {' '.join(map(str, words))}: {result.stderr}")
    return result.stdout


def check_requires(file):
    """Checks that a package requires only rpm's own features and the C library, at most in version GLIBC_MAX, which the
    documentation names."""
    for line in rpm("-qp", "--requires", file).split("\n"):
        wanted = line.split(" ")[0]
        if not wanted or wanted.startswith(("rpmlib(", "config(")) or wanted == "rtld(GNU_HASH)":
            continue
        found = re.fullmatch(GLIBC_SONAMES + r"\((GLIBC_(\d+)\.(\d+)[.\d]*)?\)\(64bit\)", wanted)
        check(found, f"{file.name} needs {line}")
        if found.group(2):
            check((int(found.group(3)), int(found.group(4))) <= GLIBC_MAX, f"{file.name} needs {line}")


def glibc_package(work):
    for path in bare_root.c_library_files():
        target = work / "glibc" / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(pathlib.Path(path).read_bytes())
        target.chmod(0o755)
    (work / "glibc.spec").write_text(GLIBC_SPEC.format(root=work / "glibc"))
    subprocess.run(["rpmbuild", "-bb", "--quiet", "--define", f"_topdir {work}/top", "--define", f"_rpmdir {work}/rpms", work / "glibc.spec"],
                   check=True, capture_output=True)
    return next((work / "rpms").rglob("glibc-*.rpm"))


def installs_and_runs():
    with tempfile.TemporaryDirectory(prefix="tributary-rpm-") as d, bare_root.bare_root() as root:
        work = pathlib.Path(d)
        packages = [made.package("rpm", component, work / "out") for component in made.COMPONENTS]
        for file in packages:
            check_requires(file)
        (root / "rpmdb").mkdir()
        at_root = ["--root", root, "--dbpath", "/rpmdb", "--nosignature"]
        # The root already has these files. Only their entry in the database is missing.
        rpm(*at_root, "--install", "--justdb", glibc_package(work))
        rpm(*at_root, "--install", *packages)
        for name in made.COMPONENTS:
            shown = subprocess.run(bare_root.command(root, f"/usr/bin/{name}", "--version"), capture_output=True, text=True, check=False)
            check(shown.returncode == 0 and shown.stdout.startswith(f"{name} "), f"{name} --version: {shown.stdout}{shown.stderr}")
        profiling.profiles(root, "/usr/bin")
        newer = [made.package("rpm", component, work / "out", "+newer") for component in ("reducer", "kernel-collector")]
        (root / "etc/tributary/reducer.yaml").write_text("# the administrator's\n")
        rpm(*at_root, "--upgrade", *newer)
        check((root / "etc/tributary/reducer.yaml").read_text() == "# the administrator's\n", "the upgrade changed the configuration")
        check("newer" in rpm(*at_root, "-q", "tributary-reducer"), "the upgrade did not happen")
        rpm(*at_root, "--verify", "tributary-kernel-collector")
        rpm(*at_root, "--erase", "tributary", *(f"tributary-{name}" for name in made.COMPONENTS[:3]))
        left = list((root / "usr").rglob("*tributary*"))
        check(not left, f"files are left: {left}")


if __name__ == "__main__":
    made.main(installs_and_runs)
