"""The four programs: their contents, how their images run, and the texts and files of their packages."""

import dataclasses

from failure import Failure

# User and group of a program that needs no privilege: "nonroot" in many base images.
UNPRIVILEGED = 65532
DATA = "/var/lib/tributary"
COLLECTOR_DATA = "/var/lib/tributary-kernel-collector"


@dataclasses.dataclass(frozen=True)
class Component:
    name: str  # of the program, its image and its configuration file
    title: str  # the image's description
    summary: str  # the first line of the package's description
    description: str
    service: bool = True
    linked_in: tuple = ()  # Debian packages whose code is in the program itself
    has_bpf: bool = False  # BPF programs, which may be used under the GPL instead
    has_page: bool = False  # the web page and its npm packages

    # In an image.
    image_user: int = UNPRIVILEGED
    environment: tuple = ()  # NAME=VALUE
    ports: tuple = ()
    has_volume: bool = False  # for DATA
    arguments: tuple = ()  # of the program, if a container's user gives none
    health: tuple = ()  # a command; if empty, the program itself with --health-check

    # Installed as a deb or an rpm.
    starts_at_install: bool = True  # on Debian; false if the service needs a configuration first
    system_user: str = ""  # a user that the package creates
    data: str = ""  # the folder of the service's data, which a purge removes
    runtime_files: str = ""  # files that a purge removes in addition to the data
    settings: str = ""  # text that the package appends to the configuration file
    has_fleet_files: bool = False  # the package has share/tributary: dev/certs and files of deploy/

    @property
    def licenses(self):
        """Returns the licences of our own code, as an SPDX expression."""
        return "Apache-2.0 AND (GPL-2.0-only OR Apache-2.0)" if self.has_bpf else "Apache-2.0"

    @property
    def health_command(self):
        return self.health or (f"/usr/bin/{self.name}", "--health-check")

    @property
    def package(self):
        return "tributary" if self.name == "tributary" else f"tributary-{self.name}"

    @property
    def unit(self):
        return f"{self.package}.service" if self.service else ""

    @property
    def man_section(self):
        return 8 if self.service else 1


COMPONENTS = {component.name: component for component in (
    Component(
        "kernel-collector",
        title="Tributary's profiler of one node",
        summary="continuous profiler: samples every process of a machine",
        description="Samples all processes of a machine with eBPF, whatever their language, and sends the stacks to a Tributary reducer."
                    " Needs Linux 5.10 or later with BTF.",
        linked_in=("llvm-19-dev",),
        has_bpf=True,
        image_user=0,
        data=COLLECTOR_DATA,
        runtime_files="/sys/fs/bpf/tributary",
        settings="# Set by the package: samples that no reducer accepts wait here, also while the service restarts.\n"
                 f"spool_dir: {COLLECTOR_DATA}\n"),
    Component(
        "reducer",
        title="Tributary's central process: stores, names and shows what collectors send",
        summary="continuous profiler: stores, names and shows stacks",
        description="Receives samples from kernel-collectors, stores them, finds the names of functions, and shows"
                    " flame graphs on a web page, through an HTTP API and as OTLP profiles.",
        linked_in=("llvm-19-dev",),
        has_page=True,
        # A loopback address could not be reached from outside the container. So the reducer starts only if its user
        # chooses who may use the page: --http-token-file, --http-proxy-from or --allow-anonymous.
        environment=(f"EBPF_NET_DATA_DIR={DATA}", "EBPF_NET_INTAKE_LISTEN=0.0.0.0:8000", "EBPF_NET_HTTP_LISTEN=0.0.0.0:4040"),
        ports=(8000, 4040),
        has_volume=True,
        system_user="tributary",
        data=DATA),
    Component(
        "k8s-collector",
        title="Tributary's watcher of one Kubernetes cluster",
        summary="continuous profiler: describes a Kubernetes cluster",
        description="Watches the API server of a Kubernetes cluster and sends Tributary reducers the metadata of its"
                    " pods, workloads and nodes. Needs /etc/tributary/kubeconfig before it can start.",
        starts_at_install=False),
    Component(
        "tributary",
        title="Tributary on the command line",
        summary="continuous profiler: command line",
        description="Asks a Tributary reducer for flame graphs and hot functions, profiles one command, sends symbols, reads recorded"
                    " sessions.",
        service=False,
        linked_in=("libcli11-dev",),
        has_fleet_files=True),
)}


def component_named(name):
    """Returns the Component with this name. Raises Failure."""
    if name not in COMPONENTS:
        raise Failure(f"there is no component {name}; the components are {', '.join(COMPONENTS)}")
    return COMPONENTS[name]
