"""Tests k8s-collector outside its cluster, with kubeconfigs as people have them.

A stand-in for an exec plug-in, proxies, and an API server whose certificate has another name. Bad ones give one clear
error each, and a plug-in that works again is used.
"""

import base64
import contextlib
import json
import os
import pathlib
import re
import signal
import ssl
import subprocess
import urllib.error
import urllib.request

import fake_kubernetes
import kubernetes_proxies
import lib

NAME = "api.internal"  # in the API server's certificate
SECRETS = ("t0ken", "pr0xy-pass")  # parts of what no log may contain
EXEC = "client.authentication.k8s.io/v1"


class SecureKubernetes(fake_kubernetes.FakeKubernetes):
    """An API server with TLS, which accepts one token and the certificates of its authority."""

    def __init__(self, directory):
        super().__init__()
        self.token = "t0ken-1"
        self.connections = set()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "api.pem", directory / "api.key")
        context.load_verify_locations(directory / "ca.pem")
        context.verify_mode = ssl.CERT_OPTIONAL
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.server.handle_error = lambda *_: None  # clients that refuse the certificate
        self.port = self.server.server_port

    def accepts(self, handler):
        if handler.headers.get("Authorization") == f"Bearer {self.token}" or handler.connection.getpeercert():
            self.connections.add(handler.connection)
            return True
        handler.send_response(401)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return False

    def list(self, handler, kind):
        return super().list(handler, kind) if self.accepts(handler) else None

    def watch(self, handler, kind, query):
        return super().watch(handler, kind, query) if self.accepts(handler) else None

    def change_token(self, token):
        """Accepts only this token, and ends all connections."""
        self.token = token
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(2)
        self.connections = set()


def openssl(directory, *commands):
    for command in commands:
        subprocess.run(["openssl", *command.split()], cwd=directory, check=True, capture_output=True)


