"""The root file system of an image: one program, its libraries, and the few files that any program needs."""

import bundle
import debian
import elf
from components import DATA, UNPRIVILEGED
from failure import Failure
from sbom import Sbom
from stage import stage

CERTIFICATES = "usr/share/ca-certificates/mozilla"
PASSWD = f"root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:{UNPRIVILEGED}:{UNPRIVILEGED}:nonroot:{DATA}:/sbin/nologin\n"
GROUP = f"root:x:0:\nnonroot:x:{UNPRIVILEGED}:\n"
# glibc 2.36 resolves names itself, so the image needs no library of glibc's name service.
NSSWITCH = "passwd: files\ngroup: files\nhosts: files dns\n"


def certificates(root):
    """Returns the certificate authorities that Debian ships, as one file. Authorities that a machine trusts in addition
    are left out."""
    files = sorted(root.host_path(CERTIFICATES).glob("*.crt"))
    if not files:
        raise Failure(f"{root.host_path(CERTIFICATES)} has no certificate: install ca-certificates")
    return b"".join(file.read_bytes().rstrip() + b"\n" for file in files)


def _add_c_library(tree, root, binary, libraries):
    for folder in ("bin", "sbin", "lib", "lib64"):
        tree.folder(f"usr/{folder}")
        tree.link(folder, f"usr/{folder}")
    for library in libraries:
        if library.is_c_library:
            mode = 0o755 if library.name.startswith("ld-linux") else 0o644
            tree.copy(library.path, root.host_path(library.path), mode)
    interpreter = elf.read(binary).interpreter  # /lib64/ld-linux-x86-64.so.2: a link to the one in the libraries' folder
    if not (tree.path / interpreter.lstrip("/")).exists():
        name = interpreter.rsplit("/", 1)[1]
        tree.link(f"/usr{interpreter}", f"/usr/lib/{root.triple}/{name}")


def add_base(tree, root, binary, libraries, native):
    """Adds what every program needs: the C library, users, certificate authorities, mount points. Files that are the same for every
    architecture come from `native`."""
    _add_c_library(tree, root, binary, libraries)
    tree.write("etc/passwd", PASSWD)
    tree.write("etc/group", GROUP)
    tree.write("etc/nsswitch.conf", NSSWITCH)
    tree.write("etc/ssl/certs/ca-certificates.crt", certificates(native))
    # Mount points of containers. They must exist because the root may be read-only.
    for folder in ("dev", "hostfs", "proc", "run", "sys", "root"):
        tree.folder(folder)
    tree.folder("tmp", 0o1777)
    tree.folder(DATA)


def make_root(tree, component, binary, root, version, native=None):
    """Fills a Tree with an image's files. `native`: this machine's root, unless a test gives another."""
    native = native or debian.Root("/", debian.NATIVE)
    libraries = bundle.libraries_of(root, binary)
    add_base(tree, root, binary, libraries, native)
    stage(tree, component, binary, root, libraries)
    packages = [*{library.package for library in libraries}, native.package("ca-certificates")]
    sbom = Sbom(component, root, packages, version)
    tree.write(f"usr/share/sbom/{component.name}.spdx.json", sbom.to_json(tree.path))
