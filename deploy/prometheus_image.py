#!/usr/bin/env python3
"""Makes an image of Debian's Prometheus, as a file that `docker load` reads. Docker itself is not needed.

    deploy/prometheus_image.py --arch amd64 --tag tributary/prometheus:0.1.0 --out prometheus.tar

The image contains prometheus, promtool, their libraries, the web page, and the files of deploy/grafana in /etc/prometheus: the
example of a configuration and the alert rules. The same commit and Debian packages give the same bytes. This machine's architecture needs
the package prometheus, which dev/deps installs. The package of another architecture is fetched with apt, and its C library
comes from dev/deps --arm64."""

import argparse
import os
import pathlib

import bundle
import debian
from commands import run
from components import DATA, Component
from failure import Failure, Parser, run_main
from image import make_image
from image_root import add_base
from sbom import Sbom
from source_tree import SOURCE, version_of

PROMETHEUS = Component(
    "prometheus",
    title="Debian's Prometheus, with Tributary's alert rules",
    summary="Prometheus for Tributary",
    description="Prometheus of Debian, with the alert rules of Tributary.",
    ports=(9090,),
    has_volume=True,
    arguments=("--config.file=/etc/prometheus/prometheus.yml", f"--storage.tsdb.path={DATA}"),
    # Debian 12's promtool has no command for the health: a query shows that Prometheus answers.
    health=("/usr/bin/promtool", "query", "instant", "http://127.0.0.1:9090", "vector(1)"))
PROGRAMS = ("prometheus", "promtool")
CONFIGURATION = ("prometheus.yml", "tributary-rules.yml")
PAGE = "/usr/share/prometheus/web"  # the same for every architecture; links lead to files of other packages


def parse_arguments():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", required=True, choices=debian.TRIPLES, help="architecture of the image")
    parser.add_argument("--tag", required=True, nargs="+", metavar="REPO:TAG", help="names that the image gets when it is loaded")
    parser.add_argument("--out", required=True, metavar="FILE.tar", help="the file to make or to replace")
    return parser.parse_args()


def package_root(arch, work):
    """Returns the debian.Root that has the package prometheus. Raises Failure."""
    if arch == debian.NATIVE:
        return debian.Root("/", arch)
    folder = pathlib.Path(work) / "package"
    run(SOURCE / "build-env/unpack_package.sh", arch, "prometheus", folder)
    return debian.Root(folder, arch)


def page_files(native):
    """Returns name in the image → real path of the files of Prometheus's page. Without JSON: that is 220 MB of time zones that the page
    does not load. Raises Failure."""
    found = {}
    for folder, _, names in os.walk(native.host_path(PAGE), followlinks=True):
        for path in (pathlib.Path(folder) / name for name in names):
            if path.is_file() and path.suffix not in (".json", ".map"):
                found[str(path.relative_to(native.path))] = path.resolve()
    if not found:
        raise Failure(f"{native.host_path(PAGE)} has no files of Prometheus's page: install Debian's package prometheus")
    return found


def owners_of(native, paths):
    """Returns the packages of files of the native root. Raises Failure."""
    missing, names = {str(path) for path in paths}, set()
    for listing in native.host_path("/var/lib/dpkg/info").glob("*.list"):
        if owned := missing.intersection(listing.read_text(encoding="utf-8").splitlines()):
            missing -= owned
            names.add(listing.stem.split(":")[0])
    if missing:
        raise Failure(f"{min(missing)} belongs to no Debian package, so its licence is not known: install prometheus again")
    return [native.package(name) for name in names]


def fill(tree, package, libraries_root, version):
    """Fills the image's root. `package` is the root with Prometheus, `libraries_root` the one with its libraries."""
    programs = {name: package.host_path(f"/usr/bin/{name}") for name in PROGRAMS}
    debs = {found.package.name: found.package for path in programs.values() for found in bundle.libraries_of(libraries_root, path)}
    if foreign := sorted(set(debs) - {bundle.C_LIBRARY}):
        raise Failure(f"prometheus needs libraries of {', '.join(foreign)}, which its image does not have: install Debian 12's prometheus")
    native = debian.Root("/", debian.NATIVE)
    add_base(tree, libraries_root, programs["prometheus"], bundle.libraries_of(libraries_root, programs["prometheus"]), native)
    for name, path in programs.items():
        tree.copy(f"usr/bin/{name}", path, 0o755)
    for name in CONFIGURATION:
        tree.copy(f"etc/prometheus/{name}", SOURCE / "deploy/grafana" / name)
    page = page_files(native)
    for name, path in page.items():
        tree.copy(name, path)
    own = package.package("prometheus")
    common = {each.name: each for each in (native.package("ca-certificates"), *owners_of(native, page.values())) if each.name != own.name}
    for root, each in ((package, own), *((libraries_root, deb) for deb in debs.values()), *((native, deb) for deb in common.values())):
        tree.write(f"usr/share/doc/tributary/copyright/{each.name}", root.copyright_of(each))
    debs.update(common)
    sbom = Sbom(PROMETHEUS, libraries_root, debs.values(), version, program=own)
    tree.write("usr/share/sbom/prometheus.spdx.json", sbom.to_json(tree.path))


def main():
    arguments = parse_arguments()
    version = version_of()

    def fill_root(tree, work):
        fill(tree, package_root(arguments.arch, work), debian.root_of(arguments.arch), version)

    make_image(arguments, PROMETHEUS, version, fill_root)


if __name__ == "__main__":
    run_main(main)
