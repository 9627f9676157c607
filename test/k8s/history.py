"""The history of a cluster's containers, as its API showed them, with samples taken at chosen times."""

import time
import urllib.parse

import expected
from expected_resource import Resources
from node import cgroup_of

MS = 10**6


def time_of(ms):
    """Returns a time in the middle of the ms: times on the wire are in steps of 0.1 ms."""
    return ms * MS + MS // 2


class Process:
    """The sampled process of a container. Every fifth process has its own attributes, some of which are false."""

    def __init__(self, pid, pod, container_id, status):
        self.pid, self.container_id, self.node = pid, container_id, pod["spec"]["nodeName"]
        self.pod_uid = pod["metadata"]["uid"]
        self.executable = f"/usr/bin/{status['name']}"
        self.cgroup = cgroup_of(self.node, pod, container_id)
        self.attributes = {}  # of the process's last sample
        self.own = {"service.name": f"said-{pid}", "k8s.pod.name": "liar", "team.own": "a,b = ü"} if pid % 5 == 0 else {}

    def own_text(self):
        return ",".join(f"{k}={urllib.parse.quote(v)}" for k, v in self.own.items())


class Sample:
    def __init__(self, process, attributes, is_late):
        self.process, self.attributes = process, attributes
        self.is_late = is_late  # all attributes are known only after exporters have stopped waiting
        self.times_seen = 0


class History:
    def __init__(self):
        self.processes = {}  # by container id
        self.samples = {}    # by (pid, ms)
        self.pods = {}       # by uid, in their last state
        self._unsent = []
        self._last_ms = 0

    def take(self, objects, except_pods=lambda pod: False, is_late=False):
        """Takes a sample of every running container. `objects` is the cluster's state."""
        resources = Resources(objects)
        ms = self._now_ms()
        for pod in objects["pods"]:
            if except_pods(pod):
                continue
            self.pods[pod["metadata"]["uid"]] = pod
            for container_id, status in expected.containers(pod):
                process = self._process(pod, container_id, status)
                attributes = resources.of(pod, container_id, process.own)
                if attributes != process.attributes:  # otherwise share one object: there are tens of thousands of samples
                    process.attributes = attributes
                self.samples[process.pid, ms] = Sample(process, process.attributes, is_late)
                self._unsent.append((process, ms))

    def take_uncertain(self, pod):
        """Takes a sample of a container of that pod, without expected attributes.

        Returns the container's id and the time of the sample in ms.
        """
        container_id, status = next(expected.containers(pod))
        process = self._process(pod, container_id, status)
        ms = self._now_ms()
        self.samples[process.pid, ms] = Sample(process, None, is_late=False)
        self._unsent.append((process, ms))
        return container_id, ms

    def _process(self, pod, container_id, status):
        if container_id not in self.processes:
            self.processes[container_id] = Process(1000 + len(self.processes), pod, container_id, status)
        return self.processes[container_id]

    def _now_ms(self):
        self._last_ms = max(time.time_ns() // MS, self._last_ms + 2)
        return self._last_ms

    def send(self, nodes):
        """Sends all unsent samples and returns when the reducer has stored them. `nodes`: by name."""
        for process, ms in self._unsent:
            nodes[process.node].sample(process.pid, process.executable, process.cgroup, process.own_text(), [time_of(ms)])
        self._unsent.clear()
        for node in nodes.values():
            node.begin_send()
        durable = sum(node.await_durable() for node in nodes.values())
        assert durable == len(self.samples), f"{durable} of {len(self.samples)} samples are durable"

    def compare(self, exported, with_late=True):
        """Compares exported samples with the expected ones.

        Returns lines of differences, and the numbers of compared samples and attributes. `exported`: (pid, unix ns,
        attributes) of each sample.
        """
        wrong, compared, attributes = [], 0, 0
        for sample in self.samples.values():
            sample.times_seen = 0
        for pid, time_ns, got in exported:
            sample = self.samples.get((pid, time_ns // MS))
            if sample is None:
                wrong.append(f"pid {pid} at {time_ns}: no such sample")
                continue
            sample.times_seen += 1
            if sample.attributes is None or (sample.is_late and not with_late):
                continue
            compared += 1
            attributes += len(sample.attributes)
            if got != sample.attributes:
                wrong += differences(f"pid {pid} at {time_ns} in {sample.process.cgroup}", sample.attributes, got)
        wrong += [f"{key}: came {s.times_seen} times" for key, s in self.samples.items() if s.times_seen != 1]
        return wrong, compared, attributes


def differences(label, want, got):
    return [f"{label} {key}: expected {want.get(key)!r}, is {got.get(key)!r}" for key in sorted(want.keys() | got.keys())
            if want.get(key) != got.get(key)]
