"""A small cluster with unusual pods: unusual image names, owners, labels and annotations."""

import dataclasses

from node import cgroup_of, runtime_of

HEX = "0123456789abcdef" * 4
DIGEST = f"sha256:{HEX}"
SHA512 = "sha512:" + HEX * 2
OTEL = "resource.opentelemetry.io/"
NODES = ["worker-0", "worker-1", "worker-2"]
STATIC_HASH = "b1" * 16

IMAGES = [
    "nginx", "nginx:latest", "nginx:1.27", "library/nginx", "docker.io/library/nginx:1.27-alpine", "index.docker.io/nginx:1",
    "localhost/web", "localhost:5000/web", "localhost:5000/web:v1", "registry.example:5000/shop/web", "registry.example:5000/shop/web:1.2",
    "registry.example:5000/shop/web:1.2@" + DIGEST, "registry.example/shop/web@" + DIGEST, "nginx@" + DIGEST, "nginx:1@" + DIGEST,
    "web@" + SHA512, "10.0.0.1:5000/web:x", "[fd00::1]:5000/web:x", "[fd00::1]/web", "Registry.Example/web:1", "a/b/c/d__e-f.g:1", "a---b/c",
    "web:" + "t" * 128, "web:_x", "web:1.2.3-rc.1_build.5", "r.example/" + "n" * 255, "host:5000", "sha256:" + HEX, HEX,
    # These are not valid references: a kubelet does not start them, but an API server accepts them.
    "Nginx", "web:", "web:a b", "web@sha256:12", "web@" + DIGEST.upper(), "web@md5:" + "0" * 32, "a..b", "a___b", "-web", "web-", "/web", "a//b",
    "web:" + "t" * 129, "r.example/" + "n" * 256, "http://r.example/web:1", "r.example:port/web", "web@", "@" + DIGEST, "wéb",
]
IMAGE_IDS = [
    DIGEST, HEX, "nginx@" + DIGEST, "docker.io/library/nginx@" + DIGEST, "docker.io/nginx@" + DIGEST, "index.docker.io/nginx@" + DIGEST,
    "shop/web@" + DIGEST, "localhost/web@" + DIGEST, "localhost:5000/web@" + DIGEST, "registry.example:5000/shop/web@" + DIGEST,
    "registry.example/shop/web:1.2@" + DIGEST, "Registry/web@" + DIGEST, "Registry/Web@" + DIGEST, "web@" + SHA512, "nginx:1.27", "",
    "docker://" + DIGEST, "web@sha256:12", "nonsense with spaces",
]
# Image ids of runtimes before containerd and CRI-O. The processor does not understand them.
DOCKER_IMAGE_IDS = ["docker-pullable://nginx@" + DIGEST, "docker-pullable://registry.example:5000/shop/web@" + DIGEST]
# Labels and annotations of pods. Each set belongs to one pod of a Deployment.
IDENTITIES = [
    ({"app.kubernetes.io/name": "by-name"}, {}),
    ({"app.kubernetes.io/instance": "by-instance"}, {}),
    ({"app.kubernetes.io/name": "n", "app.kubernetes.io/instance": "i", "app.kubernetes.io/version": "4.5", "app.kubernetes.io/part-of": "shop"}, {}),
    ({"app.kubernetes.io/version": "4.5"}, {OTEL + "service.version": "9.9"}),
    ({"app.kubernetes.io/name": "n"}, {OTEL + "service.name": "annotated", OTEL + "service.namespace": "elsewhere"}),
    ({}, {OTEL + "service.instance.id": "i-1", OTEL + "deployment.environment.name": "live ü", OTEL + "any.thing": "x=y,z"}),
    ({}, {OTEL + "k8s.cluster.name": "nobody else says it", OTEL + "empty": "", "note": "two\nlines \"quoted\" ü"}),
    ({"app": "web", "tier": "front", "tier.of": "2", "first": "1", "not.chosen": "x"}, {"note": "", "not.chosen": "x"}),
    ({"first": "1", "second": "2"}, {}),
    ({"first": "1", "second": "2"}, {"third": "3"}),
    ({"pod-template-hash": "of-nobody"}, {}),
]
# The processor copies these unchanged, and the reducer does not (processor_test.py).
EMPTY_LABELS = {"empty": "", "app.kubernetes.io/name": "", "app.kubernetes.io/version": ""}
FORGED = {OTEL + "k8s.pod.name": "forged", OTEL + "k8s.namespace.name": "kube-system", OTEL + "container.image.name": "forged"}


