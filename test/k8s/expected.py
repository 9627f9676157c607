"""Computes the expected entities from an API server's JSON objects, in a different way than the collector."""

import re

WORDS = {"Deployment": "deployment", "ReplicaSet": "replicaset", "StatefulSet": "statefulset", "DaemonSet": "daemonset", "Job": "job",
         "CronJob": "cronjob"}
# The kinds of objects from which entities are made.
WORKLOADS = {"deployments": "deployment", "replicasets": "replicaset", "statefulsets": "statefulset", "daemonsets": "daemonset", "jobs": "job",
             "cronjobs": "cronjob"}
PATHS = {"pods": "/api/v1/pods", "namespaces": "/api/v1/namespaces", "nodes": "/api/v1/nodes",
         **{plural: f"/apis/{'batch' if 'job' in plural else 'apps'}/v1/{plural}" for plural in WORKLOADS}}


# Annotations that do not become attributes. The second is a field of an old version, which an API server shows as an
# annotation if a client requests the whole object.
NO_ANNOTATIONS = {"kubectl.kubernetes.io/last-applied-configuration", "deprecated.daemonset.template.generation"}


def controller(meta):
    return next((o for o in meta.get("ownerReferences", []) if o.get("controller")), None)


def texts(prefix, meta):
    out = {f"{prefix}.label.{k}": v for k, v in meta.get("labels", {}).items()}
    annotations = {k: v for k, v in meta.get("annotations", {}).items() if k not in NO_ANNOTATIONS}
    out.update({f"{prefix}.annotation.{k}": v for k, v in annotations.items() if len(v) <= 1024 or k.startswith("resource.opentelemetry.io/")})
    return out


def pod_attributes(pod, parents):
    meta, spec, status = pod["metadata"], pod["spec"], pod.get("status", {})
    out = {"k8s.pod.name": meta["name"], "k8s.pod.uid": meta["uid"], "k8s.namespace.name": meta["namespace"],
           "k8s.node.name": spec.get("nodeName"), "k8s.pod.ip": status.get("podIP"), "k8s.pod.hostname": spec.get("hostname"),
           "k8s.pod.start_time": meta["creationTimestamp"], **texts("k8s.pod", meta)}
    owner = controller(meta)
    for each in (owner, parents.get(owner["uid"]) if owner else None):
        if each and each["kind"] in WORDS:
            out[f"k8s.{WORDS[each['kind']]}.name"], out[f"k8s.{WORDS[each['kind']]}.uid"] = each["name"], each["uid"]
    return {k: v for k, v in out.items() if v is not None}


def repo_digest(image_id):
    """Returns the digest with the full registry name, or None if the image is in no registry."""
    if "@" not in image_id:
        return None
    first, slash, _ = image_id.partition("/")
    if not slash:
        return f"docker.io/library/{image_id}"
    return image_id if re.search(r"[.:]", first) or first == "localhost" else f"docker.io/{image_id}"


def container_attributes(pod, status):
    images = {c["name"]: c["image"] for c in pod["spec"]["containers"] + pod["spec"].get("initContainers", [])}
    match = re.fullmatch(r"(?P<name>(?:[^/@]+/)*[^:/@]+)(?::(?P<tag>[^@]+))?(?:@(?P<digest>.+))?", images[status["name"]])
    image_id = status["imageID"].split("://")[-1]
    out = {"k8s.pod.uid": pod["metadata"]["uid"], "k8s.container.name": status["name"],
           "k8s.container.restart_count": str(status["restartCount"]), "container.image.name": match["name"],
           "container.image.tag": match["tag"] or "latest", "container.runtime.name": status["containerID"].split("://")[0],
           "container.image.version": "@".join(filter(None, (match["tag"], match["digest"]))) or None,
           "container.image.id": image_id, "container.image.repo_digests": repo_digest(image_id)}
    return {k: v for k, v in out.items() if v is not None}


def containers(pod):
    """Yields (id, status) of each container in a pod."""
    statuses = pod.get("status", {})
    for status in statuses.get("containerStatuses", []) + statuses.get("initContainerStatuses", []):
        if status.get("containerID"):
            yield status["containerID"].split("://")[1], status


def entities(objects, cluster_name=""):
    """Returns {(kind, id): attributes} of all objects. `objects`: {plural: [object]}."""
    parents = {o["metadata"]["uid"]: controller(o["metadata"]) for plural in ("replicasets", "jobs") for o in objects[plural]}
    out = {}
    for pod in objects["pods"]:
        out["pod", pod["metadata"]["uid"]] = pod_attributes(pod, parents)
        for container, status in containers(pod):
            out["container", container] = container_attributes(pod, status)
    for each in objects["namespaces"]:
        meta = each["metadata"]
        out["namespace", meta["name"]] = {"k8s.namespace.name": meta["name"], **texts("k8s.namespace", meta)}
        if meta["name"] == "kube-system":
            out["cluster", ""] = {"k8s.cluster.uid": meta["uid"], **({"k8s.cluster.name": cluster_name} if cluster_name else {})}
    for each in objects["nodes"]:
        meta = each["metadata"]
        out["k8s_node", meta["name"]] = {"k8s.node.name": meta["name"], "k8s.node.uid": meta["uid"], **texts("k8s.node", meta)}
    for plural, word in WORKLOADS.items():
        for meta in (each["metadata"] for each in objects[plural]):
            if attributes := texts(f"k8s.{word}", meta):
                out["workload", meta["uid"]] = attributes
    return out


def differences(expected, received):
    """Returns one line per difference between the expected entities and the received ones that are not gone."""
    alive = {key: e["attributes"] for key, e in received.items() if not e.get("gone") and key[0] != "rollout"}
    out = [f"missing {key}" for key in expected.keys() - alive.keys()] + [f"not there {key}" for key in alive.keys() - expected.keys()]
    for key in expected.keys() & alive.keys():
        for name in expected[key].keys() | alive[key].keys():
            if expected[key].get(name) != alive[key].get(name):
                out.append(f"{key} {name}: expected {expected[key].get(name)!r}, received {alive[key].get(name)!r}")
    return out
