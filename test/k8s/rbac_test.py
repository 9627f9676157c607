"""Tests that k8s-collector and the gateway need each permission of their ClusterRole, and no other.

A real kube-apiserver has the ServiceAccounts, ClusterRoles and ClusterRoleBindings of the manifests. For each verb of each
resource there is one more ServiceAccount, whose role lacks only this verb. Each program must report exactly the missing
permission.
"""

import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import manifest_rules
import manifests
from accounts import Accounts
from cluster import Cluster, free_port, wait_for
from collectors import PrintingCollector
from debian_yaml import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "otlp"))
import otelcol  # noqa: E402

OURS = re.compile(r"grant the verb (?P<verb>\w+) on the resource (?P<resource>\w+) of (?:the API group (?P<group>\w+)|the core API group)")
THEIRS = re.compile(r'cannot (?P<verb>\w+) resource \\?"(?P<resource>\w+)\\?" in API group \\?"(?P<group>\w*)\\?"')


def missing(pattern, log):
    """Returns the permissions that a log names, as (API group, resource, verb)."""
    return {(found["group"] or "", found["resource"], found["verb"]) for found in pattern.finditer(log)}


class Gateway:
    """The Collector of the gateway with the configuration of the manifests, except for its ports, its exporter and the way
    to the API server."""

    def __init__(self, binary, documents, kubeconfig):
        text = next(d for d in documents if d["kind"] == "ConfigMap")["data"]["collector.yaml"]
        config = yaml.safe_load(text)
        protocols = config["receivers"]["otlp"]["protocols"]
        for protocol in protocols.values():
            protocol["endpoint"] = f"127.0.0.1:{free_port()}"
        self.http = protocols["http"]["endpoint"]
        config["processors"]["k8s_attributes"]["auth_type"] = "kubeConfig"
        self.exported = kubeconfig.with_suffix(".jsonl")
        config["exporters"] = {"file": {"path": str(self.exported), "flush_interval": "100ms"}}
        config["service"]["pipelines"]["profiles"]["exporters"] = ["file"]
        config["service"]["telemetry"] = {"metrics": {"level": "none"}}
        path = kubeconfig.with_suffix(".collector.yaml")
        path.write_text(yaml.safe_dump(config))
        self.log_path = kubeconfig.with_suffix(".log")
        with open(self.log_path, "wb") as log:
            command = [binary, f"--config={path}", "--feature-gates=service.profilesSupport"]
            self.process = subprocess.Popen(command, env={"KUBECONFIG": str(kubeconfig)}, stdout=log, stderr=log)

    def log(self):
        return self.log_path.read_text()

    def resource_of(self, container_id):
        """Sends a profile of a container as a node without a reducer does. Returns the attributes that it is exported with."""
        attributes = [{"key": "container.id", "value": {"stringValue": container_id}}]
        profile = {"resourceProfiles": [{"resource": {"attributes": attributes}, "scopeProfiles": [{"profiles": [{"samples": [{}]}]}]}],
                   "dictionary": {"stringTable": [""]}}
        request = urllib.request.Request(f"http://{self.http}/v1development/profiles", json.dumps(profile).encode(),
                                         {"Content-Type": "application/json"})
        before = len(self.lines())
        urllib.request.urlopen(request, timeout=30).close()
        wait_for(lambda: len(self.lines()) > before, 30, "the exported profile")
        request = json.loads(self.lines()[-1])
        return otelcol.attributes(request["resourceProfiles"][0]["resource"]["attributes"], request["dictionary"]["stringTable"])

    def lines(self):
        return self.exported.read_bytes().split(b"\n")[:-1] if self.exported.exists() else []

    def kill(self):
        self.process.kill()
        self.process.wait()


class RbacTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="tributary-k8s-")))
        cls.cluster = cls.enterClassContext(Cluster(cls.directory))
        cls.documents = manifests.rendered()["gateway"]
        wait_for(lambda: cls.cluster.request("GET", "/api/v1/namespaces/kube-system")[0] == 200, 30, "kube-system")

    def start(self, program):
        self.addCleanup(program.kill)
        return program

    def assert_reports(self, pattern, lacking):
        """`lacking`: {permission: program}."""
        for permission, program in lacking.items():
            wait_for(lambda p=program: missing(pattern, p.log()), 120, f"a message about {permission}")
        for permission, program in lacking.items():
            self.assertEqual(missing(pattern, program.log()), {permission})

    def add_pod(self, name):
        """Makes a running pod. Returns the id of its container."""
        path, container_id = "/api/v1/namespaces/default/pods", "c1" * 32
        wait_for(lambda: self.cluster.request("GET", "/api/v1/namespaces/default")[0] == 200, 30, "the namespace default")
        self.cluster.call("POST", path, {"metadata": {"name": name}, "spec": {"nodeName": "n", "containers": [{"name": "web", "image": "web:1"}]}})
        status = {"name": "web", "image": "web:1", "imageID": "", "containerID": f"containerd://{container_id}", "ready": True,
                  "restartCount": 0, "state": {"running": {}}}
        self.cluster.patch(f"{path}/{name}/status", {"status": {"phase": "Running", "containerStatuses": [status]}})
        return container_id

    def test_k8s_collector(self):
        accounts = Accounts(self.cluster, self.directory, self.documents, "k8s-collector")
        permissions = sorted(manifest_rules.rules_of(accounts.role))
        self.assertEqual(len(permissions), 18)

        def collector(kubeconfig):
            return self.start(PrintingCollector("--kubeconfig", kubeconfig, log=kubeconfig.with_suffix(".log")))
        whole = collector(accounts.kubeconfig())
        lacking = {p: collector(accounts.kubeconfig_without(p)) for p in permissions}

        def watches():
            """Returns the number of watches: at SIGUSR1, k8s-collector writes its metrics to its log."""
            whole.process.send_signal(signal.SIGUSR1)
            return max(map(int, re.findall(r"tributary_k8s_watches_total\D+(\d+)", whole.log())), default=0)
        wait_for(lambda: whole.complete and watches() >= 9, 60, "nine watches")
        self.assert_reports(OURS, lacking)
        self.assertEqual(missing(OURS, whole.log()), set())

    def test_gateway(self):
        binary = otelcol.binary(HERE / "collector")
        accounts = Accounts(self.cluster, self.directory, self.documents, "gateway")
        permissions = sorted(manifest_rules.rules_of(accounts.role))
        self.assertEqual(len(permissions), 2)
        whole = self.start(Gateway(binary, self.documents, accounts.kubeconfig()))
        lacking = {p: self.start(Gateway(binary, self.documents, accounts.kubeconfig_without(p))) for p in permissions}
        wait_for(lambda: "Everything is ready" in whole.log() or whole.process.poll() is not None, 60, "the gateway")
        self.assert_reports(THEIRS, lacking)
        self.assertEqual(missing(THEIRS, whole.log()), set())
        container_id = self.add_pod("web-7d4b9c-x2x9k")
        wait_for(lambda: "k8s.pod.name" in whole.resource_of(container_id), 30, "the pod's name")
        resource = whole.resource_of(container_id)
        self.assertEqual((resource["k8s.pod.name"], resource["k8s.namespace.name"], resource["k8s.container.name"]),
                         ("web-7d4b9c-x2x9k", "default", "web"))
        self.assertIsNone(whole.process.poll(), whole.log())


if __name__ == "__main__":
    unittest.main(warnings="ignore")
