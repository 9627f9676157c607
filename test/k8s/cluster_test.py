"""k8s-collector against a real kube-apiserver: what it tells equals what the API says, whatever happened in between.

    cluster_test.py [--pods 2000] [--keep-recording DIR]
"""

import argparse
import calendar
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import expected
from cluster import AGENT, Cluster, in_parallel, wait_for

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ["TRIBUTARY_BIN"])
ARGUMENTS = argparse.Namespace(pods=2000, keep_recording=None)
DIGEST = "sha256:" + "0123456789abcdef" * 4
NODES = [f"node-{i}" for i in range(8)]
NAMESPACES = [f"team-{i}" for i in range(6)]
APPS = "/apis/apps/v1/namespaces"


class Collector:
    """k8s-collector --print-entities; `told` is the last state of each entity."""

    def __init__(self, *arguments, log):
        self.told, self.rollouts, self.complete = {}, [], False
        self.log_path = log
        self.process = subprocess.Popen([BIN / "k8s-collector", "--print-entities", *map(str, arguments)], stdout=subprocess.PIPE,
                                        stderr=open(log, "ab"), text=True)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            entity = json.loads(line)
            if "complete" in entity:
                self.complete = True
                continue
            self.told[entity["kind"], entity["id"]] = entity
            if entity["kind"] == "rollout" and not entity.get("gone"):
                self.rollouts.append(entity)

    def log(self):
        return self.log_path.read_text()

    def stop(self):
        self.process.terminate()
        code = self.process.wait(10)
        self.reader.join()
        return code


def workload_of(i):
    """Namespace, kind and name of the i-th workload of 300."""
    kind = ("Deployment", "Deployment", "Deployment", "StatefulSet", "DaemonSet", "CronJob")[i % 6]
    return NAMESPACES[i % len(NAMESPACES)], kind, f"{kind.lower()}-{i}"


