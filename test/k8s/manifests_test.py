"""Tests that a real kube-apiserver accepts every overlay of deploy/kubernetes and every kind of values of the chart.

Each object is sent as a server-side dry run, and checked by kubeconform with schemas made from the API server's OpenAPI.
cert-manager's definitions come from its Go module. Planted errors must be refused by both.
"""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import manifest_rules
import manifests
from cluster import ADMIN, Cluster, wait_for
from debian_yaml import yaml
from openapi_schemas import write_schemas

APPLY = "application/apply-patch+yaml"
DRY_RUN = "?fieldManager=test&force=true&dryRun=All&fieldValidation=Strict"


class Api:
    """Finds the path of an object, and sends it."""

    def __init__(self, cluster):
        self.cluster, self.resources = cluster, {}

    def path(self, document):
        version, kind = document["apiVersion"], document["kind"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if version not in self.resources:
            found = self.cluster.call("GET", root)["resources"]
            self.resources[version] = {r["kind"]: r for r in found if "/" not in r["name"]}
        resource = self.resources[version][kind]
        namespace = document["metadata"].get("namespace")
        assert bool(namespace) == resource["namespaced"], f"{kind} {document['metadata']['name']}: namespace {namespace}"
        return f"{root}/namespaces/{namespace}/{resource['name']}" if namespace else f"{root}/{resource['name']}"

    def dry_run(self, document):
        """Returns the status and the answer."""
        path = f"{self.path(document)}/{document['metadata']['name']}{DRY_RUN}"
        status, answer = self.cluster.request("PATCH", path, json.dumps(document), APPLY)
        return status, answer.decode()

    def create(self, document):
        path = f"{self.path(document)}/{document['metadata']['name']}?fieldManager=test&force=true&fieldValidation=Strict"
        return self.cluster.call("PATCH", path, json.dumps(document), APPLY)

    def create_pod(self, namespace, template):
        """Sends the pod of a workload as a dry run, as the workload's controller would. Admission refuses it there if the
        namespace's Pod Security level forbids it."""
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod", "namespace": namespace}, "spec": copy.deepcopy(template["spec"])}
        status, answer = self.cluster.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All&fieldValidation=Strict", pod)
        return status, answer.decode()


class ManifestsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="tributary-k8s-")))
        cls.tools = manifests.Tools()
        cls.cluster = cls.enterClassContext(Cluster(cls.directory))
        cls.api = Api(cls.cluster)
        for path in cls.tools.definitions:
            for document in manifests.load(path.read_text()):
                cls.api.create(document)
        wait_for(cls.has_definitions, 60, "cert-manager's kinds")
        cls.renderings = cls.render_all()
        # What a dry run does not keep, but later objects need.
        cls.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "cert-manager"}})
        for documents in cls.renderings.values():
            for document in documents:
                if document["kind"] in ("Namespace", "PriorityClass"):
                    cls.api.create(document)
        cls.schemas = cls.directory / "schemas"
        cls.schemas.mkdir()
        cls.schema_count = write_schemas(cls.openapi(), cls.schemas)
        cls.cluster.warnings.clear()

    @classmethod
    def openapi(cls):
        return cls.cluster.call("GET", "/openapi/v2")

    @classmethod
    def has_definitions(cls):
        status, answer = cls.cluster.request("GET", "/apis/cert-manager.io/v1")
        is_served = status == 200 and {"Certificate", "ClusterIssuer"} <= {r["kind"] for r in json.loads(answer)["resources"]}
        return is_served and "io.cert-manager.v1.Certificate" in cls.openapi()["definitions"]

    @classmethod
    def render_all(cls):
        """Returns {name: documents} of all overlays, components and values."""
        texts = {f"overlay {name}": cls.tools.overlay(name) for name in manifests.SAME}
        texts |= {f"chart {name}": cls.tools.chart(values) for name, values in manifests.SAME.items()}
        for name, settings in manifests.SAME_COMPONENT.items():
            folder = cls.directory / name
            folder.mkdir()
            texts[f"component {name}"] = cls.tools.component(name, folder)
            texts[f"chart {name}"] = cls.tools.chart(settings=settings)
        texts |= {f"chart with {name}": cls.tools.chart(settings=settings) for name, settings in manifests.OTHER_SETTINGS.items()}
        return {name: manifests.load(text) for name, text in texts.items()}

    def kubeconform(self, documents):
        """Returns {name of the object: error}."""
        file = self.directory / "documents.yaml"
        file.write_text(yaml.safe_dump_all(documents))
        location = str(self.schemas) + "/{{.ResourceKind}}{{.KindSuffix}}.json"
        command = [self.tools.folder / "kubeconform", "-strict", "-output", "json", "-verbose", "-schema-location", location, file]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        found = json.loads(result.stdout)["resources"]
        self.assertEqual(len(found), len(documents), result.stderr)
        return {(r["kind"], r["name"]): r["msg"] for r in found if r["status"] != "statusValid"}

    def test_chart_and_overlays_have_the_same_objects(self):
        for name in manifests.SAME:
            self.assertEqual(manifests.differences(self.renderings[f"overlay {name}"], self.renderings[f"chart {name}"]), [], name)
        for name in manifests.SAME_COMPONENT:
            self.assertEqual(manifests.differences(self.renderings[f"component {name}"], self.renderings[f"chart {name}"]), [], name)
        changed = manifests.differences(self.renderings["overlay reducer"], self.renderings["chart three-reducers"])
        self.assertTrue(any("replicas" in line for line in changed), changed)

    def test_rules_for_all_values(self):
        for name, documents in self.renderings.items():
            errors = manifest_rules.errors(documents) if name.startswith(("overlay", "component")) else self.errors_of_chart(documents)
            if name == "chart with options":
                errors = [e for e in errors if not e.startswith(("images:", "pod_security:"))]
            self.assertEqual(errors, [], name)

    def errors_of_chart(self, documents):
        """helm makes the release's namespace, so the chart does not have it."""
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        return manifest_rules.errors([{"kind": "Namespace", "metadata": {"name": manifests.NAMESPACE, "labels": labels}}, *documents])

    def test_options_of_the_user_outrank_those_of_the_chart(self):
        settings = {"kernelCollector": {"options": {"metrics_listen": "off", "cpu_budget": 0.5}},
                    "reducer": {"options": {"intake_node_work_per_second": 3000000, "symbol_digests": "off", "shards": 2, "intake_token_file": ""}}}
        settings["kernelCollector"]["options"] |= {"spool_dir": "", "names": False, "unwind_memory": 0, "resource_attribute": "team=a"}
        text = self.tools.chart(json_settings=settings)
        found = {}
        for _, _, container, program in manifest_rules.containers(manifests.load(text)):
            names = [v["name"] for v in container["env"]]
            self.assertEqual(len(names), len(set(names)), names)
            found |= {(program, v["name"]): v.get("value") for v in container["env"]}
        self.assertEqual(found["kernel-collector", "EBPF_NET_METRICS_LISTEN"], "off")
        self.assertEqual(found["kernel-collector", "EBPF_NET_CPU_BUDGET"], "0.5")
        self.assertEqual(found["reducer", "EBPF_NET_INTAKE_NODE_WORK_PER_SECOND"], "3000000")
        self.assertEqual(found["reducer", "EBPF_NET_SHARDS"], "2")
        # Empty values, too.
        self.assertEqual(found["reducer", "EBPF_NET_INTAKE_TOKEN_FILE"], "")
        self.assertEqual(found["kernel-collector", "EBPF_NET_SPOOL_DIR"], "")
        self.assertEqual(found["kernel-collector", "EBPF_NET_NAMES"], "false")
        self.assertEqual(found["kernel-collector", "EBPF_NET_UNWIND_MEMORY"], "0")
        self.assertEqual(found["kernel-collector", "EBPF_NET_RESOURCE_ATTRIBUTE"], "k8s.node.name=$(KUBERNETES_NODE_NAME),team=a")

    def test_chart_refuses_an_option_that_replaces_its_receivers(self):
        command = ["helm", "template", "tributary", manifests.CHART, "--kube-version", "1.34.0", "--set", "reducer.options.export=otlp://a:1"]
        self.tools.run(*command)
        for setting in ("gateway.enabled=true", "pyroscope.enabled=true", "reducer.export={otlp://b:1}"):
            self.assertIn("use reducer.export instead", self.tools.run(*command, "--set", setting, is_refused=True))

    def test_nodes_without_a_reducer_reach_the_gateway_and_have_a_spool(self):
        for name, peers in {"nodes send to the gateway": {"podSelector", "namespaceSelector"},
                            "nodes on the host's network send to the gateway": {"podSelector", "ipBlock"}}.items():
            documents = self.renderings[f"chart with {name}"]
            policy = next(d for d in documents if (d["kind"], d["metadata"]["name"]) == ("NetworkPolicy", "gateway"))
            self.assertEqual({kind for peer in policy["spec"]["ingress"][0]["from"] for kind in peer}, peers)
            container = next(c for _, _, c, program in manifest_rules.containers(documents) if program == "kernel-collector")
            self.assertIn({"name": "EBPF_NET_SPOOL_DIR", "value": "/var/lib/tributary-kernel-collector"}, container["env"])
            self.assertIn({"name": "spool", "mountPath": "/var/lib/tributary-kernel-collector"}, container["volumeMounts"])

    def test_server_side_dry_run(self):
        count = 0
        for name, documents in self.renderings.items():
            for document in documents:
                status, answer = self.api.dry_run(document)
                self.assertIn(status, (200, 201), f"{name} {manifests.key_of(document)}: {answer}")
                count += 1
        print(f"accepted {count} objects of {len(self.renderings)} renderings", file=sys.stderr)
        self.assertGreater(count, 200)
        # Warnings: of deprecated fields, and of pods that their namespace's Pod Security level forbids.
        self.assertEqual(self.cluster.warnings, [])

    def test_pods_fit_the_level_of_their_namespace(self):
        for name, documents in self.renderings.items():
            for document in documents:
                if template := manifests.pod_of(document):
                    status, answer = self.api.create_pod(document["metadata"]["namespace"], template)
                    # Only a StatefulSet's controller adds the volumes of its claims.
                    if document["kind"] == "StatefulSet" and status == 422:
                        self.assertIn('volumeMounts[0].name: Not found: \\"data\\"', answer)
                        continue
                    self.assertEqual(status, 201, f"{name} {manifests.key_of(document)}: {answer}")
        nodes = next(d for d in self.renderings["overlay simple"] if d["kind"] == "DaemonSet")
        status, answer = self.api.create_pod("tributary", nodes["spec"]["template"])
        self.assertEqual(status, 403)
        self.assertIn("violates PodSecurity", answer)

    def test_kubeconform(self):
        print(f"{self.schema_count} schemas", file=sys.stderr)
        for name, documents in self.renderings.items():
            self.assertEqual(self.kubeconform(documents), {}, name)

    def test_planted_errors_are_refused(self):
        """In each rendering, a planted unknown field and a planted wrong type in each object are refused by both."""
        count = 0
        for name, documents in self.renderings.items():
            for plant in (self.unknown_field, self.wrong_type):
                wrong = [copy.deepcopy(document) for document in documents]
                for document in wrong:
                    plant(document)
                    status, answer = self.api.dry_run(document)
                    self.assertIn(status, (400, 422, 500), f"{name} {manifests.key_of(document)} {plant.__name__}: {answer}")
                    count += 1
                self.assertEqual(self.kubeconform(wrong).keys(), {(d["kind"], d["metadata"]["name"]) for d in documents}, f"{name} {plant.__name__}")
        print(f"refused {count} objects", file=sys.stderr)

    @staticmethod
    def unknown_field(document):
        if template := manifests.pod_of(document):
            template["spec"]["containers"][0]["imagePullPolice"] = "Always"
        elif "spec" in document:
            document["spec"]["podSelektor"] = {}
        else:
            document["metadatas"] = {}

    @staticmethod
    def wrong_type(document):
        if template := manifests.pod_of(document):
            template["spec"]["containers"][0]["env"] = "A=b"
        else:
            document["metadata"]["labels"] = ["a"]

    def test_helm_installs_upgrades_and_uninstalls(self):
        token = self.directory / "admin-token"
        token.write_text(ADMIN)
        helm = ["helm", "--kubeconfig", self.cluster.kubeconfig(token), "--namespace", "helm"]
        own = ["--set", "nodeNamespace.name=helm-nodes", "--set", "kernelCollector.priorityClass.name=helm-node"]
        notes = self.tools.run(*helm, "install", "first", manifests.CHART, "--create-namespace", *own)
        self.assertIn("kubectl port-forward -n helm service/reducer 4040", notes)
        self.assertIn("tributary-tls", notes)
        values = ["--values", manifests.CHART / "values-gateway.yaml", "--values", manifests.CHART / "values-tls.yaml"]
        self.tools.run(*helm, "upgrade", "first", manifests.CHART, *own, *values, "--set", "reducer.replicas=3,kernelCollector.sysAdmin=true")
        nodes = self.cluster.call("GET", "/apis/apps/v1/namespaces/helm-nodes/daemonsets/kernel-collector")
        hosts = {v["name"]: v.get("value") for v in nodes["spec"]["template"]["spec"]["containers"][0]["env"]}["EBPF_NET_INTAKE_HOST"]
        self.assertEqual(hosts, ",".join(f"reducer-{i}.reducer-headless.helm.svc" for i in range(3)))
        self.tools.run(*helm, "uninstall", "first")
        self.assertEqual(self.cluster.request("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/tributary-k8s-collector")[0], 404)

    def test_chart_refuses_wrong_values(self):
        for setting, word in {"reducer.replica=3": "replica", "reducer.replicas=9": "replicas", "reducer.replicas=two": "replicas",
                              "kernelCollector.options.sample-rate=97": "sample-rate", "tls.enabled=maybe": "enabled",
                              "image.pullPolicy=Sometimes": "pullPolicy", "reducer.storage.size=many": "size"}.items():
            error = self.tools.run("helm", "template", "tributary", manifests.CHART, "--kube-version", "1.34.0", "--set", setting, is_refused=True)
            self.assertIn(word, error)
        self.assertIn("1.29", self.tools.run("helm", "template", "tributary", manifests.CHART, "--kube-version", "1.29.0", is_refused=True))
        self.assertIn("0 chart(s) failed", self.tools.run("helm", "lint", "--strict", manifests.CHART, "--kube-version", "1.34.0"))


if __name__ == "__main__":
    unittest.main(warnings="ignore")
