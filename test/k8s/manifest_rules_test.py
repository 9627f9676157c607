"""Tests the overlays of deploy/kubernetes without a cluster: rules, options, and that the rules find planted errors.

dev/test --k8s also tests the chart, and sends all objects to a real kube-apiserver (manifests_test.py).
"""

import copy
import json
import os
import pathlib
import subprocess
import unittest

import manifest_rules
import manifests
from debian_yaml import yaml

BIN = pathlib.Path(os.environ["TRIBUTARY_BIN"])


def container_of(documents, name):
    return next(container for key, _, pod in manifest_rules.pods(documents) if key[2] == name for container in pod["containers"])


def pod_of(documents, name):
    return next(pod for key, _, pod in manifest_rules.pods(documents) if key[2] == name)


def find(documents, kind, name):
    return next(d for d in documents if (d["kind"], d["metadata"]["name"]) == (kind, name))


def variable(documents, pod, name):
    return next(v for v in container_of(documents, pod)["env"] if v["name"] == name)


# The rule that must report, and a change of overlays/gateway that it must find.
PLANTED = [
    ("options", lambda d: container_of(d, "reducer")["env"].append({"name": "EBPF_NET_RETENTIONS", "value": "7d"})),
    ("options", lambda d: container_of(d, "k8s-collector").update(args=["--cluster", "x"])),
    ("options", lambda d: container_of(d, "kernel-collector")["env"].sort(key=lambda v: v["name"])),
    ("privileges", lambda d: container_of(d, "kernel-collector")["securityContext"].update(privileged=True)),
    ("privileges", lambda d: container_of(d, "kernel-collector")["securityContext"]["capabilities"]["add"].append("NET_ADMIN")),
    ("privileges", lambda d: container_of(d, "kernel-collector")["securityContext"]["capabilities"]["add"].remove("SYSLOG")),
    ("privileges", lambda d: container_of(d, "reducer")["securityContext"]["capabilities"].update(add=["SYS_ADMIN"])),
    ("privileges", lambda d: pod_of(d, "reducer").update(hostNetwork=True)),
    ("privileges", lambda d: pod_of(d, "k8s-collector")["volumes"].append({"name": "x", "hostPath": {"path": "/etc"}})),
    ("privileges", lambda d: pod_of(d, "kernel-collector").update(automountServiceAccountToken=True)),
    ("pod_security", lambda d: find(d, "Namespace", "tributary")["metadata"]["labels"].pop("pod-security.kubernetes.io/enforce")),
    ("pod_security", lambda d: find(d, "DaemonSet", "kernel-collector")["metadata"].update(namespace="tributary")),
    ("pod_security", lambda d: find(d, "Service", "reducer")["metadata"].update(namespace="tributory")),
    ("pod_security", lambda d: pod_of(d, "gateway")["securityContext"].pop("runAsNonRoot")),
    ("rbac", lambda d: find(d, "ClusterRole", "tributary-k8s-collector")["rules"][0]["verbs"].remove("watch")),
    ("rbac", lambda d: find(d, "ClusterRole", "tributary-k8s-collector")["rules"][0]["resources"].append("secrets")),
    ("rbac", lambda d: find(d, "ClusterRole", "tributary-gateway")["rules"][0]["verbs"].append("delete")),
    ("secrets", lambda d: pod_of(d, "reducer")["volumes"][0]["secret"].update(secretName="reducer-tls")),
    ("secrets", lambda d: pod_of(d, "reducer")["volumes"][0]["secret"].pop("optional")),
    ("secrets", lambda d: next(v for v in pod_of(d, "kernel-collector")["volumes"] if v["name"] == "tls")["secret"].pop("items")),
    ("files", lambda d: variable(d, "reducer", "EBPF_NET_TLS_KEY").update(value="/etc/tributary/tls/key.pem")),
    ("files", lambda d: variable(d, "kernel-collector", "EBPF_NET_SPOOL_DIR").update(value="/var/spool/tributary")),
    ("ports", lambda d: container_of(d, "reducer")["readinessProbe"]["httpGet"].update(port="page")),
    ("ports", lambda d: find(d, "Service", "reducer")["spec"]["ports"][0].update(targetPort="page")),
    ("ports", lambda d: find(d, "NetworkPolicy", "reducer")["spec"]["ingress"][0]["ports"][0].update(port=8001)),
    ("reducers", lambda d: find(d, "StatefulSet", "reducer")["spec"].update(replicas=2)),
    ("reducers", lambda d: variable(d, "k8s-collector", "EBPF_NET_INTAKE_HOST").update(value="reducer.tributary.svc")),
    ("upgrades", lambda d: pod_of(d, "kernel-collector").update(terminationGracePeriodSeconds=4)),
    ("upgrades", lambda d: find(d, "DaemonSet", "kernel-collector")["spec"]["updateStrategy"]["rollingUpdate"].update(maxSurge=1)),
    ("upgrades", lambda d: pod_of(d, "kernel-collector").update(tolerations=[])),
    ("resources", lambda d: container_of(d, "reducer")["resources"].pop("requests")),
    ("memory", lambda d: container_of(d, "reducer")["resources"].update(limits={"memory": "8Gi"})),
    ("images", lambda d: container_of(d, "reducer").update(image="registry.invalid/tributary/reducer:latest")),
    ("budgets", lambda d: find(d, "PodDisruptionBudget", "reducer")["spec"].update(maxUnavailable=0)),
]


