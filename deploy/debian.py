"""A Debian root file system as a source of libraries: this machine's, or the sysroot that build-env/arm64-sysroot.sh makes."""

import dataclasses
import functools
import os
import pathlib
import platform

from failure import Failure

ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}  # Debian's name: the kernel's and rpm's
TRIPLES = {arch: f"{machine}-linux-gnu" for arch, machine in ARCHITECTURES.items()}
NATIVE = next((arch for arch, machine in ARCHITECTURES.items() if machine == platform.machine()), None)


@dataclasses.dataclass(frozen=True)
class Package:
    name: str
    version: str
    source: str  # the source package's name
    arch: str


def _merged(path):
    """Returns the path in a merged root: Debian's lists contain /lib/x for /usr/lib/x."""
    return path if path.startswith("/usr/") else "/usr" + path


class Root:
    """Libraries, packages and copyright files of one architecture. Arguments and results are paths inside the root."""

    def __init__(self, path, arch):
        self.path = pathlib.Path(path)
        self.arch = arch
        self.triple = TRIPLES[arch]

    def host_path(self, path):
        """Returns the path on this machine of a file of the root."""
        return self.path / path.lstrip("/")

    def find_library(self, name):
        """Returns the path of a library, or None."""
        path = f"/usr/lib/{self.triple}/{name}"
        return path if self.host_path(path).exists() else None

    @functools.cached_property
    def _packages(self):
        packages = {}
        for entry in self.host_path("/var/lib/dpkg/status").read_text(encoding="utf-8").split("\n\n"):
            fields = dict(line.split(": ", 1) for line in entry.splitlines() if ": " in line and line[0] != " ")
            if fields.get("Status", "").endswith(" installed") and fields["Architecture"] in (self.arch, "all"):
                name = fields["Package"]
                packages[name] = Package(name, fields["Version"], fields.get("Source", name).split(" ")[0], fields["Architecture"])
        return packages

    @functools.cached_property
    def _owners(self):
        owners = {}
        for listing in sorted(self.host_path("/var/lib/dpkg/info").glob("*.list")):
            name = listing.name.removesuffix(".list").split(":")
            if len(name) == 2 and name[1] != self.arch:
                continue
            for line in listing.read_text(encoding="utf-8").splitlines():
                if ".so" in line:
                    owners[_merged(line)] = name[0]
        return owners

    def package(self, name):
        """Returns the installed package. Raises Failure."""
        if name not in self._packages:
            raise Failure(f"the package {name} is not installed in {self.path}: run dev/deps")
        return self._packages[name]

    def owner_of(self, library):
        """Returns the package that a library came with. Raises Failure."""
        # Debian's lists contain the link and its target. Packages made by hand may have only the target.
        real = "/" + os.path.relpath(os.path.realpath(self.host_path(library)), os.path.realpath(self.path))
        for path in (library, real):
            if _merged(path) in self._owners:
                return self.package(self._owners[_merged(path)])
        raise Failure(f"{self.host_path(library)} belongs to no Debian package, so its licence is not known: "
                      "install the library from its Debian package")

    def copyright_of(self, package):
        """Returns the bytes of a package's copyright file. Raises Failure."""
        path = self.host_path(f"/usr/share/doc/{package.name}/copyright")
        try:
            return path.read_bytes()
        except OSError as error:
            raise Failure(f"the licence text {path} cannot be read: install {package.name} again") from error


def root_of(arch):
    """Returns the root that binaries of an architecture were linked with. Raises Failure."""
    if arch == NATIVE:
        return Root("/", arch)
    cache = os.environ.get("TRIBUTARY_CACHE") or os.path.expanduser("~/.cache/tributary")
    path = pathlib.Path(cache) / f"{arch}-sysroot"
    if not (path / ".recipe").exists():
        raise Failure(f"there are no {arch} libraries in {path}: run dev/deps --{arch}")
    return Root(path, arch)
