"""Tests k8s-collector and a reducer with a real kube-apiserver.

The collector's entities must equal the API's objects, attribute by attribute, after all kinds of events. Samples of
every container, on made-up nodes, must have the attributes that the API had for the container at their time.

    cluster_test.py [--pods 2000] [--keep-recording DIR]
"""

import argparse
import calendar
import json
import pathlib
import re
import sys
import tempfile
import time
import unittest

import expected
from cluster import AGENT, Cluster, in_parallel, wait_for
from collectors import PrintingCollector
from pipeline import Pipeline
from workloads import APPS, DIGEST, NAMESPACES, NODES, OTEL, Workloads, workload_of

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
ARGUMENTS = argparse.Namespace(pods=2000, keep_recording=None)


class ClusterTest(unittest.TestCase):
    """One sequence of tests, which run in the order of their names."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="tributary-k8s-")
        path = pathlib.Path(cls.directory.name)
        cls.addClassCleanup(cls.directory.cleanup)
        cls.cluster = cls.enterClassContext(Cluster(path))
        manual = (SOURCE / "docs/k8s-collector.md").read_text()
        role, binding = re.findall(r"```yaml\n(.*?)```", manual, re.S)[:1][0].split("\n---\n")[:2]
        cls.binding = binding + "\n- {apiGroup: rbac.authorization.k8s.io, kind: User, name: profiler-agent}\n"
        cls.cluster.apply_yaml(role + "\n---\n" + cls.binding)
        cls.token_file = path / "agent-token"
        cls.token_file.write_text(AGENT)
        cls.workloads = Workloads(cls.cluster)
        cls.count = max(6, ARGUMENTS.pods * 300 // 2000)
        wait_for(lambda: cls.cluster.request("GET", "/api/v1/namespaces/kube-system")[0] == 200, 30, "kube-system")
        cls.made = cls.workloads.populate(ARGUMENTS.pods, cls.count)
        kubeconfig = cls.cluster.kubeconfig(cls.token_file)
        # Sample the containers before the reducer gets their metadata.
        cls.pipeline = cls.enterClassContext(Pipeline(path, NODES, "--kubeconfig", kubeconfig))
        cls.sample(cls.objects())
        cls.pipeline.watch()
        recording = ["--record", ARGUMENTS.keep_recording] if ARGUMENTS.keep_recording else []
        cls.collector = PrintingCollector("--kubeconfig", kubeconfig, *recording, log=path / "collector.log")
        cls.addClassCleanup(cls.collector.kill)
        wait_for(lambda: cls.collector.complete, 60, "a complete list")

    @classmethod
    def objects(cls):
        return {plural: cls.cluster.items(path) for plural, path in expected.PATHS.items()}

    @classmethod
    def sample(cls, objects, **more):
        """Takes and sends a sample of every running container."""
        cls.pipeline.history.take(objects, **more)
        cls.pipeline.send()

    def assert_equal_to_api(self, seconds=30):
        """Waits until the collector's entities equal the API's objects, attribute by attribute."""
        objects = self.objects()
        want = expected.entities(objects)
        end = time.monotonic() + seconds
        while (wrong := expected.differences(want, dict(self.collector.entities))) and time.monotonic() < end:
            time.sleep(0.2)
        self.assertEqual(wrong[:10], [], f"{len(wrong)} differences\n{self.collector.log()[-2000:]}")
        return objects, want

    def sample_when_known(self, seconds=30):
        """Takes samples when both collectors know the current state.

        The collector that sends to the reducer receives the same events as the collector that prints, in unknown order.
        """
        objects, _ = self.assert_equal_to_api(seconds)
        time.sleep(1)
        self.sample(objects)
        return objects

    def change(self, path, **metadata):
        self.cluster.patch(path, {"metadata": metadata})

    def test_01_every_attribute_of_every_pod(self):
        objects, want = self.assert_equal_to_api()
        self.assertEqual(len(objects["pods"]), ARGUMENTS.pods)
        compared = sum(len(attributes) for (kind, _), attributes in want.items() if kind in ("pod", "container"))
        self.assertGreater(compared, 20 * ARGUMENTS.pods)
        for word in ("deployment", "replicaset", "statefulset", "daemonset", "job", "cronjob"):
            self.assertTrue(any(f"k8s.{word}.uid" in attributes for attributes in want.values()), word)
        self.assertEqual(self.collector.rollouts, [])
        status = pathlib.Path(f"/proc/{self.collector.process.pid}/status").read_text()
        print(f"compared {compared} attributes of {len(objects['pods'])} pods; {re.search('VmRSS.*', status)[0]}", file=sys.stderr)
        self.sample(objects)

    def test_02_rolling_update_and_back(self):
        namespace, _, name = workload_of(0)
        deployment, first = self.made[0]
        old = [p for p in self.cluster.items(f"/api/v1/namespaces/{namespace}/pods") if p["metadata"]["name"].startswith(f"{first['name']}-")]
        time.sleep(1)
        second = self.workloads.replica_set(namespace, deployment, "next", 2)
        new = [self.workloads.pod(namespace, second, "next", image=f"registry.example:5000/shop/web:1.3@{DIGEST}") for _ in old]
        self.sample(self.objects())  # both versions run
        for pod in old:
            self.workloads.delete_pod(pod)
        wait_for(lambda: self.collector.rollouts, 10, "a rollout")
        rollout = self.collector.rollouts[0]
        self.assertEqual(rollout["id"], f"deployment/{namespace}/{name}/next")
        self.assertEqual(rollout["attributes"]["rollout.previous.hash"], "rev0")
        self.assertIn("shop/web:1.3", rollout["attributes"]["rollout.images"])
        created = time.strptime(new[0]["metadata"]["creationTimestamp"], "%Y-%m-%dT%H:%M:%SZ")
        self.assertEqual(rollout["from"], calendar.timegm(created) * 10**9)
        self.change(f"{APPS}/{namespace}/replicasets/{first['name']}", annotations={"deployment.kubernetes.io/revision": "3"})
        back = self.workloads.pod(namespace, first, "rev0")
        wait_for(lambda: len(self.collector.rollouts) == 2, 10, "the way back")
        self.pipeline.wait_until_known(back, {"revision": "3"})
        self.assertTrue(self.collector.rollouts[1]["id"].startswith(f"deployment/{namespace}/{name}/rev0@"))
        self.sample_when_known()

    def test_03_delete_restart_and_node_loss(self):
        objects = self.objects()
        lost = [p for p in objects["pods"] if p["spec"]["nodeName"] == NODES[3]]
        # Take the samples now, and send them when all these pods are gone.
        self.pipeline.history.take(objects)
        self.cluster.call("DELETE", f"/api/v1/nodes/{NODES[3]}")
        in_parallel(self.workloads.delete_pod, lost)
        restarted = next(p for p in objects["pods"] if p["spec"]["nodeName"] == NODES[4] and p["metadata"]["namespace"] != "kube-system")
        before = restarted["status"]["containerStatuses"][0]["containerID"].split("://")[1]
        self.workloads.run(restarted["metadata"]["namespace"], restarted, restarts=1)
        self.sample_when_known()
        for pod in lost:
            entity = self.collector.entities["pod", pod["metadata"]["uid"]]
            self.assertTrue(entity["gone"])
            self.assertEqual(entity["attributes"]["k8s.node.name"], NODES[3])  # the old attributes are still known
            self.assertLess(abs(entity["from"] / 1e9 - time.time()), 60)
        self.assertTrue(self.collector.entities["container", before]["gone"])

    def test_04_another_node_of_that_name_and_other_labels(self):
        node = self.workloads.add_node(NODES[3])
        on_node = [self.workloads.pod(workload_of(i)[0], self.made[i][1], f"rev{i}", node=NODES[3]) for i in (0, 1, 5)]
        self.pipeline.wait_until_known(on_node[0], {"k8s.node.uid": node["metadata"]["uid"]})
        objects = self.sample_when_known()
        of_nodes = {name: [p for p in objects["pods"] if p["spec"]["nodeName"] == name] for name in NODES}
        self.change(f"/api/v1/nodes/{NODES[1]}", labels={"topology.kubernetes.io/zone": None, "topology.kubernetes.io/region": "r"})
        self.pipeline.wait_until_known(of_nodes[NODES[1]][0], {"k8s.node.label.topology.kubernetes.io/zone": ""})
        self.change(f"/api/v1/namespaces/{NAMESPACES[1]}", labels={"team": "moved"})
        in_namespace = next(p for p in objects["pods"] if p["metadata"]["namespace"] == NAMESPACES[1])
        self.pipeline.wait_until_known(in_namespace, {"team": "moved"})
        for pod in of_nodes[NODES[5]][:20]:
            meta = pod["metadata"]
            self.change(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}", labels={"tier": "moved", "app.kubernetes.io/part-of": "all"},
                        annotations={"note": "another", OTEL + "service.name": "renamed"})
        self.pipeline.wait_until_known(pod, {"k8s.pod.label.tier": "moved"})
        self.sample_when_known()

    def test_05_api_server_restarts(self):
        objects = self.objects()
        self.cluster.stop_api()
        self.sample(objects)
        time.sleep(1)
        self.cluster.start_api()
        namespace = workload_of(1)[0]
        self.workloads.pod(namespace, self.made[1][1], "rev1")
        self.sample(self.objects())
        self.sample_when_known(seconds=60)

    def test_06_gone(self):
        """Pauses the collectors while objects are created and deleted, and the API server forgets these events."""
        for collector in (self.collector, self.pipeline.collector):
            collector.pause()
            self.addCleanup(collector.go_on)
        namespace = workload_of(2)[0]
        *deleted, stays = self.cluster.items(f"/api/v1/namespaces/{namespace}/pods")[:4]
        self.sample(self.objects())
        for pod in deleted:
            self.workloads.delete_pod(pod)
        self.workloads.pod(namespace, self.made[2][1], "rev2")
        # The reducer applies a change from the time when it receives it. Until then, sample nothing of that namespace.
        self.change(f"/api/v1/namespaces/{namespace}", labels={"team": "away"})
        objects = self.objects()
        self.sample(objects, except_pods=lambda pod: pod["metadata"]["namespace"] == namespace)
        self.cluster.stop_api()
        self.cluster.compact()
        self.cluster.start_api()
        self.doCleanups()
        self.assert_equal_to_api(seconds=60)
        self.pipeline.wait_until_known(stays, {"team": "away"}, 60)
        self.sample_when_known()
        for pod in deleted:
            self.assertTrue(self.collector.entities["pod", pod["metadata"]["uid"]]["gone"])
        self.assertIn("410", self.collector.log())
        self.assertIn("410", self.pipeline.collector.log())

    def test_07_expired_token(self):
        self.token_file.write_text("expired")
        self.cluster.stop_api()
        self.cluster.start_api()
        wait_for(lambda: "does not accept the credentials" in self.collector.log(), 60, "a word about the token")
        self.workloads.pod(workload_of(4)[0], self.made[4][1], "rev4")
        self.sample(self.objects())
        self.token_file.write_text(AGENT)
        self.workloads.pod(workload_of(4)[0], self.made[4][1], "rev4")
        self.sample_when_known(seconds=60)

    def test_08_dropped_permission(self):
        role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/tributary-k8s-collector"
        rules = self.cluster.call("GET", role)["rules"]
        fewer = [dict(r, resources=[x for x in r["resources"] if x != "jobs"]) for r in rules]
        self.cluster.call("PATCH", role, {"rules": fewer}, "application/merge-patch+json")
        self.cluster.stop_api()
        self.cluster.start_api()
        wait_for(lambda: re.search("grant the verb (list|watch) on the resource jobs of the API group batch", self.collector.log()), 60,
                 "a word about the permission")
        pod = self.workloads.pod(workload_of(3)[0], self.made[3][1], "rev3")  # other kinds go on
        wait_for(lambda: ("pod", pod["metadata"]["uid"]) in self.collector.entities, 60, "a new pod")
        namespace = workload_of(5)[0]
        job = self.workloads.job(namespace, self.made[5][0])
        of_job = self.workloads.pod(namespace, job, "rev5")
        wait_for(lambda: ("pod", of_job["metadata"]["uid"]) in self.collector.entities, 60, "a new pod of a new job")
        # The pod's owner will be known later, and is valid from the pod's beginning.
        self.sample(self.objects(), is_late=True)
        self.cluster.call("PATCH", role, {"rules": rules}, "application/merge-patch+json")
        self.assert_equal_to_api(seconds=90)
        self.pipeline.wait_until_known(of_job, {"k8s.cronjob.name": workload_of(5)[2]}, 90)
        self.sample_when_known()

    def test_09_collector_and_reducer_start_anew(self):
        self.pipeline.collector.kill()
        namespace = workload_of(3)[0]
        *deleted, _ = self.cluster.items(f"/api/v1/namespaces/{namespace}/pods")[:3]
        self.pipeline.history.take(self.objects())
        for pod in deleted:
            self.workloads.delete_pod(pod)
        pod = self.workloads.pod(namespace, self.made[3][1], "rev3")
        self.sample(self.objects())
        self.pipeline.watch()
        self.pipeline.wait_until_known(pod, {"k8s.pod.name": pod["metadata"]["name"]})
        self.sample_when_known()
        self.pipeline.restart_reducer()
        self.workloads.pod(namespace, self.made[3][1], "rev3")
        self.sample(self.objects())
        self.sample_when_known()

    def test_10_a_pod_that_names_the_container_of_another(self):
        objects = self.objects()
        victim, liar = [p for p in objects["pods"] if p["metadata"]["namespace"] == NAMESPACES[0]][:2]
        (status, *_), (stolen, *_) = liar["status"]["containerStatuses"], victim["status"]["containerStatuses"]
        own = status["containerID"].split("://")[1]
        path = f"/api/v1/namespaces/{NAMESPACES[0]}/pods/{liar['metadata']['name']}/status"
        self.cluster.patch(path, {"status": {"containerStatuses": [{**status, "containerID": stolen["containerID"]}]}})
        wait_for(lambda: self.collector.entities["container", own].get("gone"), 30, "the lie to be received")
        self.sample(objects)  # all attributes are unchanged
        self.workloads.run(NAMESPACES[0], liar, restarts=1)
        self.sample_when_known()

    def test_11_every_sample_of_every_container(self):
        objects, _ = self.assert_equal_to_api()
        self.pipeline.assert_all_as_expected()
        self.assertEqual(self.collector.stop(), 0)
        if ARGUMENTS.keep_recording:
            self.keep_expected(objects)

    def keep_expected(self, objects):
        recording = pathlib.Path(ARGUMENTS.keep_recording)
        self.assertNotIn(AGENT, "".join(p.read_text() for p in recording.iterdir()))
        alive = {pod["metadata"]["uid"] for pod in objects["pods"]}
        gone = [pod for uid, pod in self.pipeline.history.pods.items() if uid not in alive]
        for pod in objects["pods"] + gone:
            pod["metadata"].pop("managedFields", None)
        (recording / "expected.json").write_text(json.dumps({"objects": objects, "gone_pods": gone, "rollouts": self.collector.rollouts}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--keep-recording", metavar="DIR")
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], warnings="ignore")
