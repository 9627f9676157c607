#!/usr/bin/env python3
"""Makes the archives of all components: they run from any folder and need nothing but the C library.

    deploy/packages/archive.py --build build/package --out build/dist

tributary-VERSION-linux-ARCH.tar.gz and .tar.zst have the same content: bin/, lib/tributary/, share/, etc/, and systemd/
with the units.
"""

import gzip
import io
import pathlib
import sys
import tarfile
import tempfile

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))

import bundle  # noqa: E402
import debian  # noqa: E402
import payload  # noqa: E402
import stage  # noqa: E402
from commands import run  # noqa: E402
from components import COMPONENTS  # noqa: E402
from tree import Tree  # noqa: E402

LAYOUT = payload.Layout("share", "share/zsh/site-functions", "systemd", is_installed=False)
README = """Tributary {version}

  bin/reducer --data-dir data &
  sudo bin/kernel-collector
  bin/tributary top

The page is at http://127.0.0.1:4040/. The programs find their libraries in lib/tributary next to bin: keep both
folders together. etc/tributary/ has a configuration file with every option for each program: give it with --config.
systemd/ has units, which expect the programs in /usr/bin and the configuration in /etc/tributary. The programs need
glibc 2.36 or later.
"""


def tar(root, name, epoch):
    """Returns a folder as a tar file. Members are sorted, belong to root and have one time, so the bytes depend only on
    the content."""
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


def make(options, build):
    root = debian.root_of(build.arch)
    name = f"tributary-{build.version}-linux-{build.arch}"
    with tempfile.TemporaryDirectory(prefix="tributary-package-") as d:
        work = pathlib.Path(d)
        with Tree(work / "root", build.epoch) as tree:
            for component in COMPONENTS.values():
                binary = stage.built(build.folder, component, build.arch)
                stage.stage(tree, component, binary, root, bundle.shipped_libraries_of(root, binary), "", "share/doc/tributary")
                payload.add_documents(tree, build, component, LAYOUT)
            tree.write("README", README.format(version=build.version))
        content = tar(work / "root", name, build.epoch)
        with payload.finished_file(options.out / f"{name}.tar.gz") as partial:
            partial.write_bytes(gzip.compress(content, 9, mtime=build.epoch))
        (work / "content.tar").write_bytes(content)
        with payload.finished_file(options.out / f"{name}.tar.zst") as partial:
            run("zstd", "-q", "-f", "-19", "--single-thread", work / "content.tar", "-o", partial)


if __name__ == "__main__":
    payload.main(__doc__, make, one_component=False)
