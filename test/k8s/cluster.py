"""A real kube-apiserver with etcd on loopback (build.sh), without kubelets and controllers.

Tests create the objects that kubelets and controllers would create.
"""

import concurrent.futures
import http.client
import json
import os
import pathlib
import socket
import ssl
import subprocess
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ADMIN, AGENT = "admintok", "agenttok"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Cluster:
    """A context manager that starts and stops the cluster. All its files are below `directory`."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.binaries = pathlib.Path(subprocess.run([HERE / "build.sh"], check=True, capture_output=True, text=True).stdout.split()[-1])
        self.port, self.etcd_port, self.etcd_peer = free_port(), free_port(), free_port()
        self.local = threading.local()
        self.warnings = []  # of all answers
        self.api = self.etcd = None

    def __enter__(self):
        self._make_certificates()
        etcd = f"http://127.0.0.1:{self.etcd_port}"
        peer = f"http://127.0.0.1:{self.etcd_peer}"
        self.etcd = self._spawn("etcd", "--data-dir", self.directory / "etcd", "--listen-client-urls", etcd, "--advertise-client-urls", etcd,
                                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
                                "--unsafe-no-fsync")
        self.start_api()
        return self

    def __exit__(self, *_):
        for process in (self.api, self.etcd):
            if process is not None:
                process.kill()
                process.wait()

    def _spawn(self, name, *arguments):
        with open(self.directory / f"{name}.log", "ab") as log:
            return subprocess.Popen([self.binaries / name, *arguments], cwd=self.directory, stdout=log, stderr=log)

    def _make_certificates(self):
        def openssl(*arguments):
            subprocess.run(["openssl", *arguments], cwd=self.directory, check=True, capture_output=True)
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test-ca", "-keyout", "ca.key", "-out", "ca.crt")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=kube-apiserver", "-keyout", "api.key", "-out", "api.csr")
        (self.directory / "san").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost")
        openssl("x509", "-req", "-in", "api.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "san",
                "-out", "api.crt")
        openssl("genrsa", "-out", "sa.key", "2048")
        openssl("rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub")
        (self.directory / "tokens.csv").write_text(f'{ADMIN},admin,1,system:masters\n{AGENT},profiler-agent,2,""\n')

    def start_api(self):
        self.api = self._spawn(
            "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self.etcd_port}", "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}", "--tls-cert-file=api.crt", "--tls-private-key-file=api.key", "--client-ca-file=ca.crt",
            "--token-auth-file=tokens.csv", "--authorization-mode=RBAC", "--service-account-issuer=https://kubernetes.default.svc",
            "--service-account-key-file=sa.pub", "--service-account-signing-key-file=sa.key", "--service-cluster-ip-range=10.0.0.0/24",
            "--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none", "--cert-dir=certs",
            "--etcd-compaction-interval=0")
        wait_for(lambda: self._is_ready(), 60, "the API server")

    def stop_api(self):
        self.api.kill()
        self.api.wait()

    def _is_ready(self):
        try:
            return self.request("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def compact(self):
        """Makes etcd forget all history: an API server that starts later knows only the current state."""
        connection = http.client.HTTPConnection("127.0.0.1", self.etcd_port, timeout=10)
        connection.request("POST", "/v3/kv/range", json.dumps({"key": "YQ=="}))
        revision = json.loads(connection.getresponse().read())["header"]["revision"]
        connection.request("POST", "/v3/kv/compaction", json.dumps({"revision": revision}))
        assert connection.getresponse().status == 200

    def request(self, method, path, body=None, content_type="application/json"):
        for attempt in (0, 1):
            connection = getattr(self.local, "connection", None)
            if connection is None:
                context = ssl.create_default_context(cafile=self.directory / "ca.crt")
                connection = self.local.connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=30)
            data = body if body is None or isinstance(body, str) else json.dumps(body)
            try:
                connection.request(method, path, data, {"Authorization": f"Bearer {ADMIN}", "Content-Type": content_type})
                answer = connection.getresponse()
                self.warnings += answer.headers.get_all("Warning") or []
                return answer.status, answer.read()
            except (OSError, http.client.HTTPException):
                connection.close()
                self.local.connection = None
                if attempt == 1:
                    raise OSError("no API server") from None

    def call(self, method, path, body=None, content_type="application/json"):
        status, answer = self.request(method, path, body, content_type)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {answer[:500]}")
        return json.loads(answer)

    def patch(self, path, body):
        return self.call("PATCH", path, body, "application/strategic-merge-patch+json")

    def items(self, path):
        return self.call("GET", path)["items"]

    def apply_yaml(self, text):
        """Creates RBAC objects from a text with `---` between them."""
        for document in text.split("\n---\n"):
            kind = [line.split()[1] for line in document.splitlines() if line.startswith("kind:")]
            if kind:
                path = {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings"}.get(kind[0])
                if path:
                    self.call("POST", f"/apis/rbac.authorization.k8s.io/v1/{path}", document, "application/yaml")

    def kubeconfig(self, token_file):
        path = self.directory / "kubeconfig"
        path.write_text(
            f"apiVersion: v1\nkind: Config\ncurrent-context: test\n"
            f"clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{self.port}', certificate-authority: ca.crt}}}}]\n"
            f"users: [{{name: u, user: {{tokenFile: {token_file}}}}}]\ncontexts: [{{name: test, context: {{cluster: c, user: u}}}}]\n")
        return path


def in_parallel(work, things):
    """Calls `work` for each, eight at a time."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return list(pool.map(work, things))


def wait_for(condition, seconds, description):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {description}")
