#!/usr/bin/env python3
"""/root/build.sh of the build image: builds Tributary from a source tree that may be read-only, without a network.

    build.sh [OPTIONS] TARGET…

Every failure ends in one sentence that says what to do. What is finished has its final name; what is not has none.
"""

import argparse
import contextlib
import difflib
import errno
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

COMPONENTS = ("kernel-collector", "reducer", "k8s-collector", "tributary")
# What build-env/install.sh put into the image.
INSTALLED = pathlib.Path("/usr/local/lib/tributary")
TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
REGISTRY = re.compile(r"[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._/-]+)?|\[[0-9a-f:]+\](:[0-9]+)?(/[a-z0-9._/-]+)?")
FULL_BELOW_BYTES = 16 << 20

TARGETS = {
    "docker": "the images of all components, in the Docker daemon",
    "docker-registry": "the same, pushed to EBPF_NET_DOCKER_REGISTRY",
    **{name: f"{name} and its libraries, in the folder {name} of the output" for name in COMPONENTS},
    **{f"{name}-docker": f"the image of {name}, in the Docker daemon" for name in COMPONENTS},
    **{f"{name}-docker-registry": f"the image of {name}, pushed" for name in COMPONENTS},
    "packages": "deb, rpm, archives, images, source and checksums of the last commit, in the folder release of the output",
}

VARIABLES = """\
variables (an empty one counts as unset):
  EBPF_NET_SRC              the source tree; else EBPF_NET_SRC_ROOT, else ~/src
  EBPF_NET_OUT_DIR          the output folder (~/out)
  EBPF_NET_DOCKER_REGISTRY  HOST[:PORT][/PATH] that docker-registry pushes to (localhost:5000)
  IMAGE_TAGS                tags of the images, separated by spaces or commas (latest)
  DOCKER_HOST               the daemon's socket (unix:///var/run/docker.sock)
"""


class Refused(Exception):
    """One sentence for the user."""

    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


def nearest(word, known):
    return difflib.get_close_matches(word, known, n=1, cutoff=0.0)[0]


def setting(*names, default):
    """The first of the variables that is set and not empty."""
    return next((os.environ[name] for name in names if os.environ.get(name)), default)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Refused(f"{message}; --help lists the options and targets", 2)


def parse(arguments):
    targets = "\n".join(f"  {name:34} {description}" for name, description in TARGETS.items())
    parser = Parser(prog="build.sh", formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
                    usage="build.sh [OPTIONS] TARGET…", description="Builds Tributary from a source tree, without a network.",
                    epilog=f"targets:\n{targets}\n\n{VARIABLES}\nexample: build.sh -j 4 kernel-collector")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=argparse.SUPPRESS)
    parser.add_argument("--clean", action="store_true", help="remove the build folder of an earlier run first")
    parser.add_argument("-j", "--jobs", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="compile N files at a time (all CPUs)")
    parser.add_argument("--arch", choices=("amd64", "arm64"), default="amd64", help="build for this architecture (amd64)")
    parser.add_argument("--debug", action="store_true", help="without optimisation, with assertions")
    parser.add_argument("--asan", action="store_true", help="with the address sanitizer")
    parser.add_argument("--ubsan", action="store_true", help="with the undefined-behaviour sanitizer")
    parser.add_argument("--no-docker", action="store_true", help="make image files (images/*.tar of the output) and talk to no Docker daemon")
    parser.add_argument("--list-targets", action="store_true", help="print the targets, one a line, and end")
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        word = unknown[0].split("=")[0]
        known = [name for action in parser._actions for name in action.option_strings]
        raise Refused(f"unknown option {word}; the nearest is {nearest(word, known)}, and --help lists all", 2)
    for target in options.targets:
        if target not in TARGETS:
            raise Refused(f"unknown target {target}; the nearest is {nearest(target, TARGETS)}, and --list-targets prints all", 2)
    if options.jobs < 1:
        raise Refused("-j takes a number of 1 or more", 2)
    if not options.targets and not options.list_targets:
        raise Refused("no target was given; the one for all images is docker, and --help lists the others", 2)
    return options


