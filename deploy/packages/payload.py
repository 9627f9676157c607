"""The files of one component, as they lie below / once a package is installed.

What deploy/stage.py lays out (program, libraries, licenses), the documents that the program prints of itself (manual,
completions, configuration file), and its systemd unit.
"""

import dataclasses
import pathlib
import re
import shutil
import subprocess

import tools
from commands import run_script
from components import COMPONENTS
from debian import ARCHITECTURES
from failure import Failure, Parser
from source_tree import SOURCE, version_of

STAGE = SOURCE / "deploy/stage.py"
UNITS = SOURCE / "deploy/systemd"


@dataclasses.dataclass(frozen=True)
class Source:
    """Where the programs were built, and which of them can be run here."""

    build: pathlib.Path
    arch: str
    docs_build: pathlib.Path  # of this machine's architecture: documents are the same for all
    epoch: int


@dataclasses.dataclass(frozen=True)
class Layout:
    """What differs between distributions."""

    unit_folder: str
    zsh_folder: str
    libraries: str  # for stage.py: "system" or "bundled"
    is_installed: bool = True  # runs as a service, with folders of its own


def documents(source, component, kind, *command):
    """What the program prints of itself: man, bash, zsh, fish or yaml."""
    binary = source.docs_build / "bin" / component.name
    # Nothing of the builder's environment, where defaults come from, too: the reducer's folder for data is the unit's.
    environment = {"SOURCE_DATE_EPOCH": str(source.epoch), "XDG_STATE_HOME": "/var/lib"}
    try:
        result = subprocess.run([binary, "--print-docs", kind, *command], capture_output=True, text=True, check=False, env=environment)
    except OSError as e:
        raise Failure(f"{binary} cannot be run here ({e.strerror}); "
                            "give a build of this machine's architecture with --docs-build") from e
    if result.returncode != 0 or not result.stdout:
        raise Failure(f"{binary} --print-docs {kind} failed; build {component.name} of this source tree first")
    return result.stdout


def stage(source, component, libraries, out):
    if not (source.build / "bin" / component.name).exists():
        raise Failure(f"{source.build}/bin has no {component.name}; build it there first, or name the build folder with --build")
    run_script(STAGE, "--build", source.build, "--component", component.name, "--arch", source.arch, "--out", out,
                     "--libraries", libraries)


def add_manual(source, component, root):
    """The program's page and one for each of its commands, which the program's page refers to."""
    folder, section = root / f"usr/share/man/man{component.man_section}", component.man_section
    manual = documents(source, component, "man")
    if not re.search(rf"^\.TH \S+ {section} ", manual, re.MULTILINE):
        raise Failure(f"the manual page of {component.name} is not of section {section}; make components.py and its .TH line agree")
    tools.write_gzip(folder / f"{component.name}.{section}.gz", manual)
    plain = re.sub(r"\\f[BIR]", "", manual).replace("\\-", "-")
    for command in sorted(set(re.findall(rf"\b{component.name}-([a-z-]+)\({section}\)", plain))):
        tools.write_gzip(folder / f"{component.name}-{command}.{section}.gz", documents(source, component, "man", command))


def add_completions(source, component, layout, root):
    tools.write(root / f"usr/share/bash-completion/completions/{component.name}", documents(source, component, "bash"))
    tools.write(root / layout.zsh_folder / f"_{component.name}", documents(source, component, "zsh"))
    tools.write(root / f"usr/share/fish/vendor_completions.d/{component.name}.fish", documents(source, component, "fish"))


def configuration(source, component, layout):
    """Every option as a comment with its default, then what the package sets."""
    text = documents(source, component, "yaml").rstrip("\n") + "\n"
    return text + ("\n" + component.settings if component.settings and layout.is_installed else "")


def make(source, component, layout, root):
    """Fills the empty folder `root`; times and modes are the caller's to settle."""
    stage(source, component, layout.libraries, root)
    add_manual(source, component, root)
    add_completions(source, component, layout, root)
    if component.service:
        tools.write(root / f"etc/tributary/{component.name}.yaml", configuration(source, component, layout))
        (root / layout.unit_folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(UNITS / component.unit, root / layout.unit_folder / component.unit)


def arguments(description, component_required=True):
    """The command line of deb.py, rpm.py and archive.py."""
    parser = Parser(description=description)
    parser.add_argument("--build", type=pathlib.Path, required=True, metavar="DIR", help="build folder: build/package")
    if component_required:
        parser.add_argument("--component", required=True, metavar="NAME", help=f"one of {', '.join(COMPONENTS)}")
    parser.add_argument("--arch", choices=sorted(ARCHITECTURES), default="amd64", help="of the programs in --build")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR", help="folder for the finished file")
    parser.add_argument("--docs-build", type=pathlib.Path, metavar="DIR",
                        help="build folder of this machine's architecture, which prints manuals (default: --build)")
    parser.add_argument("--revision", default="", metavar="TEXT",
                        help="appended to the version, to tell packages of your own from the project's")
    return parser


def source_of(options):
    return Source(options.build.resolve(), options.arch, (options.docs_build or options.build).resolve(), version_of().epoch)
