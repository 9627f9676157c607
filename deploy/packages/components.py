"""The four programs, as packages describe them."""

import dataclasses

from failure import Failure

MAINTAINER = "Tributary developers <tributary@packages.invalid>"


@dataclasses.dataclass(frozen=True)
class Component:
    name: str  # of the binary, and of its configuration file
    summary: str
    description: str
    man_section: int
    service: bool = True
    starts_at_install: bool = True  # on Debian; false where it cannot start before it is configured
    user: str = ""  # a system user that the package creates
    data: str = ""  # the folder that purge removes
    settings: str = ""  # what the package adds to the configuration file
    runtime_files: str = ""  # what a purge removes beside the data

    @property
    def package(self):
        return "tributary" if self.name == "tributary" else f"tributary-{self.name}"

    @property
    def unit(self):
        return f"{self.package}.service" if self.service else ""


COMPONENTS = {component.name: component for component in (
    Component(
        "kernel-collector", "continuous profiler: samples every process of a machine",
        "Samples all processes of a machine with eBPF, whatever their language, and sends the stacks to a Tributary reducer."
        " Needs Linux 5.10 or later with BTF.",
        8, data="/var/lib/tributary-kernel-collector", runtime_files="/sys/fs/bpf/tributary",
        settings="# Set by the package: samples that no reducer takes wait here, also over a restart of the service.\n"
                 "spool_dir: /var/lib/tributary-kernel-collector\n"),
    Component(
        "reducer", "continuous profiler: stores, names and shows stacks",
        "Receives what kernel-collectors sample, stores it, finds the names of functions, and shows flame graphs on a web page,"
        " through an HTTP API and as OTLP profiles.",
        8, user="tributary", data="/var/lib/tributary"),
    Component(
        "k8s-collector", "continuous profiler: describes a Kubernetes cluster",
        "Watches the API server of a Kubernetes cluster and tells Tributary reducers which pods, workloads and nodes there are."
        " Needs /etc/tributary/kubeconfig before it can start.",
        8, starts_at_install=False),
    Component(
        "tributary", "continuous profiler: command line",
        "Asks a Tributary reducer for flame graphs and hot functions, profiles one command, sends symbols, reads recorded sessions.",
        1, service=False),
)}
ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}  # as Debian says it: as rpm says it


def component_named(name):
    if name not in COMPONENTS:
        raise Failure(f"there is no component {name}; the components are {', '.join(COMPONENTS)}")
    return COMPONENTS[name]