class Workloads:
    """Does by hand what controllers and kubelets would do."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.serial = 0
        self.lock = threading.Lock()

    def number(self):
        with self.lock:
            self.serial += 1
            return self.serial

    def create(self, i):
        namespace, kind, name = workload_of(i)
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "web:1"}], "restartPolicy": "Always"}}
        body = {"metadata": {"name": name, "labels": labels}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
        group = "apps"
        if kind == "StatefulSet":
            body["spec"]["serviceName"] = name
        if kind == "CronJob":
            template["spec"]["restartPolicy"] = "Never"
            body["spec"] = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": template}}}
            group = "batch"
        top = self.cluster.call("POST", f"/apis/{group}/v1/namespaces/{namespace}/{kind.lower()}s", body)
        return self.owner(kind, top)

    def owner(self, kind, thing):
        return {"apiVersion": "apps/v1", "kind": kind, "name": thing["metadata"]["name"], "uid": thing["metadata"]["uid"], "controller": True}

    def replica_set(self, namespace, deployment, hash_, revision):
        labels = {"app": deployment["name"], "pod-template-hash": hash_}
        body = {"metadata": {"name": f"{deployment['name']}-{hash_}", "labels": labels, "ownerReferences": [deployment],
                             "annotations": {"deployment.kubernetes.io/revision": str(revision)}},
                "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                                                                             "spec": {"containers": [{"name": "main", "image": "web:1"}]}}}}
        return self.owner("ReplicaSet", self.cluster.call("POST", f"{APPS}/{namespace}/replicasets", body))

    def job(self, namespace, cron_job):
        body = {"metadata": {"name": f"{cron_job['name']}-{self.number()}", "ownerReferences": [cron_job]},
                "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "job:1"}], "restartPolicy": "Never"}}}}
        return self.owner("Job", self.cluster.call("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", body))

    def pod(self, namespace, owner, hash_, image="registry.example:5000/shop/web:1.2.3"):
        serial = self.number()
        label = {"ReplicaSet": "pod-template-hash", "Job": "job-name"}.get(owner["kind"], "controller-revision-hash")
        sides = len(owner["name"]) % 2
        body = {"metadata": {"name": f"{owner['name']}-{serial}", "ownerReferences": [owner],
                             "labels": {"app": owner["name"], label: hash_, "tier": str(serial % 3)},
                             "annotations": {"note": "two\nlines \"quoted\" ü", "resource.opentelemetry.io/service.name": f"svc-{serial % 50}",
                                             "kubectl.kubernetes.io/last-applied-configuration": "x" * 500, "long": "y" * 1500}},
                "spec": {"nodeName": NODES[serial % len(NODES)], "hostname": f"h{serial}",
                         "initContainers": [{"name": "init", "image": f"init@{DIGEST}"}] if serial % 4 == 0 else [],
                         "containers": [{"name": "main", "image": image}, {"name": "side", "image": "proxy"}][: 1 + sides]}}
        made = self.cluster.call("POST", f"/api/v1/namespaces/{namespace}/pods", body)
        self.run(namespace, made)
        return made

    def run(self, namespace, pod, restarts=0):
        """As a kubelet says that it runs."""
        def status(container):
            return {"name": container["name"], "image": container["image"], "imageID": f"docker.io/library/{container['name']}@{DIGEST}",
                    "containerID": f"containerd://{self.number():064x}", "restartCount": restarts, "ready": True}
        spec = pod["spec"]
        self.cluster.patch(f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}/status", {"status": {
            "podIP": f"10.{self.serial >> 16 & 255}.{self.serial >> 8 & 255}.{self.serial & 255}", "phase": "Running",
            "containerStatuses": [status(c) for c in spec["containers"]],
            "initContainerStatuses": [status(c) for c in spec.get("initContainers", [])]}})

    def delete_pod(self, pod):
        self.cluster.call("DELETE", f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}",
                          {"gracePeriodSeconds": 0})

    def populate(self, pods, workloads):
        for name in NAMESPACES:
            self.cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": {"team": name}, "annotations": {"cost": "7"}}})
        for name in NODES:
            self.cluster.call("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": "z"}}})

        def populate_one(i):
            namespace, kind, _ = workload_of(i)
            top = self.create(i)
            owner, hash_ = top, f"rev{i}"
            if kind == "Deployment":
                owner = self.replica_set(namespace, top, hash_, 1)
            elif kind == "CronJob":
                owner = self.job(namespace, top)
            for _ in range(i, pods, workloads):
                self.pod(namespace, owner, hash_)
            return top, owner
        return in_parallel(populate_one, range(workloads))


class ClusterTest(unittest.TestCase):
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
        cls.made = cls.workloads.populate(ARGUMENTS.pods, cls.count)
        wait_for(lambda: cls.cluster.request("GET", "/api/v1/namespaces/kube-system")[0] == 200, 30, "kube-system")
        recording = ["--record", ARGUMENTS.keep_recording] if ARGUMENTS.keep_recording else []
        cls.collector = Collector("--kubeconfig", cls.cluster.kubeconfig(cls.token_file), *recording, log=path / "collector.log")
        cls.addClassCleanup(lambda: cls.collector.process.poll() is None and cls.collector.stop())
        wait_for(lambda: cls.collector.complete, 60, "a complete list")

    def objects(self):
        return {plural: self.cluster.items(path) for plural, path in expected.PATHS.items()}

    def assert_equal_to_api(self, seconds=30):
        """Within some time all that is told is what is there, attribute for attribute."""
        objects = self.objects()
        want = expected.entities(objects)
        end = time.monotonic() + seconds
        while (wrong := expected.differences(want, dict(self.collector.told))) and time.monotonic() < end:
            time.sleep(0.2)
        self.assertEqual(wrong[:10], [], f"{len(wrong)} differences\n{self.collector.log()[-2000:]}")
        return objects, want

    def test_1_every_attribute_of_every_pod(self):
        objects, want = self.assert_equal_to_api()
        self.assertEqual(len(objects["pods"]), ARGUMENTS.pods)
        compared = sum(len(attributes) for (kind, _), attributes in want.items() if kind in ("pod", "container"))
        self.assertGreater(compared, 20 * ARGUMENTS.pods)
        for word in ("deployment", "replicaset", "statefulset", "daemonset", "job", "cronjob"):
            self.assertTrue(any(f"k8s.{word}.uid" in attributes for attributes in want.values()), word)
        self.assertEqual(self.collector.rollouts, [])
        status = pathlib.Path(f"/proc/{self.collector.process.pid}/status").read_text()
        print(f"compared {compared} attributes of {len(objects['pods'])} pods; {re.search('VmRSS.*', status)[0]}", file=sys.stderr)

    def test_2_rolling_update_and_back(self):
        namespace, _, name = workload_of(0)
        deployment, first = self.made[0]
        old = [p for p in self.cluster.items(f"/api/v1/namespaces/{namespace}/pods") if p["metadata"]["name"].startswith(f"{first['name']}-")]
        time.sleep(1)
        second = self.workloads.replica_set(namespace, deployment, "next", 2)
        new = []
        for pod in old:
            new.append(self.workloads.pod(namespace, second, "next", image="registry.example:5000/shop/web:1.3"))
            self.workloads.delete_pod(pod)
        wait_for(lambda: self.collector.rollouts, 10, "a rollout")
        rollout = self.collector.rollouts[0]
        self.assertEqual(rollout["id"], f"deployment/{namespace}/{name}/next")
        self.assertEqual(rollout["attributes"]["rollout.previous.hash"], "rev0")
        self.assertIn("shop/web:1.3", rollout["attributes"]["rollout.images"])
        created = time.strptime(new[0]["metadata"]["creationTimestamp"], "%Y-%m-%dT%H:%M:%SZ")
        self.assertEqual(rollout["from"], calendar.timegm(created) * 10**9)
        self.cluster.patch(f"{APPS}/{namespace}/replicasets/{first['name']}",
                           {"metadata": {"annotations": {"deployment.kubernetes.io/revision": "3"}}})
        self.workloads.pod(namespace, first, "rev0")
        wait_for(lambda: len(self.collector.rollouts) == 2, 10, "the way back")
        self.assertTrue(self.collector.rollouts[1]["id"].startswith(f"deployment/{namespace}/{name}/rev0@"))
        self.assert_equal_to_api()

    def test_3_delete_restart_and_node_loss(self):
        pods = self.cluster.items("/api/v1/pods")
        lost = [p for p in pods if p["spec"]["nodeName"] == NODES[3]]
        self.cluster.call("DELETE", f"/api/v1/nodes/{NODES[3]}")
        in_parallel(self.workloads.delete_pod, lost)
        restarted = next(p for p in pods if p["spec"]["nodeName"] == NODES[4])
        before = restarted["status"]["containerStatuses"][0]["containerID"].split("://")[1]
        self.workloads.run(restarted["metadata"]["namespace"], restarted, restarts=1)
        self.cluster.patch(f"/api/v1/namespaces/{NAMESPACES[1]}", {"metadata": {"labels": {"team": "moved"}}})
        self.assert_equal_to_api()
        for pod in lost:
            told = self.collector.told["pod", pod["metadata"]["uid"]]
            self.assertTrue(told["gone"])
            self.assertEqual(told["attributes"]["k8s.node.name"], NODES[3])  # what it was is known still
            self.assertLess(abs(told["from"] / 1e9 - time.time()), 60)
        self.assertTrue(self.collector.told["container", before]["gone"])

    def test_4_api_server_restarts(self):
        self.cluster.stop_api()
        time.sleep(1)
        self.cluster.start_api()
        namespace = workload_of(1)[0]
        self.workloads.pod(namespace, self.made[1][1], "rev1")
        self.assert_equal_to_api(seconds=60)

    def test_5_gone(self):
        """While the collector looks away, objects come and go, and the API server forgets that."""
        os.kill(self.collector.process.pid, signal.SIGSTOP)
        try:
            namespace = workload_of(2)[0]
            deleted = [p for p in self.cluster.items(f"/api/v1/namespaces/{namespace}/pods")][:3]
            for pod in deleted:
                self.workloads.delete_pod(pod)
            self.workloads.pod(namespace, self.made[2][1], "rev2")
            self.cluster.stop_api()
            self.cluster.compact()
            self.cluster.start_api()
        finally:
            os.kill(self.collector.process.pid, signal.SIGCONT)
        self.assert_equal_to_api(seconds=60)
        for pod in deleted:
            self.assertTrue(self.collector.told["pod", pod["metadata"]["uid"]]["gone"])
        self.assertIn("410", self.collector.log())

    def test_6_expired_token(self):
        self.token_file.write_text("expired")
        self.cluster.stop_api()
        self.cluster.start_api()
        wait_for(lambda: "does not accept the credentials" in self.collector.log(), 60, "a word about the token")
        self.token_file.write_text(AGENT)
        self.workloads.pod(workload_of(4)[0], self.made[4][1], "rev4")
        self.assert_equal_to_api(seconds=60)

    def test_7_dropped_permission(self):
        role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/tributary-k8s-collector"
        rules = self.cluster.call("GET", role)["rules"]
        fewer = [dict(r, resources=[x for x in r["resources"] if x != "jobs"]) for r in rules]
        self.cluster.call("PATCH", role, {"rules": fewer}, "application/merge-patch+json")
        self.cluster.stop_api()
        self.cluster.start_api()
        wait_for(lambda: "grant the verb watch on the resource jobs of the API group batch" in self.collector.log(), 60,
                 "a word about the permission")
        pod = self.workloads.pod(workload_of(3)[0], self.made[3][1], "rev3")  # other kinds go on
        wait_for(lambda: ("pod", pod["metadata"]["uid"]) in self.collector.told, 60, "a new pod")
        self.cluster.call("PATCH", role, {"rules": rules}, "application/merge-patch+json")
        self.assert_equal_to_api(seconds=90)

    def test_8_a_recording_tells_the_same(self):
        objects, want = self.assert_equal_to_api()
        self.assertEqual(self.collector.stop(), 0)
        if ARGUMENTS.keep_recording:
            recording = pathlib.Path(ARGUMENTS.keep_recording)
            self.assertNotIn(AGENT, "".join(p.read_text() for p in recording.iterdir()))
            for pods in objects["pods"]:
                pods["metadata"].pop("managedFields", None)
            (recording / "expected.json").write_text(json.dumps({"objects": objects, "rollouts": self.collector.rollouts}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--keep-recording", metavar="DIR")
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], warnings="ignore")
