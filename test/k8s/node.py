"""Made-up nodes: they send samples of a cluster's containers, without kubelets, at times that a test chooses."""

import json
import os
import pathlib
import subprocess

# How a node's kubelet and runtime name cgroups: the runtime's name as in a pod's status, and the form of a container's
# path.
PREFIX = {"containerd": "cri-containerd", "cri-o": "crio", "docker": "docker"}
FORMS = [("containerd", "systemd"), ("containerd", "cgroupfs"), ("cri-o", "systemd"), ("cri-o", "cgroupfs"), ("docker", "systemd"),
         ("containerd", "nested")]
CLASSES = ["burstable", "besteffort", ""]  # the last is guaranteed, which has no separate folder


def form_of(node):
    return FORMS[int(node.rsplit("-", 1)[1]) % len(FORMS)]


def runtime_of(node):
    return form_of(node)[0]


def cgroup_of(node, pod, container_id):
    runtime, driver = form_of(node)
    uid = pod["metadata"].get("annotations", {}).get("kubernetes.io/config.hash") or pod["metadata"]["uid"]
    quality = CLASSES[sum(uid.encode()) % len(CLASSES)]
    if driver == "cgroupfs":
        name = container_id if runtime == "containerd" else f"{PREFIX[runtime]}-{container_id}"
        return "/kubepods" + (f"/{quality}" if quality else "") + f"/pod{uid}/{name}"
    part = f"kubepods-{quality}" if quality else "kubepods"
    pod_slice = f"{part}-pod{uid.replace('-', '_')}.slice"
    if driver == "nested":
        return f"/system.slice/containerd.service/{pod_slice}:cri-containerd:{container_id}"
    return "/kubepods.slice/" + (f"{part}.slice/" if quality else "") + f"{pod_slice}/{PREFIX[runtime]}-{container_id}.scope"


class Node:
    """A process of made_up_node (made_up_node.cc)."""

    def __init__(self, name, intake_port, log):
        program = pathlib.Path(os.environ["TRIBUTARY_BUILD"]) / "tests" / "made_up_node"
        self.process = subprocess.Popen([program, "--node-id", name, "--intake-port", str(intake_port)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=log, text=True)

    def sample(self, pid, executable, cgroup, own, times, **more):
        self._write_line({"pid": pid, "executable": executable, "cgroup": cgroup, "attributes": own, "times": times, **more})

    def begin_send(self):
        self._write_line({"send": True})
        self.process.stdin.flush()

    def await_durable(self):
        """Returns how many samples are durable since the start."""
        return json.loads(self.process.stdout.readline() or '{"durable": -1}')["durable"]

    def stop(self):
        self.process.stdin.close()
        code = self.process.wait(30)
        self.process.stdout.close()
        return code

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def _write_line(self, line):
        self.process.stdin.write(json.dumps(line) + "\n")
