"""Shared code of deb.py, rpm.py and archive.py: the command line, a program's documents and unit, the end of a run.

The program prints the documents (manual, completions, configuration file) with --print-docs.
"""

import contextlib
import dataclasses
import gzip
import pathlib
import re
import subprocess

from components import COMPONENTS
from debian import ARCHITECTURES
from failure import Failure, Parser, run_main
from source_tree import SOURCE, version_of
from whole_file import whole_file

# Folders of deploy/ that users need. Their files refer to each other by relative paths.
FLEET_FOLDERS = ("compose", "grafana", "helm", "kubernetes", "lima")


@dataclasses.dataclass(frozen=True)
class Build:
    """The programs to pack."""

    folder: pathlib.Path
    arch: str
    docs_folder: pathlib.Path  # a build for this machine; its programs print the documents of all architectures
    version: str  # of the package, --revision included
    epoch: int  # the time of every packed file


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where files lie inside a package."""

    share: str
    zsh_completions: str
    units: str
    is_installed: bool = True  # services run, with folders of their own


def documents(build, component, kind, *command):
    """Returns a document that the program prints. `kind` is man, bash, zsh, fish or yaml."""
    binary = build.docs_folder / "bin" / component.name
    # Some defaults come from the environment, so the builder's environment is not passed. The reducer's data folder is
    # the same as in its unit.
    environment = {"SOURCE_DATE_EPOCH": str(build.epoch), "XDG_STATE_HOME": "/var/lib"}
    try:
        result = subprocess.run([binary, "--print-docs", kind, *command], capture_output=True, text=True, check=False, env=environment)
    except OSError as error:
        raise Failure(f"{binary} cannot be run here ({error.strerror}); "
                      "give a build of this machine's architecture with --docs-build") from error
    if result.returncode != 0 or not result.stdout:
        raise Failure(f"{binary} --print-docs {kind} failed; build {component.name} of this source tree first")
    return result.stdout


def compressed(text):
    """Returns the text as gzip, without a name and a time in the header."""
    return gzip.compress(text.encode(), 9, mtime=0)


def add_manual(tree, build, component, layout):
    """Adds the program's page and one for each of its commands, which the program's page refers to."""
    section = component.man_section
    folder = f"{layout.share}/man/man{section}"
    manual = documents(build, component, "man")
    if not re.search(rf"^\.TH \S+ {section} ", manual, re.MULTILINE):
        raise Failure(f"the manual page of {component.name} is not in section {section}; "
                      "make components.py and its .TH line agree")
    tree.write(f"{folder}/{component.name}.{section}.gz", compressed(manual))
    plain = re.sub(r"\\f[BIR]", "", manual).replace("\\-", "-")
    for command in sorted(set(re.findall(rf"\b{component.name}-([a-z-]+)\({section}\)", plain))):
        tree.write(f"{folder}/{component.name}-{command}.{section}.gz", compressed(documents(build, component, "man", command)))


def add_completions(tree, build, component, layout):
    tree.write(f"{layout.share}/bash-completion/completions/{component.name}", documents(build, component, "bash"))
    tree.write(f"{layout.zsh_completions}/_{component.name}", documents(build, component, "zsh"))
    tree.write(f"{layout.share}/fish/vendor_completions.d/{component.name}.fish", documents(build, component, "fish"))


def configuration(build, component, layout):
    """Returns a configuration file: every option as a comment with its default, then the package's own settings."""
    text = documents(build, component, "yaml").rstrip("\n") + "\n"
    return text + ("\n" + component.settings if component.settings and layout.is_installed else "")


def fleet_folder(layout):
    return f"{layout.share}/tributary"


def add_fleet_files(tree, layout):
    """Adds what helps to set up a fleet: the script that makes certificates, the manifests and the chart for Kubernetes, and the files
    of Compose, Grafana and Lima."""
    folder = fleet_folder(layout)
    tree.copy(f"{folder}/certs", SOURCE / "dev/certs", 0o755)
    for name in FLEET_FOLDERS:
        for path in sorted((SOURCE / "deploy" / name).rglob("*")):
            if path.suffix in (".yaml", ".yml", ".json", ".tpl", ".txt"):
                tree.copy(f"{folder}/{path.relative_to(SOURCE / 'deploy')}", path)


def add_documents(tree, build, component, layout):
    """Adds the files that users and systemd read: manual, completions, configuration file, unit. Raises Failure."""
    add_manual(tree, build, component, layout)
    add_completions(tree, build, component, layout)
    if component.has_fleet_files:
        add_fleet_files(tree, layout)
    if component.service:
        tree.write(f"etc/tributary/{component.name}.yaml", configuration(build, component, layout))
        tree.copy(f"{layout.units}/{component.unit}", SOURCE / "deploy/systemd" / component.unit)


def filled(template, values):
    """Returns the text of a template, with values for @NAME@."""
    return re.sub(r"@([A-Z]+)@", lambda found: values[found.group(1)], template)


@contextlib.contextmanager
def finished_file(path):
    """Does the same as whole_file, and prints the path at the end: the callers of these scripts read the path."""
    with whole_file(path) as partial:
        yield partial
    print(path)


def parse_arguments(description, one_component):
    parser = Parser(description=description)
    parser.add_argument("--build", type=pathlib.Path, required=True, metavar="DIR", help="build folder: build/package")
    if one_component:
        parser.add_argument("--component", required=True, metavar="NAME", help=f"one of {', '.join(COMPONENTS)}")
    parser.add_argument("--arch", choices=sorted(ARCHITECTURES), default="amd64",
                        help="architecture of the programs in --build")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR", help="folder for the finished file")
    parser.add_argument("--docs-build", type=pathlib.Path, metavar="DIR",
                        help="build folder of this machine's architecture, to print the manuals (default: --build)")
    parser.add_argument("--revision", default="", metavar="TEXT",
                        help="appended to the version, to distinguish your own packages from the project's")
    return parser.parse_args()


def build_of(options):
    """Returns the Build that the options name. Raises Failure."""
    if not re.fullmatch(r"[A-Za-z0-9.+~-]*", options.revision):
        raise Failure(f"--revision {options.revision!r} cannot be part of a version: use letters, digits and . + ~ -")
    version = version_of()
    return Build(options.build.resolve(), options.arch, (options.docs_build or options.build).resolve(), version.number + options.revision,
                 version.epoch)


def main(description, make, one_component=True):
    """Reads the command line and runs make(options, build), which leaves the finished files in options.out."""
    options = parse_arguments(description.splitlines()[0], one_component)
    run_main(lambda: make(options, build_of(options)))
