"""Rules for the objects of a deployment. Each rule takes the documents and returns a line for each error."""

import functools
import pathlib
import re

from debian_yaml import yaml
from manifests import key_of, pod_of

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAMS = ("kernel-collector", "reducer", "k8s-collector")
# Variables of a container that are not options.
NO_OPTIONS = {"KUBERNETES_NODE_NAME"}
# The Secrets and their keys (docs/kubernetes.md).
SECRETS = {"tributary-tls": {"ca.crt", "tls.crt", "tls.key"}, "tributary-tokens": {"intake-token", "http-tokens"}}
ELSEWHERE = {"cert-manager"}  # a namespace that must exist


@functools.cache
def options_of(program):
    """Returns the flags and the variables of a program from docs/options.md, which a test compares with --help."""
    page = (SOURCE / "docs/options.md").read_text()
    rows = [row.split(" | ") for row in page.split(f"\n## {program}\n")[1].split("\n## ")[0].splitlines() if row.startswith("| `--")]
    flags = {flag for row in rows for flag in re.findall(r"--[a-z0-9-]+", row[0])}
    return flags, {name for row in rows for name in re.findall(r"`([A-Z][A-Z0-9_]+)`", row[-1])}


@functools.cache
def capabilities():
    """Returns the capabilities of the table in docs/deploy.md."""
    return set(re.findall(r"^\| CAP_([A-Z_]+) \|", (SOURCE / "docs/deploy.md").read_text(), re.M))


@functools.cache
def documented_rules():
    """Returns the rules of the role in docs/k8s-collector.md."""
    text = re.search(r"```yaml\n(.*?)```", (SOURCE / "docs/k8s-collector.md").read_text(), re.S)[1]
    return rules_of(next(yaml.safe_load_all(text)))


