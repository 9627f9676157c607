#!/usr/bin/env python3
"""Makes the archives of all components: they run from any folder and need nothing but the C library.

    deploy/packages/archive.py --build build/package --out build/dist

tributary-VERSION-linux-ARCH.tar.gz and .tar.zst have the same content: bin/, lib/tributary/, share/, etc/, and systemd/
with the units.
"""

import gzip
import io
import pathlib
import shutil
import sys
import tarfile

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))

import payload  # noqa: E402
import tools  # noqa: E402
from commands import run  # noqa: E402
from components import COMPONENTS  # noqa: E402
from failure import Failure, run_main  # noqa: E402
from source_tree import version_of  # noqa: E402
from whole_file import whole_file  # noqa: E402

LAYOUT = payload.Layout("systemd", "usr/share/zsh/site-functions", "bundled", is_installed=False)
README = """Tributary {version}

  bin/reducer --data-dir data &
  sudo bin/kernel-collector
  bin/tributary top

The page is at http://127.0.0.1:4040/. The programs find their libraries in lib/tributary beside bin: keep both together.
etc/tributary/ has a configuration file for each program with every option, to be given by --config. systemd/ has
units, which expect the programs in /usr/bin and the configuration in /etc/tributary. The programs need glibc 2.36 or
later.
"""


def merge(part, whole):
    """Moves the files of one component; libraries that several components have are the same."""
    for path in sorted(part.rglob("*")):
        name = path.relative_to(part)
        target = whole / (name.relative_to("usr") if name.parts[0] == "usr" and len(name.parts) > 1 else name)
        if path.is_dir() and not path.is_symlink():
            continue
        if target.exists() and target.read_bytes() != path.read_bytes():
            raise Failure(f"two components bring different files {target.name}; build them in one folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(path, target)


def tar(root, name, epoch):
    """Sorted, of root, with one time: the bytes depend on the content alone."""
    def plain(member):
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mtime = epoch
        return member

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in [root, *sorted(root.rglob("*"))]:
            archive.add(path, pathlib.Path(name) / path.relative_to(root), recursive=False, filter=plain)
    return out.getvalue()


def build(options):
    source, found = payload.source_of(options), version_of()
    name = f"tributary-{found.number}{options.revision}-linux-{source.arch}"
    with tools.work_folder() as work:
        root = work / "whole"
        for component in COMPONENTS.values():
            payload.make(source, component, LAYOUT, work / component.name)
            merge(work / component.name, root)
        tools.write(root / "README", README.format(version=found.number + options.revision))
        tools.settle(root, found.epoch)
        content = tar(root, name, found.epoch)
        with whole_file(options.out / f"{name}.tar.gz") as partial:
            partial.write_bytes(gzip.compress(content, 9, mtime=found.epoch))
        (work / "content.tar").write_bytes(content)
        with whole_file(options.out / f"{name}.tar.zst") as partial:
            run("zstd", "-q", "-f", "-19", "--single-thread", work / "content.tar", "-o", partial)
    print(options.out / f"{name}.tar.gz", options.out / f"{name}.tar.zst", sep="\n")


def main():
    options = payload.arguments(__doc__.splitlines()[0], component_required=False).parse_args()
    run_main(lambda: build(options))


if __name__ == "__main__":
    main()