def source_tree():
    source = pathlib.Path(setting("EBPF_NET_SRC", "EBPF_NET_SRC_ROOT", default=pathlib.Path.home() / "src"))
    try:
        text = (source / "CMakeLists.txt").read_text()
    except OSError:
        text = ""
    if "project(tributary" not in text:
        raise Refused(f"{source} holds no source tree of Tributary; mount one there "
                      f'(--mount "type=bind,source=$(git rev-parse --show-toplevel),destination={source},readonly") or set EBPF_NET_SRC')
    return source


def output_folder():
    """Where everything goes. Fails now if nothing can be written there, not after minutes of compiling."""
    out = pathlib.Path(setting("EBPF_NET_OUT_DIR", default=pathlib.Path.home() / "out"))
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out) as probe:
            probe.write(b"x" * 4096)
    except OSError as e:
        if e.errno == errno.ENOSPC:
            raise full(out) from e
        raise Refused(f"cannot write to {out} ({e.strerror}); mount a writable folder or volume there, or set EBPF_NET_OUT_DIR") from e
    return out


def full(folder):
    return Refused(f"the disk of {folder} is full; free about 3 GB there, or set EBPF_NET_OUT_DIR to a folder with more room")


def image_tags(arch):
    tags = [tag for tag in re.split(r"[\s,]+", setting("IMAGE_TAGS", default="latest")) if tag]
    for tag in tags or [""]:
        if not TAG.fullmatch(tag):
            raise Refused(f"IMAGE_TAGS has {tag!r}, which Docker does not take as a tag; use letters, digits, '.', '_' and '-'", 2)
    return [tag if arch == "amd64" else f"{tag}-{arch}" for tag in tags]


def registry():
    name = setting("EBPF_NET_DOCKER_REGISTRY", default="localhost:5000").rstrip("/")
    if not REGISTRY.fullmatch(name):
        raise Refused(f"EBPF_NET_DOCKER_REGISTRY is {name}; write HOST[:PORT][/PATH], without http://", 2)
    return name


