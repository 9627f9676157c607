"""Tests containers, their node, and their cluster's API.

Samples have pod, workload, namespace, node, cluster and service, whether samples or metadata arrive first. A rollout is
a separate event. All data are kept when the pods, k8s-collector and the reducer have ended.
"""

import json
import subprocess
import time
import uuid

import containers_test
import fake_kubernetes
import lib

NODE = "node-a"


class KubernetesCollector(lib.Program):
    def __init__(self, directory, api, reducer, *args):
        super().__init__("k8s-collector", [lib.BIN / "k8s-collector", "--api-server", api.url, "--cluster-name", "prod", "--intake-port",
                                           reducer.intake_port, *args], directory)


def put_pod(api, name, pod, container, image, owner, labels=None, annotations=None):
    """Puts a running pod, as a kubelet would report it."""
    api.put("Pod", name, pod, "shop", labels, annotations, owner,
            spec={"nodeName": NODE, "containers": [{"name": "main", "image": image}]},
            status={"podIP": "10.0.0.7", "startTime": fake_kubernetes.rfc3339(time.time()),
                    "containerStatuses": [{"name": "main", "image": image, "imageID": f"docker-pullable://{image.rsplit(':', 1)[0]}@sha256:{'ab' * 32}",
                                           "containerID": f"docker://{container}", "restartCount": 0}]})


class Shop:
    """A deployment and a stateful set with one pod each, for containers that run."""

    def __init__(self, api, containers):
        self.api = api
        self.cluster_uid = str(uuid.uuid4())
        self.deployment, self.stateful_set = ("Deployment", "web", str(uuid.uuid4())), ("StatefulSet", "db", str(uuid.uuid4()))
        api.put("Namespace", "kube-system", self.cluster_uid)
        api.put("Namespace", "shop", str(uuid.uuid4()), labels={"team": "checkout"})
        api.put("Node", NODE, str(uuid.uuid4()))
        for kind, name, uid in (self.deployment, self.stateful_set):
            api.put(kind, name, uid, "shop")
        self.put_web(containers["one"], "web-1a", "1a", "registry.example:5000/shop/web:1.0")
        container, pod = containers["two"]
        put_pod(api, "db-0", pod, container, "db:7", self.stateful_set, labels={"controller-revision-hash": "r1"},
                annotations={"resource.opentelemetry.io/service.name": "ledger", "resource.opentelemetry.io/deployment.environment.name": "live"})

    def put_web(self, container, replica_set, template_hash, image):
        owner = ("ReplicaSet", replica_set, f"rs-{template_hash}")
        self.api.put("ReplicaSet", replica_set, owner[2], "shop", labels={"pod-template-hash": template_hash}, owner=self.deployment)
        put_pod(self.api, f"{replica_set}-x", container[1], container[0], image, owner, labels={"pod-template-hash": template_hash})


def work(docker, containers, name):
    """Runs processes of 30 ms, with and without exec."""
    docker("exec", containers[name][0], f"/{name}", "short", 10, 30, f"/{name}_short")
    docker("exec", containers[name][0], f"/{name}", "fork", 20, 30)


def check_shares(reducer, start, end, name, labels):
    """Checks that every sample of the program `name` has each of these labels."""
    everywhere = containers_test.count(reducer, start, end, process_executable_name=name)
    lib.check(everywhere > 100, f"{everywhere} samples of {name}")
    for label, value in labels.items():
        here = containers_test.count(reducer, start, end, process_executable_name=name, **{label: value})
        lib.check(here == everywhere, f"{name}: {here} of {everywhere} samples have {label}={value}")
    print(f"  {name}: {everywhere} samples, {len(labels)} labels each")


def wait_until_known(reducer, start, **labels):
    lib.wait_for(f"samples of {labels}", lambda: containers_test.count(reducer, start, lib.now_ms() + 1000, **labels), 20)


def rollouts(reducer, *args):
    text = subprocess.run([lib.BIN / "tributary", "rollouts", "--server", reducer.url, "--from", "-10m", "--json", *args], check=True,
                          capture_output=True, text=True).stdout
    return json.loads(text)["rollouts"]


WEB = {"k8s_pod_name": "web-1a-x", "k8s_namespace_name": "shop", "k8s_deployment_name": "web", "k8s_replicaset_name": "web-1a",
       "k8s_node_name": NODE, "k8s_container_name": "main", "k8s_cluster_name": "prod", "container_image_name": "registry.example:5000/shop/web",
       "container_image_tag": "1.0", "service_name": "web", "service_namespace": "shop", "service_version": "1.0", "k8s_pod_ip": "10.0.0.7",
       "service_instance_id": "shop.web-1a-x.main", "k8s_namespace_label_team": "checkout"}