@dataclasses.dataclass(frozen=True)
class Container:
    name: str  # pod and container name, for messages
    node: str
    id: str
    cgroup: str
    is_unknown_to_processor: bool = False


class OddPods:
    """`containers`: all containers that kubelets would run."""

    def __init__(self, cluster):
        self.cluster, self.containers, self.serial = cluster, [], 0

    def make(self, path, name, **more):
        """Creates an object of any kind. Returns its metadata."""
        metadata = {"name": name, **more.pop("metadata", {})}
        return self.cluster.call("POST", path, {"metadata": metadata, **more})["metadata"]

    def pod(self, name, image="web:1", image_id=DIGEST, owners=(), labels=None, annotations=None, namespace="shop", spec=None,
            ephemeral=None, **run):
        body = {"metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}, "ownerReferences": list(owners)},
                "spec": {"nodeName": NODES[self.serial % len(NODES)], "containers": [{"name": "main", "image": image}], **(spec or {})}}
        path = f"/api/v1/namespaces/{namespace}/pods"
        made = self.cluster.call("POST", path, body)
        if ephemeral:
            made = self.cluster.patch(f"{path}/{name}/ephemeralcontainers", {"spec": {"ephemeralContainers": ephemeral}})
        self.run(made, path, image_id, **run)

    def run(self, pod, path, image_id=DIGEST, restarts=0, is_unknown_to_processor=False, has_restarted=False):
        """Sets the status that a kubelet would report."""
        name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]

        def container_id(container, is_unknown):
            self.serial += 1
            made = f"{self.serial:064x}"
            self.containers.append(Container(f"{name}/{container['name']}", node, made, cgroup_of(node, pod, made), is_unknown))
            return f"{runtime_of(node)}://{made}"

        def status(container, is_unknown=is_unknown_to_processor):
            out = {"name": container["name"], "image": "as-the-runtime-calls-it:1", "imageID": image_id, "restartCount": restarts,
                   "containerID": container_id(container, is_unknown), "ready": True}
            if has_restarted:
                out["lastState"] = {"terminated": {"exitCode": 1, "containerID": container_id(container, True)}}
            return out
        self.cluster.patch(f"{path}/{name}/status", {"status": {
            "podIP": f"10.0.{self.serial >> 8}.{self.serial & 255}", "phase": "Running",
            "containerStatuses": [status(c) for c in pod["spec"]["containers"]],
            "initContainerStatuses": [status(c) for c in pod["spec"].get("initContainers", [])],
            "ephemeralContainerStatuses": [status(c, True) for c in pod["spec"].get("ephemeralContainers", [])]}})

    @staticmethod
    def owner(kind, metadata, controller=True):
        return {"apiVersion": "v1", "kind": kind, "name": metadata["name"], "uid": metadata["uid"], "controller": controller}

    def workload(self, kind, name, spec=None, owner=None, **metadata):
        group = "batch" if "Job" in kind else "apps"
        template = {"metadata": {"labels": {"of": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        if group == "batch":
            template["spec"]["restartPolicy"] = "Never"
        spec = spec or {"template": template, **({} if group == "batch" else {"selector": {"matchLabels": {"of": name}}})}
        if kind == "CronJob":
            spec = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": spec}}
        if kind == "StatefulSet":
            spec["serviceName"] = name
        if owner:
            metadata["ownerReferences"] = [owner]
        return self.owner(kind, self.make(f"/apis/{group}/v1/namespaces/shop/{kind.lower()}s", name, metadata=metadata, spec=spec))

    def populate(self):
        self.make("/api/v1/namespaces", "shop", metadata={"labels": {"team": "blue", "stage": "live"}, "annotations": {"cost": "7"}})
        self.make("/api/v1/namespaces", "plain")
        for i, node in enumerate(NODES):
            self.make("/api/v1/nodes", node, metadata={"labels": {"topology.kubernetes.io/zone": f"z{i}"}, "annotations": {"rack": f"r{i}"}})
        self.add_images()
        self.add_owned()
        for i, (labels, annotations) in enumerate(IDENTITIES):
            self.pod(f"identity-{i}", owners=[self.web], labels=labels, annotations=annotations)
        self.add_odd()

    def add_images(self):
        for i, image in enumerate(IMAGES):
            self.pod(f"image-{i}", image=image)
        for i, image_id in enumerate(IMAGE_IDS + DOCKER_IMAGE_IDS):
            self.pod(f"image-id-{i}", image_id=image_id, restarts=i % 3)

    def add_owned(self):
        deployment = self.workload("Deployment", "web", labels={"owner": "d", "team": "red"}, annotations={"change/id": "42", "change/by": "me"})
        self.web = self.workload("ReplicaSet", "web-5d4f", owner=deployment, labels={"owner": "r"})
        self.pod("web-5d4f-a", owners=[self.web], labels={"pod-template-hash": "5d4f", "app": "web"})
        # ReplicaSets without a Deployment: one without an owner, one with an owner of another project's kind, which has
        # a name as if it belonged to a Deployment.
        self.pod("alone-1", owners=[self.workload("ReplicaSet", "alone")])
        rollout = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "canary", "uid": "r-1", "controller": True}
        self.pod("canary-77-a", owners=[self.workload("ReplicaSet", "canary-77", owner=rollout)], labels={"pod-template-hash": "77"})
        self.pod("db-0", owners=[self.workload("StatefulSet", "db", labels={"owner": "s"})], spec={"hostname": "db-0"})
        self.pod("agent-x", owners=[self.workload("DaemonSet", "agent", labels={"owner": "ds"})], spec={"hostNetwork": True})
        self.pod("once-x", owners=[self.workload("Job", "once", labels={"owner": "j"})])
        nightly = self.workload("CronJob", "nightly", labels={"owner": "cj"})
        self.pod("nightly-1-x", owners=[self.workload("Job", "nightly-1", owner=nightly, labels={"owner": "j2"})])
        self.pod("like-29386666-x", owners=[self.workload("Job", "like-29386666")])  # belongs to no CronJob
        self.pod("gone-x", owners=[{**self.web, "name": "gone-8", "uid": "0000"}], labels={"pod-template-hash": "8"})
        self.pod("widget-x", owners=[{**self.web, "kind": "Widget", "name": "w", "uid": "w-1"}])

    def add_odd(self):
        self.pod("bare", namespace="plain")
        self.pod("several", spec={"initContainers": [{"name": "init", "image": "init@" + DIGEST}, {"name": "later", "image": "later"}],
                                  "containers": [{"name": "main", "image": "r.example/a:1"}, {"name": "side", "image": "proxy"}]})
        self.pod("static-worker-0", namespace="plain", owners=[self.owner("Node", {"name": "worker-0", "uid": "n-0"})],
                 annotations={"kubernetes.io/config.hash": STATIC_HASH, "kubernetes.io/config.mirror": STATIC_HASH,
                              "kubernetes.io/config.source": "file"}, spec={"nodeName": "worker-0", "hostNetwork": True})
        self.pod("empty-labels", labels=EMPTY_LABELS)
        self.pod("forger", annotations=FORGED)
        self.pod("restarted", restarts=1, has_restarted=True)
        self.pod("debugged", ephemeral=[{"name": "debugger", "image": "busybox:1"}])
        self.pod("jaeger-agent", is_unknown_to_processor=True)
        self.pod("uncontrolled", owners=[{**self.web, "controller": False}])
