"""Tests that the reducer exports the same container attributes as OpenTelemetry's k8sattributesprocessor.

Names, types and values must be equal. The processor runs in a real Collector. It and k8s-collector watch the same API
server, which has only unusual pods (odd_pods.py). The test queries the processor with logs that each name a container.
The reducer exports samples of the same containers to the same Collector, which does not change them. Intended
differences are listed below and in docs/metadata.md.
"""

import http.client
import json
import pathlib
import re
import sys
import tempfile
import time
import unittest

from cluster import AGENT, Cluster
from node import Node
from odd_pods import DOCKER_IMAGE_IDS, FORGED, IMAGE_IDS, NODES, OTEL, OddPods

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "otlp")]
import lib  # noqa: E402
import otelcol  # noqa: E402

# The same rules as in collector/config.yaml.
NAME_RULES = [each for option, rules in {
    "--k8s-label": ["app", "empty", "app.kubernetes.io/(.*)=k8s.label.$1", "tier.*", "first=which", "second=which", "namespace:team=team",
                    "namespace:stage", "node:topology.kubernetes.io/.*", "deployment:team=team", "deployment:owner", "replicaset:owner",
                    "statefulset:owner", "daemonset:owner", "job:owner", "cronjob:owner"],
    "--k8s-annotation": ["note", "third=which", "namespace:cost=cost.centre", "deployment:change/(.*)=change.$1", "node:rack"],
}.items() for rule in rules for each in (option, rule)]
# Attributes that the reducer exports and the processor cannot know.
OURS_ALONE = {"container.image.id", "container.runtime.name", "k8s.container.restart_count", "host.id", "host.name"}
# The processor's earlier names. It adds them to the conventions' names while both variants of its feature gates are on.
EARLIER_NAME = re.compile(r"k8s\.(pod|namespace|node)\.(label|annotation)s\.")

DOCKER_PODS = tuple(f"image-id-{len(IMAGE_IDS) + i}/" for i in range(len(DOCKER_IMAGE_IDS)))
# Intended differences: name → condition. The test must see each of them.
DIFFERENCES = {
    "what is empty is left out": lambda name, key, theirs, ours: theirs == "",
    "annotations do not say where a pod runs": lambda name, key, theirs, ours: name.startswith("forger/") and OTEL + key in FORGED,
    "docker-pullable:// is understood":
        lambda name, key, theirs, ours: name.startswith(DOCKER_PODS) and key == "container.image.repo_digests" and theirs is None,
    "owners are those that control":
        lambda name, key, theirs, ours: name.startswith("uncontrolled/") and (ours is None or key in ("service.name", "team")),
    "owners are not guessed from names":
        lambda name, key, theirs, ours: name.startswith("gone-x/") and key in ("k8s.deployment.name", "service.name"),
}


