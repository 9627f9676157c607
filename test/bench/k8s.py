"""What k8s-collector costs with 10,000 pods of which 100 change each second: dev/bench k8s [--pods N] [--changes N] [--seconds N]

The API server is a program of this file, the reducer is real. Limits: 60 MB resident, 5% of a core.
"""

import argparse
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

BIN = pathlib.Path(os.environ.get("TRIBUTARY_BIN", ""))
RSS_MB_MAX, CORE_PERCENT_MAX = 60, 5
KINDS = {"namespaces": "/api/v1/", "nodes": "/api/v1/", "pods": "/api/v1/", "deployments": "/apis/apps/v1/", "statefulsets": "/apis/apps/v1/",
         "daemonsets": "/apis/apps/v1/", "replicasets": "/apis/apps/v1/", "jobs": "/apis/batch/v1/", "cronjobs": "/apis/batch/v1/"}


def metadata(kind, i, **more):
    return {"name": f"{kind}-{i}", "namespace": f"team-{i % 50}", "uid": f"{kind:.4}-0000-4000-8000-{i:012}", "resourceVersion": "1",
            "creationTimestamp": "2026-11-23T00:00:00Z", **more}


def owner(kind, plural, i):
    return [{"kind": kind, "name": f"{plural}-{i}", "uid": f"{plural:.4}-0000-4000-8000-{i:012}", "controller": True}]


def pod(i, generation=0):
    """As large as pods are: some 6 KB."""
    labels = {"app.kubernetes.io/name": f"app-{i % 1000}", "app.kubernetes.io/version": "1.2.3", "pod-template-hash": f"{i % 1000:010x}",
              "team": f"team-{i % 50}", "generation": str(generation)}
    status = {"name": "main", "image": "registry.example/shop/web:1.2.3", "imageID": "registry.example/shop/web@sha256:" + "ab" * 32,
              "containerID": f"containerd://{i * 1000 + generation // 1000:064x}", "restartCount": 0}
    fields = {f"f:field{n}": {"f:deeper": {}} for n in range(100)}
    return {"metadata": metadata("pods", i, labels=labels, annotations={"note": "x" * 300}, ownerReferences=owner("ReplicaSet", "replicasets", i % 1000),
                                 managedFields=[{"manager": "kubelet", "fieldsV1": fields}]),
            "spec": {"nodeName": f"nodes-{i % 500}", "containers": [{"name": "main", "image": "registry.example/shop/web:1.2.3",
                                                                       "env": [{"name": f"V{n}", "value": "v" * 20} for n in range(30)]}]},
            "status": {"podIP": f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}", "containerStatuses": [status]}}


def objects(plural, pods):
    if plural == "pods":
        return (pod(i) for i in range(pods))
    count = {"namespaces": 50, "nodes": 500, "deployments": 1000, "replicasets": 5000}.get(plural, 0)
    parents = {"replicasets": lambda i: owner("Deployment", "deployments", i % 1000)}.get(plural, lambda i: [])
    return ({"metadata": metadata(plural, i, ownerReferences=parents(i))} for i in range(count))


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, pods, changes):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pods, self.changes, self.sent = pods, changes, 0
        # Made beforehand, so that this program does not take the collector's CPU time.
        self.lists = {plural: [json.dumps(o) for o in objects(plural, pods)] for plural in KINDS}
        self.events = [json.dumps({"type": "MODIFIED", "object": pod(i % pods, i)}) + "\n" for i in range(5000)]

    def handle_error(self, *_):
        """The collector goes in the middle of a watch."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path, _, query = self.path.partition("?")
        plural = path.rsplit("/", 1)[1]
        arguments = dict(part.split("=", 1) for part in query.split("&"))
        if "watch" in arguments:
            return self.watch(plural)
        begin = int(arguments.get("continue", 0))
        end = begin + int(arguments["limit"])
        items = self.server.lists[plural]
        more = str(end) if end < len(items) else ""
        body = '{"kind":"List","metadata":{"resourceVersion":"1","continue":"%s"},"items":[%s]}' % (more, ",".join(items[begin:end]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def watch(self, plural):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while True:
            time.sleep(0.1)
            if plural != "pods":
                continue
            for _ in range(self.server.changes // 10):
                event = self.server.events[self.server.sent % len(self.server.events)].encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
                self.server.sent += 1

    def log_message(self, *_):
        pass


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid, what):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(what))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--changes", type=int, default=100, help="a second")
    parser.add_argument("--seconds", type=float, default=30)
    options = parser.parse_args()
    server = Server(options.pods, options.changes)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as directory:
        ports = pathlib.Path(directory) / "ports"
        reducer = subprocess.Popen([BIN / "reducer", "--data-dir", directory + "/data", "--intake-listen=127.0.0.1:0", "--http-listen=127.0.0.1:0",
                                    "--ports-file", ports], stderr=open(directory + "/reducer.log", "w"))
        while not ports.exists() or not ports.read_text():
            time.sleep(0.1)
        log = pathlib.Path(directory) / "log"
        collector = subprocess.Popen([BIN / "k8s-collector", f"--api-server=http://127.0.0.1:{server.server_address[1]}", "--cluster-name=bench",
                                      f"--intake-host=127.0.0.1:{json.loads(ports.read_text())['intake']}"], stderr=open(log, "w"))
        try:
            while "complete pods=" not in log.read_text():
                time.sleep(0.1)
            listed = cpu_seconds(collector.pid)
            time.sleep(3)
            before, sent, began = cpu_seconds(collector.pid), server.sent, time.monotonic()
            time.sleep(options.seconds)
            seconds = time.monotonic() - began
            percent = (cpu_seconds(collector.pid) - before) / seconds * 100
            rss, peak = resident_mb(collector.pid, "VmRSS"), resident_mb(collector.pid, "VmHWM")
            print(f"pods={options.pods} changes_per_s={(server.sent - sent) / seconds:.0f} rss_mb={rss:.1f} peak_mb={peak:.1f} "
                  f"core_percent={percent:.2f} list_cpu_s={listed:.2f}")
        finally:
            for process in (collector, reducer):
                process.terminate()
                process.wait(10)
    if rss > RSS_MB_MAX or percent > CORE_PERCENT_MAX:
        sys.exit(f"over a limit: {RSS_MB_MAX} MB, {CORE_PERCENT_MAX}% of a core")


if __name__ == "__main__":
    main()
