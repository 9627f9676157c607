"""What is shipped, and how each program runs in a container."""

import dataclasses

# User and group of what needs no privilege: "nonroot" in many base images.
UNPRIVILEGED = 65532
DATA = "/var/lib/tributary"


@dataclasses.dataclass(frozen=True)
class Component:
    name: str
    title: str
    user: int = UNPRIVILEGED
    environment: tuple = ()  # NAME=VALUE
    ports: tuple = ()
    data: bool = False  # has a volume of its own
    is_daemon: bool = True
    linked_in: tuple = ()  # Debian packages whose code is in the binary itself
    licenses: str = "Apache-2.0"  # of our own code, as an SPDX expression
    has_bpf: bool = False  # BPF programs, which may be used under the GPL instead
    page: bool = False  # has the web page


# An address of the loopback interface would be out of reach from outside of the container: who may connect is what the published
# ports and the network say.
COMPONENTS = {component.name: component for component in (
    Component("kernel-collector", "Tributary's profiler of one node", user=0,
              licenses="Apache-2.0 AND (GPL-2.0-only OR Apache-2.0)", has_bpf=True),
    Component("reducer", "Tributary's central process: stores, names and shows what collectors send",
              environment=(f"EBPF_NET_DATA_DIR={DATA}", "EBPF_NET_INTAKE_LISTEN=0.0.0.0:8000", "EBPF_NET_HTTP_LISTEN=0.0.0.0:4040"),
              ports=(8000, 4040), data=True, linked_in=("llvm-19-dev",), page=True),
    Component("k8s-collector", "Tributary's watcher of one Kubernetes cluster"),
    Component("tributary", "Tributary on the command line", is_daemon=False, linked_in=("libcli11-dev",)),
)}