class Processor(otelcol.Collector):
    """A Collector that a test queries with logs. It does not change received profiles."""

    def __init__(self, folder, kubeconfig):
        super().__init__(folder, start_timeout_s=90, recipe=HERE / "collector", gates=["processor.k8sattributes.EmitV1K8sConventions"],
                         environment={"KUBECONFIG": str(kubeconfig)})

    def ask(self, container_ids):
        def log(container_id):
            return {"resource": {"attributes": [{"key": "container.id", "value": {"stringValue": container_id}}]},
                    "scopeLogs": [{"logRecords": [{"body": {"stringValue": "x"}}]}]}
        connection = http.client.HTTPConnection(self.http_address, timeout=30)
        connection.request("POST", "/v1/logs", json.dumps({"resourceLogs": [log(i) for i in container_ids]}), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        lib.check(answer.status == 200, f"{answer.status} {answer.read()[:500]}")

    def answers(self):
        """Returns {container id: resource}."""
        path = self.folder / "logs.jsonl"
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        resources = [otelcol.attributes(r["resource"]["attributes"], []) for line in lines for r in json.loads(line)["resourceLogs"]]
        return {r["container.id"]: r for r in resources}


class ProcessorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="tributary-k8s-")))
        cls.cluster = cls.enterClassContext(Cluster(cls.directory))
        manual = (SOURCE / "docs/k8s-collector.md").read_text()
        role, binding = re.findall(r"```yaml\n(.*?)```", manual, re.S)[0].split("\n---\n")[:2]
        # The permissions of k8s-collector are enough for the processor.
        binding += "\n- {apiGroup: rbac.authorization.k8s.io, kind: User, name: profiler-agent}\n"
        cls.cluster.apply_yaml(role + "\n---\n" + binding)
        token = cls.directory / "agent-token"
        token.write_text(AGENT)
        cls.kubeconfig = cls.cluster.kubeconfig(token)
        lib.wait_for("kube-system", lambda: cls.cluster.request("GET", "/api/v1/namespaces/kube-system")[0] == 200)
        cls.pods = OddPods(cls.cluster)
        cls.pods.populate()

    def of_the_processor(self, processor):
        ids = [c.id for c in self.pods.containers]
        processor.ask(ids)
        lib.wait_for("the processor's answers", lambda: len(processor.answers()) == len(ids))
        return processor.answers()

    def of_the_reducer(self, processor, programs):
        reducer = lib.Reducer(self.directory, args=["--export", f"otlp://{processor.address}", *NAME_RULES])
        programs.append(reducer)
        programs.append(lib.Program("k8s-collector", [lib.BIN / "k8s-collector", "--kubeconfig", self.kubeconfig, "--intake-port",
                                                      reducer.intake_port], self.directory))

        def is_complete():
            before = reducer.metric("tributary_metadata_entities_told_total")
            time.sleep(1)
            return len(self.pods.containers) < before == reducer.metric("tributary_metadata_entities_told_total")
        lib.wait_for("all entities of the cluster", is_complete)
        with open(self.directory / "nodes.log", "ab") as log:
            for name in NODES:
                node = Node(name, reducer.intake_port, log)
                for pid, container in enumerate(self.pods.containers, 100):
                    if container.node == name:
                        node.sample(pid, "/usr/bin/odd", container.cgroup, "", [time.time_ns()])
                self.assertEqual(node.stop(), 0)

        def exported():
            resources = [sample.resource for sample in otelcol.samples(processor.requests())]
            return {r["container.id"]: r for r in resources} if len(resources) == len(self.pods.containers) else None
        return lib.wait_for("the samples", exported)

    def test_the_reducer_exports_the_attributes_of_the_processor(self):
        with lib.programs() as programs, Processor(self.directory / "otelcol", self.kubeconfig) as processor:
            theirs = self.of_the_processor(processor)
            ours = self.of_the_reducer(processor, programs)
        compared, unknown, seen, wrong = 0, 0, dict.fromkeys(DIFFERENCES, 0), []
        for container in self.pods.containers:
            t, o = theirs[container.id], ours[container.id]
            self.assertEqual(f"{o['k8s.pod.name']}/{o['k8s.container.name']}", container.name)
            if container.is_unknown_to_processor:
                self.assertEqual(t.keys(), {"container.id"}, container)
                unknown += 1
                continue
            self.assertIn("k8s.pod.name", t, container)
            for key in sorted(t.keys() | o.keys() - OURS_ALONE):
                current = EARLIER_NAME.sub(r"k8s.\1.\2.", key)
                if current != key and t[current] == t[key]:
                    continue
                compared += 1
                if type(t.get(key)) is type(o.get(key)) and t.get(key) == o.get(key):
                    continue
                meant = [name for name, applies in DIFFERENCES.items() if applies(container.name, key, t.get(key), o.get(key))]
                if meant:
                    seen[meant[0]] += 1
                else:
                    wrong.append(f"{container.name} {key}: the processor says {t.get(key)!r}, we {o.get(key)!r}")
        print(f"compared {compared} attributes of {len(self.pods.containers) - unknown} containers; {len(wrong)} differ, and as they should "
              f"{seen}; {unknown} containers that the processor does not know", file=sys.stderr)
        self.assertFalse(wrong, "\n".join(wrong[:30]))
        self.assertEqual([name for name, count in seen.items() if count == 0], [])
        self.assertEqual(unknown, 3)
        self.assertGreater(compared, 15 * len(self.pods.containers))


if __name__ == "__main__":
    unittest.main(warnings="ignore")
