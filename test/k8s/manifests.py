"""The deployments of deploy/kubernetes and deploy/helm, and how they are rendered.

tools/build.sh builds kustomize, which renders the overlays, and helm, which renders the chart.
"""

import copy
import functools
import json
import pathlib
import re
import subprocess

from debian_yaml import yaml

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
KUBERNETES = SOURCE / "deploy/kubernetes"
CHART = SOURCE / "deploy/helm/tributary"
NAMESPACE = "tributary"  # of the release in tests

# Overlay → the chart's files of values that must give the same objects.
SAME = {
    "simple": ["values-simple.yaml"],
    "reducer": [],
    "reducer-cert-manager": ["values-tls.yaml"],
    "gateway": ["values-gateway.yaml"],
    "pyroscope": ["values-pyroscope.yaml"],
}
# Component → the chart's settings that must have the same effect on overlays/reducer.
SAME_COMPONENT = {
    "three-reducers": ["reducer.replicas=3"],
    "sys-admin": ["kernelCollector.sysAdmin=true"],
}
# Settings of the chart that no overlay has.
OTHER_SETTINGS = {
    "no TLS": ["tls.enabled=false"],
    "host network": ["kernelCollector.hostNetwork=true"],
    "an issuer of yours": ["tls.certManager.enabled=true", "tls.certManager.createIssuer=false", "tls.certManager.issuerRef.name=ours"],
    "nodes send to the gateway": ["reducer.enabled=false", "gateway.enabled=true"],
    "nodes on the host's network send to the gateway": ["reducer.enabled=false", "gateway.enabled=true", "kernelCollector.hostNetwork=true"],
    "options": ["kernelCollector.options.sample_rate=97", "reducer.options.retention=14d", "k8sCollector.clusterName=prod",
                "reducer.export={otlps://a.example:4317,otlp+http://b.example}", "image.tag=0.2.0", "image.pullSecrets={registry}",
                "reducer.storage.storageClassName=fast", "nodeNamespace.create=false"],
}


def load(text):
    return [document for document in yaml.safe_load_all(text) if document]


class Tools:
    """The programs that tools/build.sh builds: kustomize only, or all."""

    def __init__(self, programs="all"):
        built = subprocess.run([HERE / "tools/build.sh", programs], check=True, stdout=subprocess.PIPE, text=True).stdout
        self.folder = pathlib.Path(built.split()[-1])
        self.definitions = sorted((self.folder / "crds").glob("*.yaml"))  # cert-manager's

    def run(self, *command, is_refused=False):
        """Returns the standard output. If `is_refused`, the program must fail, and its error is returned."""
        result = subprocess.run([self.folder / command[0], *command[1:]], capture_output=True, text=True, check=False)
        assert (result.returncode != 0) == is_refused, f"{command}: {result.returncode}\n{result.stdout}{result.stderr}"
        return result.stderr if is_refused else result.stdout

    def overlay(self, name):
        return self.run("kustomize", "build", KUBERNETES / "overlays" / name)

    def component(self, name, folder):
        """Renders overlays/reducer with a component. `folder` is an empty folder in which the kustomization is written."""
        above = "../" * (len(folder.resolve().parts) - 1)
        (folder / "kustomization.yaml").write_text(
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
            f"resources: [{above}{str(KUBERNETES)[1:]}/overlays/reducer]\ncomponents: [{above}{str(KUBERNETES)[1:]}/components/{name}]\n")
        return self.run("kustomize", "build", folder)

    def chart(self, values=(), settings=(), json_settings=None):
        files = [argument for name in values for argument in ("--values", CHART / name)]
        sets = [argument for setting in settings for argument in ("--set", setting)]
        for name, value in (json_settings or {}).items():
            sets += ["--set-json", f"{name}={json.dumps(value)}"]
        return self.run("helm", "template", NAMESPACE, CHART, "--namespace", NAMESPACE, "--kube-version", "1.34.0", *files, *sets)


@functools.cache
def rendered():
    """Returns {overlay: documents}. It needs only kustomize. The callers must not change the documents."""
    kustomize = Tools("kustomize")
    return {name: load(kustomize.overlay(name)) for name in SAME}


def key_of(document):
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), re.sub(r"^gateway-[a-z0-9]{10}$", "gateway", metadata["name"])


def pod_of(document):
    """Returns the pod's metadata and specification in a workload, or None."""
    template = document.get("spec", {}).get("template")
    return template if document["kind"] in ("DaemonSet", "StatefulSet", "Deployment", "Job") else None


def comparable(documents):
    """Returns {key: document} without the differences that every chart has from every overlay."""
    result = {}
    for document in copy.deepcopy(documents):
        labels = document["metadata"].get("labels", {})
        for name in ("helm.sh/chart", "app.kubernetes.io/managed-by"):
            labels.pop(name, None)
        key = key_of(document)
        document["metadata"]["name"] = key[2]
        if key == ("Namespace", "", NAMESPACE):
            continue  # helm makes the release's namespace
        if key[0] == "ConfigMap":
            document["data"] = {name: yaml.safe_load(text) for name, text in document["data"].items()}
        if pod := pod_of(document):
            pod["metadata"].get("annotations", {}).pop("checksum/config", None)
            if not pod["metadata"].get("annotations"):
                pod["metadata"].pop("annotations", None)
            _sort_lists(pod["spec"])
        result[key] = document
    return result


def _sort_lists(spec):
    spec.get("volumes", []).sort(key=lambda volume: volume["name"])
    for volume in spec.get("volumes", []):
        if "configMap" in volume:
            volume["configMap"]["name"] = re.sub(r"-[a-z0-9]{10}$", "", volume["configMap"]["name"])
    for container in spec["containers"]:
        container.get("env", []).sort(key=lambda variable: variable["name"])
        container.get("volumeMounts", []).sort(key=lambda mount: mount["name"])


def differences(ours, theirs):
    """Returns a line for each object that differs, and each path in it."""
    ours, theirs = comparable(ours), comparable(theirs)
    lines = [f"{key}: only on one side" for key in ours.keys() ^ theirs.keys()]
    for key in ours.keys() & theirs.keys():
        lines += [f"{key}: {line}" for line in _differences_of(ours[key], theirs[key], "")]
    return sorted(lines)


def _differences_of(a, b, path):
    if isinstance(a, dict) and isinstance(b, dict):
        return [line for name in sorted(a.keys() | b.keys(), key=str) for line in _differences_of(a.get(name), b.get(name), f"{path}.{name}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [line for i, pair in enumerate(zip(a, b)) for line in _differences_of(*pair, f"{path}[{i}]")]
    return [] if a == b else [f"{path}: {a!r} and {b!r}"]
