"""The files of a release, each made from a clean clone: source archive, changes, packages of an architecture, checksums."""

import gzip
import hashlib
import re
import subprocess

from commands import run_script
from components import COMPONENTS
from failure import Failure
from source_tree import version_of


def write_source(clone, artifacts):
    """Writes the commit's files, and .version: an unpacked archive has no git history that contains the version."""
    version = version_of(clone)
    name = f"tributary-{version.number}"
    result = subprocess.run(["git", "-C", clone, "archive", "--format=tar", f"--prefix={name}/",
                             f"--add-virtual-file={name}/.version:{version.number} {version.commit} {version.epoch}\n", "HEAD"],
                            capture_output=True, check=False)
    if result.returncode != 0:
        raise Failure(f"git archive failed: {result.stderr.decode(errors='replace').strip()}; git 2.38 or later is needed")
    (artifacts / f"{name}-source.tar.gz").write_bytes(gzip.compress(result.stdout, 9, mtime=version.epoch))


def changes(text, number):
    """Returns the section of one version, without its heading."""
    found = re.search(rf"^## {re.escape(number)}\b[^\n]*\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if not found or not found.group(1).strip():
        raise Failure(f'CHANGELOG.md has no section "## {number}" with a line in it; write it first')
    return found.group(1).strip() + "\n"


def write_changes(clone, artifacts):
    number = version_of(clone).number
    section = changes((clone / "CHANGELOG.md").read_text(), number)
    (artifacts / f"CHANGES-{number}.md").write_text(f"# Tributary {number}\n\n{section}")


def write_packages(clone, artifacts, built, native, arch):
    """Makes the deb, rpm and image of each component, and the archives of all components."""
    version = version_of(clone)
    place = ["--build", built, "--arch", arch]
    packed = [*place, "--docs-build", native, "--out", artifacts]
    for component in COMPONENTS:
        for script in ("deb.py", "rpm.py"):
            run_script(clone / "deploy/packages" / script, *packed, "--component", component)
        image = artifacts / f"{component}-{version.number}-{arch}.image.tar"
        run_script(clone / "deploy/image.py", *place, "--component", component, "--tag",
                         f"tributary/{component}:{version.number}", "--out", image)
    run_script(clone / "deploy/packages/archive.py", *packed)


def write_checksums(artifacts):
    """Writes the checksums in the format of sha256sum, for sha256sum --check."""
    lines = []
    for path in sorted(artifacts.iterdir()):
        with open(path, "rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n")
    (artifacts / "SHA256SUMS").write_text("".join(lines))