DB = {"k8s_pod_name": "db-0", "k8s_statefulset_name": "db", "service_name": "ledger", "deployment_environment_name": "live", "k8s_cluster_name": "prod"}


def a_cluster():
    with lib.directory() as d, containers_test.docker_daemon(d) as docker, fake_kubernetes.FakeKubernetes() as api, lib.programs() as programs:
        image = containers_test.make_image(docker, d)
        options = ["--k8s-label", "namespace:team"]
        reducer = lib.Reducer(d, args=[*options, "--export", "console?layout=collector"])
        programs.append(reducer)
        start = lib.now_ms()
        collector = lib.Collector(d, reducer.intake_port, args=["--batch-interval", "1s", "--docker-socket", ""])
        programs.append(collector)
        lib.wait_for("the node", lambda: reducer.status()["nodes"], 20)
        containers = {name: docker.run(image, {}, "/sleep", 1000) for name in containers_test.NAMES}
        for name in ("one", "two"):
            work(docker, containers, name)

        # The samples exist before the metadata arrive.
        shop = Shop(api, containers)
        watcher = KubernetesCollector(d, api, reducer)
        programs.append(watcher)
        lib.wait_for("all of the cluster", lambda: "objects were read" in watcher.text(), 20)
        wait_until_known(reducer, start, k8s_pod_name="web-1a-x", k8s_cluster_uid=shop.cluster_uid)
        end = lib.now_ms() + 1000
        check_shares(reducer, start, end, "one", WEB | {"k8s_cluster_uid": shop.cluster_uid, "k8s_pod_uid": containers["one"][1]})
        check_shares(reducer, start, end, "two_short", DB)

        # Roll out another version. Its pod is known before its processes run. Then the old pod is removed.
        shop.put_web(containers["three"], "web-2b", "2b", "registry.example:5000/shop/web:2.0")
        lib.wait_for("the rollout", lambda: rollouts(reducer), 20)
        work(docker, containers, "three")
        api.remove("Pod", containers["one"][1])
        # The API's times are whole seconds: wait until all later samples are counted.
        lib.wait_for("what the new version ran", lambda: rollouts(reducer)[0]["after"]["count"] > 500, 20)
        check_rollout(reducer)

        # The metadata are kept when the programs that sent or received them have ended.
        lib.check(watcher.stop() == 0, "k8s-collector's exit code")
        lib.check(collector.stop() == 0, "the collector's exit code")
        lib.check_law(reducer.status())
        lib.check(reducer.stop() == 0, "the reducer's exit code")
        check_export(reducer.text())
        reducer = lib.Reducer(d, args=options, data=reducer.data, name="second")
        programs.append(reducer)
        end = lib.now_ms() + 1000
        check_shares(reducer, start, end, "one", WEB)
        check_shares(reducer, start, end, "two_short", DB)
        check_shares(reducer, start, end, "three", WEB | {"k8s_pod_name": "web-2b-x", "k8s_replicaset_name": "web-2b", "container_image_tag": "2.0",
                                                          "service_version": "2.0", "service_instance_id": "shop.web-2b-x.main"})
        check_rollout(reducer)
        lib.check(reducer.stop() == 0, "the reducer's exit code")


def check_rollout(reducer):
    found = rollouts(reducer)
    lib.check(len(found) == 1, f"rollouts: {found}")
    rollout = found[0]
    actual = {key: rollout[key] for key in ("kind", "namespace", "name", "hash", "images")}
    lib.check(actual == {"kind": "deployment", "namespace": "shop", "name": "web", "hash": "2b", "images": "registry.example:5000/shop/web:2.0"}, f"{actual}")
    lib.check(rollout["previous"]["images"] == "registry.example:5000/shop/web:1.0", f"{rollout}")
    lib.check(rollout["before"]["count"] > 100 and rollout["after"]["count"] > 100, f"CPU time on both sides: {rollout}")
    lib.check(len(rollouts(reducer, "--query", '{service_name="web"}')) == 1 and not rollouts(reducer, "--query", '{service_name="ledger"}'),
              "rollouts of a service are its own")


def check_export(text):
    """Checks that samples that waited for their pod were exported with its attributes."""
    for mark in ("k8s.pod.name: web-2b-x (Str)", "k8s.deployment.name: web (Str)", "service.version: 2.0 (Str)", "k8s.cluster.name: prod (Str)"):
        lib.check(mark in text, f"'{mark}' was not exported")


if __name__ == "__main__":
    lib.main(a_cluster)
