#!/usr/bin/env python3
"""Makes the rpm package of one component: self-contained, it needs nothing but the C library.

    deploy/packages/rpm.py --build build/package --component reducer --out build/dist

The program and its libraries lie in /usr/lib/tributary/COMPONENT, so that packages of different versions can be
installed next to each other. /usr/bin has a link.
"""

import pathlib
import re
import shutil
import sys
import tempfile
import textwrap

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))

import bundle  # noqa: E402
import debian  # noqa: E402
import payload  # noqa: E402
import stage  # noqa: E402
from commands import reproducible_environment, run  # noqa: E402
from components import component_named  # noqa: E402
from source_tree import SOURCE  # noqa: E402
from tree import Tree  # noqa: E402

LAYOUT = payload.Layout("usr/share", "usr/share/zsh/site-functions", "usr/lib/systemd/system")
TEMPLATES = SOURCE / "deploy/packages/rpm"


def home_of(component):
    return f"usr/lib/tributary/{component.name}"


def licenses_of(component):
    return f"usr/share/licenses/{component.package}"


def files_list(component, folder):
    """Returns the list of our own folders and of every file, in the format of rpm's spec."""
    own = [path for path in (home_of(component), licenses_of(component), payload.fleet_folder(LAYOUT)) if (folder / path).is_dir()]
    lines = ["%defattr(-,root,root,-)", "%dir /usr/lib/tributary"] + [f"/{path}" for path in own]
    if component.service:
        lines += ["%dir /etc/tributary", f"%config(noreplace) /etc/tributary/{component.name}.yaml"]
    listed = (*(f"{path}/" for path in own), "etc/")
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if (path.is_symlink() or path.is_file()) and not name.startswith(listed):
            lines.append(("%doc " if "/man/" in name else "") + f"/{name}")
    return "\n".join(lines) + "\n"


def write_spec(component, version, libraries, work):
    bundled = "|".join(re.escape(library.name).replace("\\", "\\\\") for library in libraries) or "none"
    values = {"PACKAGE": component.package, "VERSION": version, "SUMMARY": component.summary, "LICENSE": component.licenses,
              "DESCRIPTION": textwrap.fill(component.description, 79), "BUNDLED": bundled,
              "FILES": str(work / "files"), "UNIT": component.unit}
    values["SCRIPTS"] = payload.filled((TEMPLATES / "scripts.inc").read_text(), values) if component.service else ""
    (work / "package.spec").write_text(payload.filled((TEMPLATES / "tributary.spec.in").read_text(), values))


def rpmbuild(work, arch, epoch):
    defines = {"_topdir": work / "top", "payload": work / "root", "_buildhost": "reproducible", "_rpmdir": work / "rpms",
               "use_source_date_epoch_as_buildtime": 1, "clamp_mtime_to_source_date_epoch": 1, "source_date_epoch_from_changelog": 0,
               "_binary_payload": "w19.zstdio", "_dbpath": work / "db"}
    run("rpmbuild", "-bb", "--quiet", "--target", f"{debian.ARCHITECTURES[arch]}-linux",
        *(word for name, value in defines.items() for word in ("--define", f"{name} {value}")), work / "package.spec",
        env=reproducible_environment(epoch))
    return next((work / "rpms").rglob("*.rpm"))


def make(options, build):
    component = component_named(options.component)
    binary = stage.built(build.folder, component, build.arch)
    root = debian.root_of(build.arch)
    libraries = bundle.shipped_libraries_of(root, binary)
    with tempfile.TemporaryDirectory(prefix="tributary-package-") as d:
        work = pathlib.Path(d)
        with Tree(work / "root", build.epoch) as tree:
            stage.stage(tree, component, binary, root, libraries, home_of(component), licenses_of(component))
            tree.link(f"usr/bin/{component.name}", f"../lib/tributary/{component.name}/bin/{component.name}")
            payload.add_documents(tree, build, component, LAYOUT)
            if component.system_user:
                tree.write(f"usr/lib/sysusers.d/{component.package}.conf", f'u {component.system_user} - "Tributary" {component.data}\n')
        (work / "files").write_text(files_list(component, work / "root"))
        write_spec(component, build.version, libraries, work)
        name = f"{component.package}-{build.version}-1.{debian.ARCHITECTURES[build.arch]}.rpm"
        with payload.finished_file(options.out / name) as partial:
            shutil.copyfile(rpmbuild(work, build.arch, build.epoch), partial)


if __name__ == "__main__":
    payload.main(__doc__, make)