class Build:
    """One run: the source, the output and what was asked for."""

    def __init__(self, options):
        self.options = options
        self.tags = image_tags(options.arch)
        self.registry = registry()
        self.source = source_tree()
        self.out = output_folder()
        self.pushes = any(target.endswith("docker-registry") for target in options.targets)
        self.daemon = None
        if self.pushes and options.no_docker:
            raise Refused("a registry is reached through the Docker daemon; leave out --no-docker, or choose the target docker", 2)
        if not options.no_docker and any(self.of_images(target) for target in options.targets):
            sys.path.insert(0, str(self.source / "deploy"))
            self.docker = __import__("docker_daemon")
            try:
                self.daemon = self.docker.Daemon()
                self.daemon.ping()
            except self.docker.DaemonError as e:
                raise Refused(str(e)) from e
        preset = "package" if options.arch == "amd64" else "package-arm64"
        modes = [mode for mode in ("debug", "asan", "ubsan") if getattr(options, mode)]
        self.preset, self.folder = preset, self.out / "build" / "-".join([preset, *modes])

    @staticmethod
    def of_images(target):
        return re.search(r"(^|-)docker(-registry)?$", target)

    def environment(self):
        """For every program that is started. Python writes nothing into the source tree."""
        own = {"PYTHONDONTWRITEBYTECODE": "1"}
        if INSTALLED.exists():
            own |= {"TRIBUTARY_CACHE": str(INSTALLED), "TRIBUTARY_NODE_MODULES": str(INSTALLED / "ui/node_modules"), "TRIBUTARY_DEPS": "none"}
        return {**os.environ, **own}

    def run(self, step, *command):
        result = subprocess.run([str(word) for word in command], cwd=self.source, env=self.environment(), stdin=subprocess.DEVNULL, check=False)
        if result.returncode == 0:
            return
        disk = os.statvfs(self.out)
        if disk.f_bavail * disk.f_frsize < FULL_BELOW_BYTES:
            raise full(self.out)
        raise Refused(f"{step} failed; its messages are above")

    def compile(self, components):
        options = self.options
        if options.clean:
            shutil.rmtree(self.folder, ignore_errors=True)
        configure = ["cmake", "--preset", self.preset, "-B", self.folder]
        if options.debug:
            configure += ["-DCMAKE_BUILD_TYPE=Debug"]
        kinds = [kind for kind, wanted in (("address", options.asan), ("undefined", options.ubsan)) if wanted]
        if kinds:
            configure.append(f"-DTRIBUTARY_SANITIZE={','.join(kinds)}")
        self.run("configuring", *configure)
        self.run(f"compiling {', '.join(components)}", "ninja", "-C", self.folder, "-j", options.jobs, *components)

    def deploy(self, script, component, *more):
        self.run(f"deploy/{script} for {component}", sys.executable, self.source / "deploy" / script, "--build", self.folder, "--component",
                 component, "--arch", self.options.arch, *more)

    def stage(self, component):
        """The folder of a component: whole under its name, or not there."""
        name = component if self.options.arch == "amd64" else f"{component}-{self.options.arch}"
        final, partial, old = self.out / name, self.out / f"{name}.partial", self.out / f"{name}.old"
        for leftover in (partial, old):
            shutil.rmtree(leftover, ignore_errors=True)
        try:
            self.deploy("stage.py", component, "--out", partial)
            with contextlib.suppress(FileNotFoundError):
                final.rename(old)
            partial.rename(final)
        finally:
            for leftover in (partial, old):
                shutil.rmtree(leftover, ignore_errors=True)
        print(f"{component}: {final}/usr/bin/{component}", flush=True)

    def image(self, component, push):
        archive = self.out / "images" / f"{component}-{self.options.arch}.tar"
        archive.parent.mkdir(exist_ok=True)
        names = [f"{component}:{tag}" for tag in self.tags]
        self.deploy("image.py", component, "--tag", *names, "--out", archive)
        if self.daemon is None:
            print(f"{component}: {archive}", flush=True)
            return
        try:
            self.daemon.load(archive)
            print(f"{component}: in the Docker daemon as {', '.join(names)}", flush=True)
            for name in names if push else ():
                remote = f"{self.registry}/{name}"
                self.daemon.tag(name, remote)
                digest = self.daemon.push(remote, self.docker.login_for(self.registry.split("/")[0]))
                print(f"{component}: pushed as {remote} {digest}", flush=True)
        except self.docker.DaemonError as e:
            raise Refused(str(e)) from e

    def run_all(self):
        targets = self.options.targets
        staged = [name for name in COMPONENTS if name in targets]
        pushed = [name for name in COMPONENTS if {"docker-registry", f"{name}-docker-registry"} & set(targets)]
        imaged = [name for name in COMPONENTS if name in pushed or {"docker", f"{name}-docker"} & set(targets)]
        components = [name for name in COMPONENTS if name in staged or name in imaged]
        if components:
            self.compile(components)
        for component in staged:
            self.stage(component)
        for component in imaged:
            self.image(component, component in pushed)
        if "packages" in targets:
            self.run("dev/release", self.source / "dev/release", "--arch", self.options.arch, "--jobs", self.options.jobs,
                     "--out", self.out / "release")


def main(arguments):
    # As process 1 of a container, a program without a handler cannot be stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        options = parse(arguments)
        if options.list_targets:
            print("\n".join(TARGETS))
            return 0
        Build(options).run_all()
    except Refused as e:
        print(f"build.sh: {e}", file=sys.stderr)
        return e.status
    except OSError as e:
        reason = "its disk is full; free about 3 GB" if e.errno == errno.ENOSPC else f"{e.strerror}; see that it can be written to"
        print(f"build.sh: cannot write {e.filename or 'the output'}: {reason}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
