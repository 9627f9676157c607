#!/usr/bin/env python3
"""Makes the rpm package of one component: self-contained, it needs nothing but the C library.

    deploy/packages/rpm.py --build build/package --component reducer --out build/dist

The program and its libraries lie in /usr/lib/tributary/COMPONENT, so that packages of different versions stand beside
each other; /usr/bin has a link.
"""

import pathlib
import re
import shutil
import sys
import textwrap

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))

import payload  # noqa: E402
import tools  # noqa: E402
from commands import reproducible_environment, run  # noqa: E402
from components import component_named  # noqa: E402
from debian import ARCHITECTURES  # noqa: E402
from failure import run_main  # noqa: E402
from source_tree import SOURCE, version_of  # noqa: E402
from whole_file import whole_file  # noqa: E402

LAYOUT = payload.Layout("usr/lib/systemd/system", "usr/share/zsh/site-functions", "bundled")
TEMPLATES = SOURCE / "deploy/packages/rpm"


def filled(template, values):
    return re.sub(r"@([A-Z]+)@", lambda found: values[found.group(1)], (TEMPLATES / template).read_text())


def move_to_private_folder(component, root):
    """From usr/bin and usr/lib/tributary to usr/lib/tributary/COMPONENT/{bin,lib/tributary}. Returns the libraries' names."""
    home = root / "usr/lib/tributary" / component.name
    libraries = sorted((root / "usr/lib/tributary").iterdir())
    (home / "lib/tributary").mkdir(parents=True)
    (home / "bin").mkdir()
    for path in libraries:
        shutil.move(path, home / "lib/tributary" / path.name)
    shutil.move(root / "usr/bin" / component.name, home / "bin" / component.name)
    (root / "usr/bin" / component.name).symlink_to(pathlib.Path("../lib/tributary") / component.name / "bin" / component.name)
    licenses = root / "usr/share/licenses" / component.package
    licenses.parent.mkdir(parents=True)
    shutil.move(root / "usr/share/doc/tributary", licenses)
    shutil.rmtree(root / "usr/share/doc")
    return [path.name for path in libraries]


def add_user(component, root):
    if component.system_user:
        tools.write(root / f"usr/lib/sysusers.d/{component.package}.conf", f'u {component.system_user} - "Tributary" {component.data}\n')


def files_list(component, root):
    """Folders of our own, and every file: as rpm's spec lists them."""
    own = [f"usr/lib/tributary/{component.name}", f"usr/share/licenses/{component.package}"]
    lines = ["%defattr(-,root,root,-)", "%dir /usr/lib/tributary"] + [f"/{path}" for path in own]
    if component.service:
        lines += ["%dir /etc/tributary", f"%config(noreplace) /etc/tributary/{component.name}.yaml"]
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if not (path.is_symlink() or path.is_file()) or name.startswith((*(f"{folder}/" for folder in own), "etc/")):
            continue
        lines.append(("%doc " if "/man/" in name else "") + f"/{name}")
    return "\n".join(lines) + "\n"


def write_spec(component, version, bundled, work):
    values = {"PACKAGE": component.package, "VERSION": version, "SUMMARY": component.summary,
              "DESCRIPTION": textwrap.fill(component.description, 79),
              "BUNDLED": "|".join(re.escape(name).replace("\\", "\\\\") for name in bundled) or "none",
              "FILES": str(work / "files"), "UNIT": component.unit}
    values["SCRIPTS"] = filled("scripts.inc", values) if component.service else ""
    tools.write(work / "package.spec", filled("tributary.spec.in", values))


def rpmbuild(work, arch, epoch):
    defines = {"_topdir": work / "top", "payload": work / "root", "_buildhost": "reproducible", "_rpmdir": work / "rpms",
               "use_source_date_epoch_as_buildtime": 1, "clamp_mtime_to_source_date_epoch": 1, "source_date_epoch_from_changelog": 0,
               "_binary_payload": "w19.zstdio", "_dbpath": work / "db"}
    run("rpmbuild", "-bb", "--quiet", "--target", f"{ARCHITECTURES[arch]}-linux",
        *(word for name, value in defines.items() for word in ("--define", f"{name} {value}")), work / "package.spec",
        env=reproducible_environment(epoch))
    return next((work / "rpms").rglob("*.rpm"))


def build(options):
    component = component_named(options.component)
    source, found = payload.source_of(options), version_of()
    version = found.number + options.revision
    with tools.work_folder() as work:
        root = work / "root"
        payload.make(source, component, LAYOUT, root)
        bundled = move_to_private_folder(component, root)
        add_user(component, root)
        tools.settle(root, found.epoch)
        tools.write(work / "files", files_list(component, root))
        write_spec(component, version, bundled, work)
        target = options.out / f"{component.package}-{version}-1.{ARCHITECTURES[source.arch]}.rpm"
        with whole_file(target) as partial:
            shutil.copyfile(rpmbuild(work, source.arch, found.epoch), partial)
    print(target)


def main():
    options = payload.arguments(__doc__.splitlines()[0]).parse_args()
    run_main(lambda: build(options))


if __name__ == "__main__":
    main()
