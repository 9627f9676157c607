"""A fake API server with the objects that a test puts into it.

It answers k8s-collector's lists and watches, without credentials.
"""

import http.server
import json
import threading
import time
import urllib.parse

PATHS = {
    "Namespace": "/api/v1/namespaces", "Node": "/api/v1/nodes", "Pod": "/api/v1/pods",
    "Deployment": "/apis/apps/v1/deployments", "StatefulSet": "/apis/apps/v1/statefulsets", "DaemonSet": "/apis/apps/v1/daemonsets",
    "ReplicaSet": "/apis/apps/v1/replicasets", "Job": "/apis/batch/v1/jobs", "CronJob": "/apis/batch/v1/cronjobs",
}
KIND_OF = {path: kind for kind, path in PATHS.items()}


def rfc3339(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


class FakeKubernetes:
    """put() and remove() may be called from any thread. Every watcher gets the event.

    The server always sends whole objects, also if the client requests PartialObjectMetadata, which is a part of them.
    """

    def __init__(self):
        self.changed = threading.Condition()
        self.version = 100
        self.objects = {}  # (kind, uid): object
        self.events = []  # (version, kind, event)
        self.stopping = False
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                url = urllib.parse.urlsplit(self.path)
                query = dict(urllib.parse.parse_qsl(url.query))
                kind = KIND_OF.get(url.path)
                if kind is None:
                    return self.send_error(404)
                return api.watch(self, kind, query) if query.get("watch") in ("1", "true") else api.list(self, kind)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        with self.changed:
            self.stopping = True
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def put(self, kind, name, uid, namespace=None, labels=None, annotations=None, owner=None, created=None, **rest):
        metadata = {"name": name, "uid": uid, "creationTimestamp": rfc3339(created or time.time()), "labels": labels or {},
                    "annotations": annotations or {}}
        if namespace:
            metadata["namespace"] = namespace
        if owner:
            metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "uid": owner[2], "controller": True}]
        with self.changed:
            known = (kind, uid) in self.objects
            if known:
                metadata["creationTimestamp"] = self.objects[kind, uid]["metadata"]["creationTimestamp"]
            self.objects[kind, uid] = {"kind": kind, "metadata": metadata, **rest}
            self.add_event("MODIFIED" if known else "ADDED", kind, uid)

    def remove(self, kind, uid):
        with self.changed:
            self.add_event("DELETED", kind, uid)
            del self.objects[kind, uid]

    def add_event(self, event, kind, uid):
        self.version += 1
        self.objects[kind, uid]["metadata"]["resourceVersion"] = str(self.version)
        self.events.append((self.version, kind, json.dumps({"type": event, "object": self.objects[kind, uid]}) + "\n"))
        self.changed.notify_all()

    def list(self, handler, kind):
        with self.changed:
            items = [obj for (of, _), obj in self.objects.items() if of == kind]
            body = json.dumps({"kind": f"{kind}List", "metadata": {"resourceVersion": str(self.version)}, "items": items}).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def watch(self, handler, kind, query):
        seen = int(query.get("resourceVersion") or 0)
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        end = time.monotonic() + float(query.get("timeoutSeconds", 300))
        try:
            while time.monotonic() < end:
                with self.changed:
                    self.changed.wait_for(lambda: self.stopping or any(v > seen and k == kind for v, k, _ in self.events), 1)
                    if self.stopping:
                        return
                    news = [(v, line) for v, k, line in self.events if v > seen and k == kind]
                for seen, line in news:
                    handler.wfile.write(f"{len(line.encode()):x}\r\n{line}\r\n".encode())
                handler.wfile.flush()
            handler.wfile.write(b"0\r\n\r\n")
        except OSError:
            pass  # the watcher has disconnected