def make_certificates(d):
    new_key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    openssl(d, f"req -x509 {new_key} -days 2 -subj /CN=ca -keyout ca.key -out ca.pem")
    for name, alternative in (("api", f"DNS:{NAME}"), ("user", "DNS:user"), ("proxy", "IP:127.0.0.1")):
        (d / f"{name}.ext").write_text(f"subjectAltName={alternative}\n")
        openssl(d, f"req {new_key} -subj /CN={name} -keyout {name}.key -out {name}.csr",
                f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile {name}.ext -out {name}.pem")


def write_plugin(path, body):
    """Writes the stand-in: a shell script that counts its runs in the file next to it."""
    path.parent.mkdir(exist_ok=True)
    path.with_suffix(".new").write_text(f"#!/bin/sh\necho run >> {path}.runs\n{body}\n")
    path.with_suffix(".new").chmod(0o755)
    path.with_suffix(".new").rename(path)


def runs(plugin):
    return len(pathlib.Path(f"{plugin}.runs").read_text().splitlines())


def credential(status, version=EXEC):
    answer = json.dumps({"kind": "ExecCredential", "apiVersion": version, "status": status})
    return f"cat <<'END'\n{answer}\nEND"


class Watcher(lib.Program):
    """A k8s-collector that prints the entities of its kubeconfig's cluster, or has other options."""

    def __init__(self, directory, name, cluster, user, kubeconfig=None, args=("--print-entities",)):
        path = directory / f"{name}.config"
        path.write_text(json.dumps({"current-context": name, "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
                                    "clusters": [{"name": name, "cluster": cluster}], "users": [{"name": name, "user": user}]}))
        super().__init__(name, [lib.BIN / "k8s-collector", *args], directory,
                         env={**os.environ, "KUBECONFIG": kubeconfig or str(path)})

    def sees(self, pod):
        return f'"{pod}"' in self.text()

    def warnings(self):
        return [line for line in self.text().splitlines() if "cannot " in line]


def exec_user(command, **more):
    return {"exec": {"apiVersion": EXEC, "command": str(command), "interactiveMode": "IfAvailable", **more}}


def check_end(programs):
    for program in programs:
        lib.check(program.stop() == 0, f"{program.name}'s exit code")
        for secret in SECRETS:
            lib.check(secret not in program.text(), f"the log of {program.name} contains a secret")


def readiness(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()


def put_pod(api, name):
    api.put("Pod", name, f"uid-{name}", "shop", spec={"containers": []}, status={})


@contextlib.contextmanager
def stage():
    with lib.directory() as d:
        make_certificates(d)
        with SecureKubernetes(d) as api, lib.programs() as programs:
            put_pod(api, "web-1")
            yield d, api, programs


def everything_together():
    """A plug-in, a proxy and another name, in two files. Then the API server accepts only another token."""
    with stage() as (d, api, programs), kubernetes_proxies.ConnectProxy(api.port, "pr0xy-pass") as proxy:
        plugin = d / "bin" / "get-token"
        write_plugin(plugin, f"echo \"$KUBERNETES_EXEC_INFO\" > {plugin}.info; echo \"$REGION $*\" > {plugin}.args\n"
                     + credential({"token": "t0ken-1", "expirationTimestamp": "2199-01-01T00:00:00Z"}))
        ca = base64.b64encode((d / "ca.pem").read_bytes()).decode()
        cluster = {"server": "https://api.invalid:6443", "certificate-authority": "ca.pem", "tls-server-name": NAME,
                   "proxy-url": f"http://user:pr0xy-pass@127.0.0.1:{proxy.port}",
                   "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "prod"}}]}
        user = exec_user("bin/get-token", args=["--cluster", "a b"], env=[{"name": "REGION", "value": "eu"}], provideClusterInfo=True)
        (d / "second").write_text(json.dumps({"current-context": "together", "clusters": [{"name": "together", "cluster": {"server": "http://never"}}]}))
        watcher = Watcher(d, "together", cluster, user, kubeconfig=f"{d}/none:{d}/together.config:{d}/second")
        programs.append(watcher)
        lib.wait_for("the pod", lambda: watcher.sees("web-1"))
        lib.check(set(proxy.targets) == {"api.invalid:6443"}, f"the proxy connected to {proxy.targets}")
        lib.check(runs(plugin) == 1, f"{runs(plugin)} runs of the plug-in")
        lib.check(pathlib.Path(f"{plugin}.args").read_text() == "eu --cluster a b\n", "arguments of the plug-in")
        info = json.loads(pathlib.Path(f"{plugin}.info").read_text())
        expected = {"server": "https://api.invalid:6443", "certificate-authority-data": ca, "tls-server-name": NAME,
                    "proxy-url": cluster["proxy-url"], "config": {"audience": "prod"}}
        found = info["spec"]["cluster"]
        found["certificate-authority-data"] = base64.b64encode(base64.b64decode(found["certificate-authority-data"]).strip() + b"\n").decode()
        lib.check(info["apiVersion"] == EXEC and found == expected and info["spec"]["interactive"] is False, f"{info}")

        write_plugin(plugin, credential({"token": "t0ken-2"}))
        api.change_token("t0ken-2")
        put_pod(api, "web-2")
        lib.wait_for("the pod after 401", lambda: watcher.sees("web-2"))
        lib.check(runs(plugin) == 2, f"{runs(plugin)} runs of the plug-in")
        lib.check("status 401" not in watcher.text() and "plug-in" not in watcher.text(), "the log reports an error that was none")
        check_end([watcher])


def each_alone():
    """Each way to connect, of as many k8s-collectors at the same time."""
    with stage() as (d, api, programs), contextlib.ExitStack() as proxies:
        def open_proxy(kind, **more):
            return proxies.enter_context(kind(api.port, "pr0xy-pass", **more))

        plain, socks = open_proxy(kubernetes_proxies.ConnectProxy), open_proxy(kubernetes_proxies.SocksProxy)
        secure = open_proxy(kubernetes_proxies.ConnectProxy, certificate=(d / "proxy.pem", d / "proxy.key"))
        write_plugin(d / "bin" / "token", credential({"token": "t0ken-1"}))
        write_plugin(d / "bin" / "token-beta", credential({"token": "t0ken-1"}, "client.authentication.k8s.io/v1beta1"))
        write_plugin(d / "bin" / "certificate", credential({"clientCertificateData": (d / "user.pem").read_text(),
                                                            "clientKeyData": (d / "user.key").read_text()}))
        write_plugin(d / "bin" / "yaml", f"printf 'apiVersion: {EXEC}\\nkind: ExecCredential\\nstatus:\\n  token: t0ken-1\\n'")
        here, away = f"https://127.0.0.1:{api.port}", "https://api.invalid:6443"
        named = {"certificate-authority": "ca.pem", "tls-server-name": NAME}
        token = {"token": "t0ken-1"}
        cases = {
            "token": ({"server": here, **named}, exec_user("bin/token")),
            "beta": ({"server": here, "insecure-skip-tls-verify": True},
                     {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": f"{d}/bin/token-beta", "args": None, "env": None}}),
            "certificate": ({"server": here, **named}, exec_user("bin/certificate", interactiveMode="Never")),
            "yaml": ({"server": here, **named}, exec_user("bin/yaml")),
            "name": ({"server": here, **named}, token),
            "http_proxy": ({"server": away, **named, "proxy-url": f"http://user:pr0xy-pass@127.0.0.1:{plain.port}"}, token),
            "https_proxy": ({"server": away, **named, "proxy-url": f"https://user:pr0xy-pass@127.0.0.1:{secure.port}"}, token),
            "socks_proxy": ({"server": away, **named, "proxy-url": f"socks5://user:pr0xy-pass@127.0.0.1:{socks.port}"}, token),
        }
        watchers = [Watcher(d, name, *case) for name, case in cases.items()]
        programs.extend(watchers)
        for watcher in watchers:
            lib.wait_for(f"the pod ({watcher.name})", lambda w=watcher: w.sees("web-1"))
            lib.check(not watcher.warnings(), f"{watcher.name}: {watcher.warnings()}")
        for proxy in (plain, secure, socks):
            lib.check(set(proxy.targets) == {"api.invalid:6443"}, f"{proxy.targets}")
        check_end(watchers)


BAD_PLUGINS = {
    "fails": ("echo first >&2; echo 'log in first' >&2; echo t0ken; exit 3", "it ended with exit code 3: log in first"),
    "garbage": ("echo t0ken", "its output is not an ExecCredential in JSON"),
    "silent": ("exit 0", "its output is not an ExecCredential in JSON"),
    "version": (credential({"token": "t0ken-1"}, "client.authentication.k8s.io/v1alpha1"), 'apiVersion "client.authentication.k8s.io/v1alpha1"'),
    "empty": (credential({}), "its answer has no credentials"),
    "expired": (credential({"token": "t0ken-1", "expirationTimestamp": "2020-01-02T03:04:05Z"}), "its credentials expire at once, at 2020-01-02T03:04:05Z"),
    "flood": ("head -c 1000000000 /dev/zero", "it wrote more than 1048576 bytes"),
    "held": (f"sleep 1000 & {credential({'token': 't0ken-1'})}", "a process that it started keeps its standard output open"),
    "refused": (credential({"token": "t0ken-0"}), "the API server does not accept its credentials"),
}


def bad_ones_give_one_error():
    with stage() as (d, api, programs), kubernetes_proxies.ConnectProxy(api.port, "pr0xy-pass") as proxy:
        cluster = {"server": f"https://127.0.0.1:{api.port}", "certificate-authority": "ca.pem", "tls-server-name": NAME}
        watchers = {}
        for name, (body, _) in BAD_PLUGINS.items():
            write_plugin(d / "bin" / name, body)
            watchers[name] = Watcher(d, name, cluster, exec_user(f"bin/{name}"))
        watchers["missing"] = Watcher(d, "missing", cluster, exec_user("no-such-plugin", installHint="Install it with apt."))
        programs.extend(watchers.values())
        expected = {name: error for name, (_, error) in BAD_PLUGINS.items()}
        expected["missing"] = "there is no program no-such-plugin in the directories of PATH: Install it with apt."
        for name, watcher in watchers.items():
            lib.wait_for(f"the error of {name}", lambda w=watcher: expected[w.name] in w.text())
        for name in BAD_PLUGINS:  # each is tried again
            lib.wait_for(f"another run of {name}", lambda n=name: runs(d / "bin" / n) >= 2)
        for watcher in watchers.values():
            lib.check(len(watcher.warnings()) == 1, f"{watcher.name}: {watcher.warnings()}")

        serving = Watcher(d, "serving", cluster, exec_user("bin/fails"), args=("--metrics-listen", "127.0.0.1:0", "--log-console"))
        programs.append(serving)
        port = lib.metrics_port(serving)
        lib.wait_for("the reason in /readyz", lambda: "gets no credentials" in readiness(port))

        # The user repairs the plug-in.
        write_plugin(d / "bin" / "fails", credential({"token": "t0ken-1"}))
        lib.wait_for("the pod", lambda: watchers["fails"].sees("web-1"))
        lib.wait_for("the end of the problem in the log", lambda: "accepts the credentials of the exec plug-in again" in serving.text())
        lib.wait_for("another reason in /readyz", lambda: "has not sent all" in readiness(port))
        lib.check(len(watchers["fails"].warnings()) == 1, f"after the repair: {watchers['fails'].warnings()}")
        check_end([*watchers.values(), serving])
        check_connection_errors(d, api, proxy, programs)
        check_refused_kubeconfigs(d, cluster)


def check_connection_errors(d, api, proxy, programs):
    here = {"server": f"https://127.0.0.1:{api.port}", "certificate-authority": "ca.pem"}
    away = {"server": "https://api.invalid", "certificate-authority": "ca.pem", "tls-server-name": NAME}
    cases = {
        "no_name": (here, "target host name '127.0.0.1'"),
        "other_name": ({**here, "tls-server-name": "other.internal"}, "other.internal"),
        "closed_proxy": ({**away, "proxy-url": "http://user:pr0xy-pass@127.0.0.1:1"}, "through the proxy http://127.0.0.1:1: "),
        "wrong_token": ({**here, "tls-server-name": NAME}, "the API server does not accept the credentials (HTTP status 401)"),
        "wrong_password": ({**away, "proxy-url": f"http://user:pr0xy-pass-2@127.0.0.1:{proxy.port}"}, "response 407"),
    }
    watchers = [Watcher(d, name, cluster, {"token": "t0ken-0" if name == "wrong_token" else "t0ken-1"}) for name, (cluster, _) in cases.items()]
    programs.extend(watchers)
    for watcher in watchers:
        lib.wait_for(f"the error of {watcher.name}", lambda w=watcher: w.warnings())
    for watcher in watchers:
        lines = watcher.warnings()
        lib.check(len(lines) == 1 and cases[watcher.name][1] in lines[0], f"{watcher.name}: {lines}")
    check_end(watchers)


def check_refused_kubeconfigs(d, cluster):
    cases = {
        "always": (cluster, exec_user("aws", interactiveMode="Always"), "needs a terminal"),
        "provider": (cluster, {"auth-provider": {"name": "gcp", "config": {"access-token": "t0ken"}}}, "use an exec plug-in instead"),
        "proxy": ({**cluster, "proxy-url": "ftp://user:pr0xy-pass@h"}, {}, "the cluster's proxy-url"),
    }
    for name, (of, user, error) in cases.items():
        watcher = Watcher(d, name, of, user)
        lib.check(watcher.process.wait(20) == 1, f"{name}: exit code")
        lines = watcher.text().splitlines()
        lib.check(len(lines) == 1 and error in lines[0] and not any(s in lines[0] for s in SECRETS), f"{name}: {lines}")


def a_plugin_dies_with_its_collector():
    with stage() as (d, api, programs):
        plugin = d / "bin" / "slow"
        write_plugin(plugin, f"sleep 1000 & echo $! > {plugin}.pid.new; mv {plugin}.pid.new {plugin}.pid; wait")
        watcher = Watcher(d, "slow", {"server": f"https://127.0.0.1:{api.port}"}, exec_user("bin/slow"))
        programs.append(watcher)
        pid = lib.wait_for("the plug-in", lambda: os.path.exists(f"{plugin}.pid") and pathlib.Path(f"{plugin}.pid").read_text().strip())
        watcher.signal(signal.SIGUSR1)  # the loop does not wait for the plug-in
        lib.wait_for("metrics in the log", lambda: "metric tributary_k8s_exec_runs_total" in watcher.text())
        lib.check(watcher.stop() == 0, "the exit code")

        def is_gone():
            try:
                return re.search(r"State:\s+(\w)", pathlib.Path(f"/proc/{pid}/status").read_text())[1] == "Z"
            except OSError:
                return True

        lib.wait_for("the end of the plug-in's child", is_gone)


if __name__ == "__main__":
    lib.main(everything_together, each_alone, bad_ones_give_one_error, a_plugin_dies_with_its_collector)
