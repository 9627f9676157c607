"""Tests the opt-out by annotation.

The annotation of a namespace stops the samples of its containers: first the reducer drops them, then the node does not
send them any more. When the annotation is gone, the samples come back. captured = stored + lost holds throughout.
"""

import contextlib
import re
import shutil
import subprocess
import urllib.request
import uuid

import containers_test
import fake_kubernetes
import kubernetes_test
import lib

LOST = r'tributary_collector_lost_(samples|process_events)_total\{reason="opted_out"\} (\d+)'


class Pod:
    """A program that uses a CPU, in a cgroup like those that kubelets make. Without a container runtime."""

    def __init__(self, directory, name, namespace):
        self.name, self.namespace = name, namespace
        self.uid, self.container = str(uuid.uuid4()), uuid.uuid4().hex * 2
        self.folders = [root / "kubepods/burstable" / f"pod{self.uid}" / self.container for root in containers_test.hierarchies()
                        if root.name in ("memory", "pids", "unified", "cgroup")]
        self.program = directory / name
        shutil.copy("/bin/sh", self.program)
        self.process = None

    def start(self):
        # The shell moves itself, so that its first sample is in the container.
        moves = ""
        for folder in self.folders:
            subprocess.run([*lib.ROOT, "mkdir", "-p", folder], check=True)
            moves += f"echo $$ > {folder}/cgroup.procs; "
        self.process = subprocess.Popen([*lib.ROOT, "sh", "-c", f"{moves} exec {self.program} -c 'while :; do :; done'"])

    def end(self):
        if self.process:
            subprocess.run([*lib.ROOT, "kill", "-9", str(self.process.pid)], check=False)
            self.process.wait()
        for folder in self.folders:
            root = next(parent for parent in folder.parents if parent.name == "kubepods").parent
            with contextlib.suppress(lib.Failure):
                lib.wait_for("an empty cgroup", lambda: not folder.exists() or not (folder / "cgroup.procs").read_text(), 5)
            subprocess.run([*lib.ROOT, "rmdir", "-p", "--ignore-fail-on-non-empty", folder.relative_to(root)], check=False, cwd=root,
                           stderr=subprocess.DEVNULL)

    def put(self, api):
        api.put("Pod", self.name, self.uid, self.namespace, spec={"nodeName": "n", "containers": [{"name": "main", "image": "x:1"}]},
                status={"containerStatuses": [{"name": "main", "image": "x:1", "containerID": f"containerd://{self.container}"}]})


@contextlib.contextmanager
def pods(*of):
    try:
        for pod in of:
            pod.start()
        yield
    finally:
        for pod in of:
            pod.end()


def annotation():
    with lib.directory() as d, fake_kubernetes.FakeKubernetes() as api, lib.programs() as programs:
        secret, public = Pod(d, "secret", "shop"), Pod(d, "public", "else")
        shop = str(uuid.uuid4())

        def annotate(value):
            api.put("Namespace", "shop", shop, annotations={"tributary.io/profile": value} if value else {})

        annotate("")
        for pod in (secret, public):
            pod.put(api)
        reducer = lib.Reducer(d)
        programs.append(reducer)
        programs.append(kubernetes_test.KubernetesCollector(d, api, reducer))
        start = lib.now_ms()
        collector = lib.Collector(d, reducer.intake_port, args=["--batch-interval", "500ms", "--metrics-listen", "127.0.0.1:0"])
        programs.append(collector)
        port = lib.metrics_port(collector)

        def stored(pod):
            return containers_test.count(reducer, start, lib.now_ms() + 1000, process_executable_name=pod.name)

        def dropped():
            text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read().decode()
            return {kind: int(count) for kind, count in re.findall(LOST, text)}

        with pods(secret, public):
            for pod in (secret, public):
                lib.wait_for(f"samples of {pod.name}", lambda pod=pod: containers_test.count(
                    reducer, start, lib.now_ms() + 1000, k8s_pod_name=pod.name) > 50)
            lib.check(dropped() == {"samples": 0, "process_events": 0}, f"nobody has opted out: {dropped()}")

            annotate("False")
            # For longer than a batch interval, so that the last batch with older samples of the pod has arrived.
            lib.wait_for("the node to drop samples", lambda: dropped()["samples"] > 800)
            lib.check(reducer.metric("tributary_reducer_opted_out_samples_total") > 0, "the reducer dropped nothing before the node knew")
            before, others = stored(secret), stored(public)
            at_reducer = reducer.metric("tributary_reducer_opted_out_samples_total")
            lib.wait_for("more samples of the other pod", lambda: stored(public) > others + 200)
            lib.check(stored(secret) == before, f"{stored(secret) - before} samples of the pod were stored")
            lib.check(reducer.metric("tributary_reducer_opted_out_samples_total") == at_reducer, "the node still sends them")

            # The pod outranks the namespace. Without the annotations, everything is as before.
            api.put("Pod", "secret", secret.uid, "shop", annotations={"tributary.io/profile": "on"},
                    spec={"nodeName": "n", "containers": [{"name": "main", "image": "x:1"}]},
                    status={"containerStatuses": [{"name": "main", "image": "x:1", "containerID": f"containerd://{secret.container}"}]})
            lib.wait_for("samples of the pod", lambda: stored(secret) > before + 50)
            secret.put(api)
            count = dropped()["samples"]
            lib.wait_for("the node to drop samples again", lambda: dropped()["samples"] > count + 50)
            annotate("")
            before = stored(secret)
            lib.wait_for("samples of the pod", lambda: stored(secret) > before + 50)
        lib.check(collector.stop() == 0, "the collector's exit code")
        status = reducer.status()
        lib.check_law(status)
        opted_out = status["total"]["lost"]["opted_out"]
        of_node = lib.last_totals(collector.text())["lost_opted_out"]
        lib.check(opted_out == of_node + reducer.metric("tributary_reducer_opted_out_samples_total"), f"{opted_out} opted out, {of_node} on the node")
        shown = subprocess.run([lib.BIN / "tributary", "status", "--server", reducer.url], check=True, capture_output=True, text=True).stdout
        lib.check(re.search(r" 0; opted out: [\d,]+", shown), f"the status does not show opt-outs apart from losses:\n{shown}")
        print(f"  {opted_out} samples opted out, {of_node} of them on the node")


if __name__ == "__main__":
    lib.main(annotation)
