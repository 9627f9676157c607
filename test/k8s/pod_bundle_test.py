"""Tests pod_bundle.py: a container gets exactly what the manifest says, and a pod that cannot be run by hand is refused."""

import copy
import pathlib
import tempfile
import unittest

from pod_bundle import DEFAULT_CAPABILITIES, Bundle, PodError

IMAGE = {"Entrypoint": ["/usr/bin/kernel-collector"], "Env": ["PATH=/usr/bin"], "User": "65532:65532"}


def manifest(path, **container):
    """Returns the documents of a DaemonSet whose container has the given fields, too."""
    pod = {
        "hostPID": True, "automountServiceAccountToken": False,
        "containers": [{
            "name": "c", "image": "i", "args": ["--node-id", "$(NODE)", "$$(NODE)", "$(NONE)"],
            "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, {"name": "RATE", "value": "19"},
                    {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "mode"}}},
                    {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "none", "key": "token", "optional": True}}},
                    {"name": "PLACE", "value": "node=$(NODE),$(LATER)"}],
            "securityContext": {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False, "runAsUser": 0,
                                "capabilities": {"drop": ["ALL"], "add": ["BPF", "PERFMON"]}},
            "resources": {"limits": {"memory": "512Mi"}},
            "volumeMounts": [{"name": "deep", "mountPath": "/a/b", "readOnly": True}, {"name": "host", "mountPath": "/a"},
                             {"name": "files", "mountPath": "/files", "readOnly": True}],
            **container}],
        "volumes": [{"name": "host", "hostPath": {"path": str(path)}}, {"name": "deep", "emptyDir": {}},
                    {"name": "files", "secret": {"secretName": "tokens", "items": [{"key": "one", "path": "renamed"}], "defaultMode": 0o400}}],
    }
    return [{"kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"mode": "fast"}},
            {"kind": "Secret", "metadata": {"name": "tokens"}, "data": {"one": "MQ==", "two": "Mg=="}},
            {"kind": "DaemonSet", "metadata": {"name": "ds", "namespace": "n"}, "spec": {"template": {"spec": pod}}}]


class PodBundle(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.documents = manifest(self.folder)

    def config(self):
        return Bundle(self.documents, IMAGE, self.folder).config("/root")

    def pod(self):
        return self.documents[-1]["spec"]["template"]["spec"]

    def refused(self, words):
        with self.assertRaisesRegex(PodError, words):
            self.config()

    def test_the_process_is_that_of_the_manifest(self):
        process = self.config()["process"]
        self.assertEqual(process["args"], ["/usr/bin/kernel-collector", "--node-id", "ds-abcde", "$(NODE)", "$(NONE)"])
        self.assertEqual(process["env"], ["PATH=/usr/bin", "NODE=ds-abcde", "RATE=19", "MODE=fast", "PLACE=node=ds-abcde,$(LATER)"])
        self.assertEqual(process["user"], {"uid": 0, "gid": 65532})
        self.assertTrue(process["noNewPrivileges"])
        self.assertEqual(process["capabilities"], {kind: ["CAP_BPF", "CAP_PERFMON"] for kind in ("bounding", "effective", "permitted")})

    def test_defaults_are_those_of_containerd(self):
        self.pod()["containers"][0]["securityContext"] = {"capabilities": {"drop": ["KILL"]}}
        config = self.config()
        self.assertEqual(config["process"]["capabilities"]["bounding"], sorted(f"CAP_{name}" for name in set(DEFAULT_CAPABILITIES) - {"KILL"}))
        self.assertEqual(config["process"]["user"], {"uid": 65532, "gid": 65532})
        self.assertFalse(config["root"]["readonly"] or config["process"]["noNewPrivileges"])

    def test_only_shared_namespaces_are_missing(self):
        self.assertEqual([each["type"] for each in self.config()["linux"]["namespaces"]], ["mount", "uts", "ipc", "network"])
        self.pod().update(hostPID=False, hostNetwork=True)
        self.assertEqual([each["type"] for each in self.config()["linux"]["namespaces"]], ["mount", "uts", "ipc", "pid"])

    def test_mounts_and_limits(self):
        config = self.config()
        mounts = {mount["destination"]: (mount["source"], mount["options"][-1]) for mount in config["mounts"] if mount["type"] == "bind"}
        self.assertEqual(list(mounts), ["/a", "/a/b", "/files"])
        self.assertEqual((mounts["/a"], mounts["/a/b"][1]), ((str(self.folder), "rw"), "ro"))
        (secret,) = pathlib.Path(mounts["/files"][0]).iterdir()
        self.assertEqual((secret.name, secret.read_text(), secret.stat().st_mode & 0o777), ("renamed", "1", 0o400))
        self.assertEqual(config["linux"]["resources"]["memory"], {"limit": 512 << 20})
        self.assertTrue(config["root"]["readonly"])

    def test_pods_that_cannot_be_run_are_refused(self):
        good = copy.deepcopy(self.documents)
        container = {"privileged": lambda c: c["securityContext"].update(privileged=True),
                     "no volume gone": lambda c: c["volumeMounts"].append({"name": "gone", "mountPath": "/x"}),
                     "no ConfigMap other": lambda c: c["env"][2]["valueFrom"]["configMapKeyRef"].update(name="other"),
                     "status.hostIP exists only in a cluster": lambda c: c["env"][0]["valueFrom"]["fieldRef"].update(fieldPath="status.hostIP"),
                     "memory limit 1e9": lambda c: c["resources"]["limits"].update(memory="1e9"),
                     "memory limit 1ki": lambda c: c["resources"]["limits"].update(memory="1ki"),
                     "the user is root": lambda c: c["securityContext"].update(runAsNonRoot=True)}
        pod = {"service account": lambda p: p.pop("automountServiceAccountToken"),
               "more than one container": lambda p: p["containers"].append({}),
               "no Directory": lambda p: p["volumes"][0]["hostPath"].update(path="/no/such/folder", type="Directory"),
               "exists only in a cluster": lambda p: p["volumes"].__setitem__(0, {"name": "host", "persistentVolumeClaim": {}})}
        for words, change in container.items():
            with self.subTest(words):
                self.documents = copy.deepcopy(good)
                change(self.pod()["containers"][0])
                self.refused(words)
        for words, change in pod.items():
            with self.subTest(words):
                self.documents = copy.deepcopy(good)
                change(self.pod())
                self.refused(words)
        self.documents = good[:-1]
        self.refused("0 DaemonSets")


if __name__ == "__main__":
    unittest.main()
