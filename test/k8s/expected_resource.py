"""Computes the expected resource of a container's samples from the API's objects.

It implements OpenTelemetry's rules in a different way than the reducer.
"""

import expected

CLUSTER_NAME = "prod"
# Options of the reducer. chosen() implements the same choice.
NAME_RULES = ["--k8s-label", "tier", "--k8s-label", "namespace:team=team", "--k8s-label", "pod:app.kubernetes.io/(.*)=k8s.label.$1",
              "--k8s-label", "node:topology.kubernetes.io/.*", "--k8s-annotation", "note", "--k8s-annotation", "namespace:cost=cost.centre",
              "--k8s-label", "deployment:app", "--k8s-label", "statefulset:.*", "--k8s-label", "cronjob:app=cron",
              "--k8s-annotation", "replicaset:deployment.kubernetes.io/revision=revision"]
WHERE = ("k8s.", "container.", "host.", "cloud.", "os.")
OTEL = "resource.opentelemetry.io/"


def chosen(pod, namespace, node, owners):
    """Returns the attributes that NAME_RULES choose. `owners`: {"deployment": metadata, …}"""
    labels, annotations = pod["metadata"].get("labels", {}), pod["metadata"].get("annotations", {})
    out = {f"k8s.label.{k.removeprefix('app.kubernetes.io/')}": v for k, v in labels.items() if k.startswith("app.kubernetes.io/")}
    out["k8s.pod.label.tier"] = labels.get("tier")
    out["k8s.pod.annotation.note"] = annotations.get("note")
    out["team"] = namespace.get("labels", {}).get("team")
    out["cost.centre"] = namespace.get("annotations", {}).get("cost")
    out["k8s.deployment.label.app"] = owners.get("deployment", {}).get("labels", {}).get("app")
    out["revision"] = owners.get("replicaset", {}).get("annotations", {}).get("deployment.kubernetes.io/revision")
    out["cron"] = owners.get("cronjob", {}).get("labels", {}).get("app")
    out.update({f"k8s.statefulset.label.{k}": v for k, v in owners.get("statefulset", {}).get("labels", {}).items()})
    out.update({f"k8s.node.label.{k}": v for k, v in node.get("labels", {}).items() if k.startswith("topology.kubernetes.io/")})
    return out


def service_version(pod, container):
    label = pod["metadata"].get("labels", {}).get("app.kubernetes.io/version")
    return label or container.get("container.image.version")


def service(pod, owned, container):
    """Returns the default service attributes of a pod. `owned`: the pod's attributes, including its owners."""
    labels = pod["metadata"].get("labels", {})
    names = [labels.get("app.kubernetes.io/instance"), labels.get("app.kubernetes.io/name")]
    names += [owned.get(f"k8s.{kind}.name") for kind in ("deployment", "replicaset", "statefulset", "daemonset", "cronjob", "job", "pod")]
    namespace = pod["metadata"]["namespace"]
    return {"service.name": next(name for name in names if name), "service.namespace": namespace,
            "service.version": service_version(pod, container),
            "service.instance.id": f"{namespace}.{pod['metadata']['name']}.{container['k8s.container.name']}"}


def as_exported(attributes):
    """Returns the attributes with the types that the conventions and OTLP use."""
    out = {k: v for k, v in attributes.items() if v is not None and k != "container.image.version"}
    out["k8s.container.restart_count"] = int(out["k8s.container.restart_count"])
    out["container.image.tags"] = [out["container.image.tag"]]
    if "container.image.repo_digests" in out:
        out["container.image.repo_digests"] = [out["container.image.repo_digests"]]
    return out


class Resources:
    """The resources of one state of the cluster. `objects`: {plural: [object]}."""

    def __init__(self, objects):
        self.entities = expected.entities(objects, cluster_name=CLUSTER_NAME)
        self.pods = objects["pods"]
        self.namespaces = {o["metadata"]["name"]: o["metadata"] for o in objects["namespaces"]}
        self.workloads = {o["metadata"]["uid"]: o["metadata"] for plural in expected.WORKLOADS for o in objects[plural]}
        self.nodes = {o["metadata"]["name"]: o["metadata"] for o in objects["nodes"]}

    def of(self, pod, container_id, own):
        """Returns the resource of a container's process. `own`: the process's own attributes."""
        meta = pod["metadata"]
        node_name = pod["spec"]["nodeName"]
        plain = {k: v for k, v in self.entities["pod", meta["uid"]].items() if ".label." not in k and ".annotation." not in k}
        container = self.entities["container", container_id]
        node = self.nodes.get(node_name, {})
        uids = {word: plain.get(f"k8s.{word}.uid") for word in expected.WORKLOADS.values()}
        owners = {word: self.workloads[uid] for word, uid in uids.items() if uid in self.workloads}
        picked = chosen(pod, self.namespaces[meta["namespace"]], node, owners)
        # Later attributes override earlier ones.
        out = service(pod, plain, container)
        out.update({k: v for k, v in picked.items() if not k.startswith(WHERE)})
        out.update({k.removeprefix(OTEL): v for k, v in meta.get("annotations", {}).items() if k.startswith(OTEL)})
        out.update(own)
        out.update({k: v for k, v in picked.items() if k.startswith(WHERE)})
        out.update({**self.entities["cluster", ""], **plain, **container})
        out.update({"container.id": container_id, "host.id": node_name, "host.name": node_name, "k8s.node.uid": node.get("uid")})
        return as_exported(out)