class ManifestRules(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rendered = manifests.rendered()

    def test_every_source_is_yaml(self):
        for path in [*manifests.KUBERNETES.rglob("*.yaml"), *manifests.CHART.glob("*.yaml")]:
            self.assertTrue(manifests.load(path.read_text()), path)

    def test_rules(self):
        for name, documents in self.rendered.items():
            self.assertGreater(len(documents), 4, name)
            self.assertEqual(manifest_rules.errors(documents), [], name)

    def test_planted_errors_are_found(self):
        self.assertEqual({rule for rule, _ in PLANTED}, {rule.__name__ for rule in manifest_rules.RULES})
        for number, (rule, change) in enumerate(PLANTED):
            with self.subTest(number=number, rule=rule):
                documents = copy.deepcopy(self.rendered["gateway"])
                change(documents)
                reported = manifest_rules.errors(documents)
                self.assertTrue(any(error.startswith(f"{rule}:") for error in reported), reported)

    def test_programs_accept_the_options(self):
        """Each program reads the container's variables and arguments, and shows their values."""
        count = 0
        for name, documents in self.rendered.items():
            for key, _, container, program in manifest_rules.containers(documents):
                values = {v["name"]: v.get("value", "node-1").replace("$(KUBERNETES_NODE_NAME)", "node-1") for v in container["env"]}
                result = subprocess.run([BIN / program, *container.get("args", []), "--print-config"], env=values, capture_output=True,
                                        text=True, check=False)
                self.assertEqual(result.returncode, 0, f"{name} {key}: {result.stderr}")
                for variable_name, value in values.items():
                    if variable_name.startswith("EBPF_NET_"):
                        self.assertRegex(result.stdout, rf"{variable_name[9:].lower()}: .*\b", name)
                        self.assertIn(value.split("=")[-1], result.stdout)
                        count += 1
        self.assertGreater(count, 40)

    def test_simple_prints_stacks_and_has_no_credentials(self):
        documents = self.rendered["simple"]
        self.assertEqual({d["kind"] for d in documents}, {"Namespace", "ServiceAccount", "PriorityClass", "DaemonSet", "NetworkPolicy"})
        pod = pod_of(documents, "kernel-collector")
        self.assertEqual(pod["containers"][0]["args"], ["--intake-encoder", "console"])
        self.assertIs(pod["automountServiceAccountToken"], False)
        self.assertEqual({next(iter(set(volume) - {"name"})) for volume in pod["volumes"]}, {"hostPath"})

    def test_certificates_have_the_names_that_are_used(self):
        certificates = [d for d in self.rendered["reducer-cert-manager"] if d["kind"] == "Certificate"]
        self.assertEqual({(d["metadata"]["namespace"], d["spec"]["secretName"]) for d in certificates},
                         {("cert-manager", "tributary-ca"), ("tributary", "tributary-tls"), ("tributary-nodes", "tributary-tls")})
        names = next(d["spec"]["dnsNames"] for d in certificates if d["metadata"]["namespace"] == "tributary")
        hosts = variable(self.rendered["reducer"], "kernel-collector", "EBPF_NET_INTAKE_HOST")["value"].split(",")
        self.assertEqual({"*." + host.split(".", 1)[1] for host in hosts} - set(names), set())

    def test_chart(self):
        """The chart has the project's version. Its files of values fit its schema, which knows every value."""
        chart = yaml.safe_load((manifests.CHART / "Chart.yaml").read_text())
        self.assertEqual({chart["version"], chart["appVersion"]}, {manifest_rules.version()})
        schema = json.loads((manifests.CHART / "values.schema.json").read_text())
        defaults = yaml.safe_load((manifests.CHART / "values.yaml").read_text())
        self.assertEqual(self.keys(defaults), self.keys_of_schema(schema, schema, defaults))
        for file in manifests.CHART.glob("values-*.yaml"):
            self.assertLessEqual(self.keys(yaml.safe_load(file.read_text())), self.keys(defaults), file)

    def keys(self, value, path=()):
        """Returns the paths of all keys in maps."""
        return {each for name, below in value.items() for each in {(*path, name)} | self.keys(below, (*path, name))} if isinstance(value, dict) else set()

    def keys_of_schema(self, schema, root, value, path=()):
        """Returns the paths of the schema's properties, and of free keys that the value has."""
        if "$ref" in schema:
            schema = root["definitions"][schema["$ref"].rsplit("/", 1)[1]]
        if schema.get("type") != "object":
            return set()
        if "properties" not in schema:
            return self.keys(value, path)
        result = set()
        for name, below in schema["properties"].items():
            if name != "global":
                result |= {(*path, name)} | self.keys_of_schema(below, root, (value or {}).get(name, {}), (*path, name))
        return result


if __name__ == "__main__":
    unittest.main()
