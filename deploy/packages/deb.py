#!/usr/bin/env python3
"""Makes the Debian package of one component: it uses Debian 12's own libraries and runs as a systemd service.

    deploy/packages/deb.py --build build/package --component reducer --out build/dist
"""

import pathlib
import re
import shutil
import sys
import textwrap

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))

import payload  # noqa: E402
import shlibs  # noqa: E402
import tools  # noqa: E402
from commands import reproducible_environment, run  # noqa: E402
from components import component_named  # noqa: E402
from failure import run_main  # noqa: E402
from source_tree import SOURCE, version_of  # noqa: E402
from whole_file import whole_file  # noqa: E402

LAYOUT = payload.Layout("lib/systemd/system", "usr/share/zsh/vendor-completions", "system")
MAINTAINER = "Tributary developers <tributary@packages.invalid>"
SCRIPTS = SOURCE / "deploy/packages/deb"
COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: tributary

Files: *
Copyright: 2026 Tributary developers
License: Apache-2.0

License: Apache-2.0
 On Debian systems, the full text is in /usr/share/common-licenses/Apache-2.0. The BPF programs may instead be used
 under version 2 of the GNU General Public License, which is in /usr/share/common-licenses/GPL-2.
"""


def control(component, version, arch, depends, installed_kib):
    description = "\n".join(textwrap.wrap(component.description, 78, initial_indent=" ", subsequent_indent=" "))
    needs = depends + (["adduser"] if component.system_user else [])
    return (f"Package: {component.package}\nVersion: {version}\nArchitecture: {arch}\nMaintainer: {MAINTAINER}\n"
            f"Installed-Size: {installed_kib}\nDepends: {', '.join(needs)}\n"
            "Recommends: ca-certificates\n"
            f"Section: utils\nPriority: optional\n"
            f"Description: {component.summary}\n{description}\n")


def changelog(component, version, epoch):
    date = run("date", "-u", "-R", "-d", f"@{epoch}").strip()
    return (f"{component.package} ({version}) unstable; urgency=medium\n\n"
            f"  * Version {version} of Tributary.\n\n -- {MAINTAINER}  {date}\n")


def add_debian_documents(component, version, epoch, root):
    """Licenses where Debian has them: stage.py's folder would belong to all four packages at once."""
    folder, staged = root / "usr/share/doc" / component.package, root / "usr/share/doc/tributary.staged"
    (root / "usr/share/doc/tributary").rename(staged)
    folder.mkdir()
    for path in (staged / "copyright").glob("*"):  # of libraries whose code is in the program itself
        path.rename(folder / f"copyright.{path.name}")
    shutil.rmtree(staged)
    tools.write(folder / "copyright", COPYRIGHT)
    tools.write_gzip(folder / "changelog.gz", changelog(component, version, epoch))


def maintainer_script(name, component):
    """The template without the lines from "#if user" to "#end" if there is no user."""
    template = (SCRIPTS / name).read_text()
    template = re.sub(r"^#if user\n(.*?)^#end\n", r"\1" if component.system_user else "", template, flags=re.MULTILINE | re.DOTALL)
    purged = " ".join(path for path in (component.data, component.runtime_files) if path)
    values = {"UNIT": component.unit, "USER": component.system_user, "DATA": component.data, "PURGED": purged,
              "START": "yes" if component.starts_at_install else "no"}
    return re.sub(r"@([A-Z]+)@", lambda found: values[found.group(1)], template)


def checksums(root):
    """The file md5sums, by which dpkg --verify finds damage."""
    files = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and not path.is_symlink()
                   and "DEBIAN" not in path.parts and path.relative_to(root).parts[0] != "etc")
    return run("md5sum", *files, cwd=root)


def write_control_files(component, version, arch, depends, root):
    size_kib = sum(-(-path.lstat().st_size // 1024) if path.is_file() else 1 for path in root.rglob("*"))
    tools.write(root / "DEBIAN/control", control(component, version, arch, depends, size_kib))
    tools.write(root / "DEBIAN/md5sums", checksums(root))
    if component.service:
        tools.write(root / "DEBIAN/conffiles", f"/etc/tributary/{component.name}.yaml\n")
        for script in ("postinst", "prerm", "postrm"):
            tools.write(root / "DEBIAN" / script, maintainer_script(script, component), 0o755)


def build(options):
    component = component_named(options.component)
    source, found = payload.source_of(options), version_of()
    version = found.number + options.revision
    with tools.work_folder() as work:
        root = work / "root"
        payload.make(source, component, LAYOUT, root)
        depends = shlibs.depends(root / "usr/bin" / component.name)
        add_debian_documents(component, version, found.epoch, root)
        write_control_files(component, version, source.arch, depends, root)
        tools.settle(root, found.epoch)
        target = options.out / f"{component.package}_{version}_{source.arch}.deb"
        with whole_file(target) as partial:
            # One thread: the number of threads would show in the compressed bytes.
            run("dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build", root, partial,
                      env=reproducible_environment(found.epoch))
    print(target)


def main():
    options = payload.arguments(__doc__.splitlines()[0]).parse_args()
    run_main(lambda: build(options))


if __name__ == "__main__":
    main()
