"""Creates workloads of all kinds with their pods, like controllers and kubelets, which this cluster does not have."""

import threading

from cluster import in_parallel
from node import runtime_of

DIGEST = "sha256:" + "0123456789abcdef" * 4
NODES = [f"node-{i}" for i in range(8)]
NAMESPACES = [f"team-{i}" for i in range(6)]
APPS = "/apis/apps/v1/namespaces"
OTEL = "resource.opentelemetry.io/"
# Image ids as kubelets of several runtimes report them. An image that was built on the node has no registry.
IMAGE_IDS = [f"registry.example:5000/shop/{{name}}@{DIGEST}", f"docker.io/library/{{name}}@{DIGEST}", f"docker-pullable://{{name}}@{DIGEST}",
             "sha256:" + "ab" * 32]


def workload_of(i):
    """Returns namespace, kind and name of the i-th workload of 300."""
    kind = ("Deployment", "Deployment", "Deployment", "StatefulSet", "DaemonSet", "CronJob")[i % 6]
    return NAMESPACES[i % len(NAMESPACES)], kind, f"{kind.lower()}-{i}"


def identity_of(owner):
    """Returns the labels and annotations that name the service of a workload's pods. Some workloads have none."""
    number = int(owner["name"].split("-")[1])
    return [({}, {OTEL + "service.name": f"svc-{number}", OTEL + "deployment.environment.name": "live ü"}),
            ({"app.kubernetes.io/name": f"name-{number}"}, {OTEL + "service.version": f"9.{number}", OTEL + "service.namespace": "shop"}),
            ({"app.kubernetes.io/instance": f"instance-{number}", "app.kubernetes.io/name": "n", "app.kubernetes.io/version": "4.5"}, {}),
            ({}, {OTEL + "k8s.node.name": "not-this-one", OTEL + "service.instance.id": f"i-{number}"}),
            ({}, {})][number % 5]


class Workloads:
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

    def pod(self, namespace, owner, hash_, image="registry.example:5000/shop/web:1.2.3", node=None):
        serial = self.number()
        label = {"ReplicaSet": "pod-template-hash", "Job": "job-name"}.get(owner["kind"], "controller-revision-hash")
        labels, annotations = identity_of(owner)
        sides = len(owner["name"]) % 2
        body = {"metadata": {"name": f"{owner['name']}-{serial}", "ownerReferences": [owner],
                             "labels": {"app": owner["name"], label: hash_, "tier": str(serial % 3), **labels},
                             "annotations": {"note": "two\nlines \"quoted\" ü", "long": "y" * 1500, **annotations,
                                             "kubectl.kubernetes.io/last-applied-configuration": "x" * 500}},
                "spec": {"nodeName": node or NODES[serial % len(NODES)], "hostname": f"h{serial}",
                         "initContainers": [{"name": "init", "image": f"init@{DIGEST}"}] if serial % 4 == 0 else [],
                         "containers": [{"name": "main", "image": image}, {"name": "side", "image": "proxy"}][: 1 + sides]}}
        return self.run(namespace, self.cluster.call("POST", f"/api/v1/namespaces/{namespace}/pods", body))

    def static_pod(self, node):
        """Creates the mirror pod of a pod in a file, like a kubelet.

        The processes' cgroups contain the file's hash instead of the pod's uid.
        """
        hash_ = f"{self.number():032x}"
        name = node["metadata"]["name"]
        body = {"metadata": {"name": f"proxy-{name}", "ownerReferences": [{**self.owner("Node", node), "apiVersion": "v1"}],
                             "annotations": {"kubernetes.io/config.hash": hash_, "kubernetes.io/config.mirror": hash_,
                                             "kubernetes.io/config.source": "file"}},
                "spec": {"nodeName": name, "hostNetwork": True, "containers": [{"name": "proxy", "image": "registry.example/proxy:1"}]}}
        self.run("kube-system", self.cluster.call("POST", "/api/v1/namespaces/kube-system/pods", body))

    def run(self, namespace, pod, restarts=0):
        """Sets a pod's status to running, like a kubelet. Its earlier containers have ended."""
        spec, earlier = pod["spec"], pod.get("status", {})
        ids = {s["name"]: s.get("containerID") for s in earlier.get("containerStatuses", []) + earlier.get("initContainerStatuses", [])}

        def status(container):
            number = self.number()
            last = {"lastState": {"terminated": {"exitCode": 1, "containerID": ids[container["name"]]}}} if ids.get(container["name"]) else {}
            return {"name": container["name"], "image": container["image"], "restartCount": restarts, "ready": True,
                    "imageID": IMAGE_IDS[number % len(IMAGE_IDS)].format(name=container["name"]),
                    "containerID": f"{runtime_of(spec['nodeName'])}://{number:064x}", **last}
        number = self.number()
        return self.cluster.patch(f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}/status", {"status": {
            "podIP": earlier.get("podIP") or f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", "phase": "Running",
            "containerStatuses": [status(c) for c in spec["containers"]],
            "initContainerStatuses": [status(c) for c in spec.get("initContainers", [])]}})

    def delete_pod(self, pod):
        self.cluster.call("DELETE", f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}",
                          {"gracePeriodSeconds": 0})

    def add_node(self, name):
        return self.cluster.call("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": "z"}}})

    def populate(self, pods, workloads):
        """Creates pods of `workloads` workloads, and one static pod per node."""
        for name in NAMESPACES:
            self.cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": {"team": name}, "annotations": {"cost": "7"}}})
        for name in NODES:
            self.static_pod(self.add_node(name))

        def populate_one(i):
            namespace, kind, _ = workload_of(i)
            top = self.create(i)
            owner, hash_ = top, f"rev{i}"
            if kind == "Deployment":
                owner = self.replica_set(namespace, top, hash_, 1)
            elif kind == "CronJob":
                owner = self.job(namespace, top)
            for _ in range(i, pods - len(NODES), workloads):
                self.pod(namespace, owner, hash_)
            return top, owner
        return in_parallel(populate_one, range(workloads))
