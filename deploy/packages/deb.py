#!/usr/bin/env python3
"""Makes the Debian package of one component: it uses Debian 12's own libraries and runs as a systemd service.

    deploy/packages/deb.py --build build/package --component reducer --out build/dist
"""

import pathlib
import re
import sys
import tempfile
import textwrap

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))

import debian  # noqa: E402
import payload  # noqa: E402
import shlibs  # noqa: E402
import stage  # noqa: E402
from commands import reproducible_environment, run  # noqa: E402
from components import component_named  # noqa: E402
from source_tree import SOURCE  # noqa: E402
from tree import Tree  # noqa: E402

LAYOUT = payload.Layout("usr/share", "usr/share/zsh/vendor-completions", "lib/systemd/system")
MAINTAINER = "Tributary developers <tributary@packages.invalid>"
SCRIPTS = SOURCE / "deploy/packages/deb"
COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: tributary

Files: *
Copyright: 2026 Tributary developers
License: Apache-2.0

License: Apache-2.0
 On Debian systems, the full text is in /usr/share/common-licenses/Apache-2.0."""
BPF_LICENSE = """ The BPF programs may instead be used
 under version 2 of the GNU General Public License, which is in /usr/share/common-licenses/GPL-2."""


def control(component, build, depends, installed_kib):
    description = "\n".join(textwrap.wrap(component.description, 78, initial_indent=" ", subsequent_indent=" "))
    needs = depends + (["adduser"] if component.system_user else [])
    return (f"Package: {component.package}\nVersion: {build.version}\nArchitecture: {build.arch}\nMaintainer: {MAINTAINER}\n"
            f"Installed-Size: {installed_kib}\nDepends: {', '.join(needs)}\n"
            "Recommends: ca-certificates\n"
            "Section: utils\nPriority: optional\n"
            f"Description: {component.summary}\n{description}\n")


def changelog(component, build):
    date = run("date", "-u", "-R", "-d", f"@{build.epoch}").strip()
    return (f"{component.package} ({build.version}) unstable; urgency=medium\n\n"
            f"  * Version {build.version} of Tributary.\n\n -- {MAINTAINER}  {date}\n")


def add_debian_documents(tree, component, build, root):
    """Adds licences and changelog in the package's own folder, as Debian requires."""
    folder = f"usr/share/doc/{component.package}"
    for name in component.linked_in:
        tree.write(f"{folder}/copyright.{name}", root.copyright_of(root.package(name)))
    tree.write(f"{folder}/copyright", COPYRIGHT + (BPF_LICENSE if component.has_bpf else "") + "\n")
    tree.write(f"{folder}/changelog.gz", payload.compressed(changelog(component, build)))


def maintainer_script(name, component):
    """Returns a filled template. If there is no user, the lines from "#if user" to "#end" are left out."""
    template = (SCRIPTS / name).read_text()
    template = re.sub(r"^#if user\n(.*?)^#end\n", r"\1" if component.system_user else "", template, flags=re.MULTILINE | re.DOTALL)
    purged = " ".join(path for path in (component.data, component.runtime_files) if path)
    return payload.filled(template, {"UNIT": component.unit, "USER": component.system_user, "DATA": component.data, "PURGED": purged,
                                     "START": "yes" if component.starts_at_install else "no"})


def checksums(folder):
    """Returns the text of md5sums, which dpkg --verify compares files with."""
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and not path.is_symlink()
                   and path.relative_to(folder).parts[0] not in ("DEBIAN", "etc"))
    return run("md5sum", *files, cwd=folder)


def add_control_files(tree, component, build, depends):
    """Adds the folder DEBIAN. All other files must already be in the tree."""
    size_kib = sum(-(-path.lstat().st_size // 1024) if path.is_file() else 1 for path in tree.path.rglob("*"))
    tree.write("DEBIAN/control", control(component, build, depends, size_kib))
    tree.write("DEBIAN/md5sums", checksums(tree.path))
    if component.service:
        tree.write("DEBIAN/conffiles", f"/etc/tributary/{component.name}.yaml\n")
        for script in ("postinst", "prerm", "postrm"):
            tree.write(f"DEBIAN/{script}", maintainer_script(script, component), 0o755)


def make(options, build):
    component = component_named(options.component)
    binary = stage.built(build.folder, component, build.arch)
    root = debian.root_of(build.arch)
    with tempfile.TemporaryDirectory(prefix="tributary-package-") as work:
        folder = pathlib.Path(work) / "root"
        with Tree(folder, build.epoch) as tree:
            stage.add_program(tree, binary, build.arch)
            payload.add_documents(tree, build, component, LAYOUT)
            add_debian_documents(tree, component, build, root)
            add_control_files(tree, component, build, shlibs.depends(binary))
        with payload.finished_file(options.out / f"{component.package}_{build.version}_{build.arch}.deb") as partial:
            # One thread: the number of threads would show in the compressed bytes.
            run("dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build", folder, partial,
                env=reproducible_environment(build.epoch))


if __name__ == "__main__":
    payload.main(__doc__, make)