@functools.cache
def version():
    return re.search(r"^project\(tributary VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text(), re.M)[1]


def rules_of(role):
    """Returns the set of (API group, resource, verb) of a role."""
    return {(group, resource, verb) for rule in role["rules"] for group in rule["apiGroups"] for resource in rule["resources"]
            for verb in rule["verbs"]}


def program_of(container):
    name = container["image"].rsplit("/", 1)[-1].split(":")[0]
    return name if name in PROGRAMS else None


def pods(documents):
    """Yields (key, namespace, the pod's specification) of each workload."""
    for document in documents:
        if template := pod_of(document):
            yield key_of(document), document["metadata"]["namespace"], template["spec"]


def containers(documents):
    """Yields (key, pod, container, program) of each container of Tributary."""
    for key, _, pod in pods(documents):
        for container in pod["containers"]:
            if program := program_of(container):
                yield key, pod, container, program


def options(documents):
    for key, _, container, program in containers(documents):
        flags, variables = options_of(program)
        for argument in container.get("args", []):
            if argument.startswith("-") and argument.split("=")[0] not in flags:
                yield f"{key}: {program} has no option {argument}"
        earlier = set()
        for variable in container.get("env", []):
            if variable["name"] not in variables | NO_OPTIONS:
                yield f"{key}: {program} has no option {variable['name']}"
            for name in set(re.findall(r"\$\((\w+)\)", variable.get("value", ""))) - earlier:
                yield f"{key}: {variable['name']} uses {name}, which is not an earlier variable"
            earlier.add(variable["name"])


def privileges(documents):
    """kernel-collector has the documented capabilities. No other pod has a privilege or the host's namespaces."""
    for key, namespace, pod in pods(documents):
        is_node = key[2] == "kernel-collector"
        for container in pod["containers"] + pod.get("initContainers", []):
            context = container.get("securityContext", {})
            added = context.get("capabilities", {}).get("add", [])
            if context.get("privileged"):
                yield f"{key}: privileged"
            if context.get("capabilities", {}).get("drop") != ["ALL"] or context.get("readOnlyRootFilesystem") is not True:
                yield f"{key}: must drop all capabilities, and have a read-only root"
            wanted = capabilities() if is_node else set()
            if set(added) - {"SYS_ADMIN"} != wanted or ("SYS_ADMIN" in added and not is_node):
                yield f"{key}: capabilities {added}, docs/deploy.md has {sorted(wanted)}"
            # The API server refuses false together with SYS_ADMIN.
            if context.get("allowPrivilegeEscalation") is not False and "SYS_ADMIN" not in added:
                yield f"{key}: allowPrivilegeEscalation"
        if not is_node and any(pod.get(name) for name in ("hostPID", "hostIPC", "hostNetwork")):
            yield f"{key}: the host's namespaces"
        if not is_node and any("hostPath" in volume for volume in pod.get("volumes", [])):
            yield f"{key}: a path of the host"
        if pod.get("automountServiceAccountToken") is not (key[2] in ("k8s-collector", "gateway")):
            yield f"{key}: automountServiceAccountToken"


def pod_security(documents):
    """Each namespace has a level. kernel-collector's is privileged, all others are restricted."""
    levels = {d["metadata"]["name"]: d["metadata"].get("labels", {}).get("pod-security.kubernetes.io/enforce")
              for d in documents if d["kind"] == "Namespace"}
    for name, level in levels.items():
        if level not in ("privileged", "restricted"):
            yield f"namespace {name}: the level is {level}"
    for document in documents:
        namespace = document["metadata"].get("namespace")
        if namespace and namespace not in levels.keys() | ELSEWHERE:
            yield f"{key_of(document)}: no such namespace"
    for key, namespace, pod in pods(documents):
        if key[2] == "kernel-collector":
            if levels.get(namespace) == "restricted":
                yield f"{key}: needs the level privileged"
            continue
        context = pod.get("securityContext", {})
        if levels.get(namespace) != "restricted" or not context.get("runAsNonRoot") or context.get("seccompProfile") != {"type": "RuntimeDefault"}:
            yield f"{key}: is not restricted"


def rbac(documents):
    for document in documents:
        name = document["metadata"]["name"]
        if document["kind"] in ("Role", "ClusterRole"):
            if name == "tributary-k8s-collector" and rules_of(document) != documented_rules():
                yield f"{name}: differs from docs/k8s-collector.md: {sorted(rules_of(document) ^ documented_rules())}"
            for group, resource, verb in rules_of(document):
                if verb not in ("list", "watch") or "*" in (group, resource):
                    yield f"{name}: {verb} of {resource}"
        elif document["kind"] in ("RoleBinding", "ClusterRoleBinding") and len(document["subjects"]) != 1:
            yield f"{name}: one subject only"


def secrets(documents):
    for key, _, pod in pods(documents):
        for volume in pod.get("volumes", []):
            if secret := volume.get("secret"):
                keys = SECRETS.get(secret["secretName"])
                if keys is None or not {item["key"] for item in secret.get("items", [])} <= keys:
                    yield f"{key}: {secret['secretName']} has no such key"
                if not secret.get("optional") or secret.get("defaultMode") != 0o400:
                    yield f"{key}: {secret['secretName']} must be optional, with the mode 0400"
                is_reducer = key[2] == "reducer"
                if not is_reducer and {item["key"] for item in secret.get("items", [])} not in ({"ca.crt"}, {"intake-token"}):
                    yield f"{key}: gets more of {secret['secretName']} than it needs"


def keys_of(secret):
    """Returns the names of the files that a Secret's volume has."""
    return {item["path"] for item in secret["items"]} if "items" in secret else SECRETS.get(secret["secretName"], set())


def files(documents):
    """Files that variables name are in a mounted volume. A file of a Secret is one of its keys."""
    for key, pod, container, _ in containers(documents):
        volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
        mounts = {mount["mountPath"]: mount["name"] for mount in container.get("volumeMounts", [])}
        yield from (f"{key}: no volume {name}" for name in mounts.values() if name not in volumes and name != "data")
        for variable in container.get("env", []):
            value = variable.get("value", "")
            if not value.startswith("/"):
                continue
            folder = next((mount for mount in mounts if value == mount or value.startswith(mount + "/")), None)
            secret = volumes.get(mounts.get(folder), {}).get("secret")
            if folder is None:
                yield f"{key}: nothing is mounted at {value}"
            elif secret and value[len(folder) + 1:] not in keys_of(secret):
                yield f"{key}: {secret['secretName']} has no file {value}"


def ports(documents):
    """Ports of probes, Services and NetworkPolicies exist."""
    of_name = {}
    for key, _, pod in pods(documents):
        for container in pod["containers"]:
            found = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
            of_name[key[2]] = found
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                action = container.get(probe, {})
                port = (action.get("httpGet") or action.get("tcpSocket") or {}).get("port")
                if port not in found and (probe != "startupProbe" or action):
                    yield f"{key}: {probe} has the port {port}"
    for document in documents:
        spec = document.get("spec", {})
        if document["kind"] == "Service":
            app = spec["selector"]["app.kubernetes.io/name"]
            yield from (f"{key_of(document)}: no port {p['targetPort']}" for p in spec["ports"] if p["targetPort"] not in of_name.get(app, {}))
        elif document["kind"] == "NetworkPolicy":
            app = spec["podSelector"]["matchLabels"]["app.kubernetes.io/name"]
            yield from (f"{key_of(document)}: {app} has no port {p['port']}" for rule in spec.get("ingress", []) for p in rule.get("ports", [])
                        if p["port"] not in of_name.get(app, {}).values())


def reducers(documents):
    """Both collectors name every reducer's pod, by the name that the headless Service gives it."""
    sets = [d for d in documents if d["kind"] == "StatefulSet" and d["metadata"]["name"] == "reducer"]
    for key, _, container, program in containers(documents):
        value = {v["name"]: v.get("value") for v in container.get("env", [])}.get("EBPF_NET_INTAKE_HOST")
        for each in sets if program != "reducer" else []:
            wanted = [f"reducer-{i}.{each['spec']['serviceName']}.{each['metadata']['namespace']}.svc" for i in range(each["spec"]["replicas"])]
            if value is None or value.split(",") != wanted:
                yield f"{key}: sends to {value}"


def upgrades(documents):
    """A rolling upgrade loses nothing: the old pod has time to send, and has ended when the new one opens the spool."""
    page = (SOURCE / "docs/options.md").read_text()
    timeout = int(re.search(r"`--shutdown-timeout DURATION` \|.*?\| `(\d+)s` \|", page)[1])
    for document in documents:
        key, template = key_of(document), pod_of(document)
        if template and template["spec"].get("terminationGracePeriodSeconds", 30) <= 2 * timeout:
            yield f"{key}: terminationGracePeriodSeconds"
        if document["kind"] == "DaemonSet":
            update = document["spec"]["updateStrategy"].get("rollingUpdate", {})
            if update.get("maxSurge") != 0 or not update.get("maxUnavailable"):
                yield f"{key}: {update}"
            if not template["spec"].get("priorityClassName") or {"operator": "Exists"} not in template["spec"]["tolerations"]:
                yield f"{key}: does not run on every node"


def resources(documents):
    for key, _, pod in pods(documents):
        for container in pod["containers"]:
            wanted = container.get("resources", {})
            if set(wanted.get("requests", {})) != {"cpu", "memory"} or set(wanted.get("limits", {})) != {"memory"}:
                yield f"{key}: requests of CPU and memory, a limit of memory"
            if container.get("terminationMessagePolicy") != "FallbackToLogsOnError":
                yield f"{key}: the pod's status would not have the last line of the log"


@functools.cache
def reducer_memory():
    """Returns the rows of the table of a reducer's memory in docs/kubernetes.md, and its last row, their sum, in MiB."""
    table = (SOURCE / "docs/kubernetes.md").read_text().split("| a reducer's memory for | at most, MiB |\n")[1].split("\n\n")[0]
    values = [int(value.replace(",", "")) for value in re.findall(r"\| \**([0-9,]+)\** \|$", table, re.M)]
    return values[:-1], values[-1]


def memory(documents):
    """The reducer's limit is not below the sum of what its options allow (docs/kubernetes.md)."""
    parts, total = reducer_memory()
    if sum(parts) != total:
        yield f"docs/kubernetes.md: {sum(parts)} is not {total}"
    for key, _, container, program in containers(documents):
        limit = container["resources"]["limits"]["memory"]
        if program == "reducer" and (not limit.endswith("Gi") or int(limit[:-2]) * 1024 < total):
            yield f"{key}: the limit {limit} is below {total} MiB"


def images(documents):
    for key, _, container, program in containers(documents):
        if container["image"] != f"registry.invalid/tributary/{program}:{version()}":
            yield f"{key}: the image {container['image']} is not of version {version()}"


def budgets(documents):
    """Workloads with replicas have a PodDisruptionBudget that does not block drains. All but Pyroscope."""
    found = {d["metadata"]["name"]: d["spec"].get("maxUnavailable") for d in documents if d["kind"] == "PodDisruptionBudget"}
    yield from (f"{key}: no PodDisruptionBudget" for key, _, _ in pods(documents)
                if key[0] != "DaemonSet" and key[2] != "pyroscope" and found.get(key[2]) != 1)


RULES = (options, privileges, pod_security, rbac, secrets, files, ports, reducers, upgrades, resources, memory, images, budgets)


def errors(documents):
    return [f"{rule.__name__}: {error}" for rule in RULES for error in rule(documents)]
