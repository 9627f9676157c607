"""A fake API server that keeps replacing its pods, for k8s-collector in dev/bench k8s.

Time is counted in ticks of 0.1 s. A tick is also the resource version. Each tick replaces one deployment's pods: a
batch of new pods is added, gets its nodes, and runs; a batch of old pods is asked to end, ends, and is deleted. Every
tenth deployment also gets a new ReplicaSet and loses its oldest one. So every attribute of a new pod is new: name, uid,
container ids, address. The server stores no pods: it computes each pod from the pod's number.
"""

import http.server
import json
import threading
import time

TICK_S = 0.1
FIRST_TICK = 1
SCHEDULED, RUNNING = 2, 15  # ticks after a pod was added
TOLD_TO_END, ENDED = 10, 2  # ticks before it is deleted
REPLICA_SETS = 5  # per deployment; only the newest has pods
BOOKMARK_S = 30
API = {"namespaces": "/api/v1/", "nodes": "/api/v1/", "pods": "/api/v1/", "deployments": "/apis/apps/v1/", "statefulsets": "/apis/apps/v1/",
       "daemonsets": "/apis/apps/v1/", "replicasets": "/apis/apps/v1/", "jobs": "/apis/batch/v1/", "cronjobs": "/apis/batch/v1/"}
KIND_OF = {path + plural: plural for plural, path in API.items()}


def uid(kind, i):
    return f"{kind:.4}-0000-4000-8000-{i:012}"


def meta(kind, i, **more):
    return {"name": f"{kind}-{i}", "namespace": f"team-{i % 50}", "uid": uid(kind, i), "resourceVersion": "1",
            "creationTimestamp": "2026-11-23T00:00:00Z", **more}


def owned_by(kind, plural, i, name):
    return [{"kind": kind, "name": name, "uid": uid(plural, i), "controller": True, "apiVersion": "apps/v1"}]


def pod_template(phase):
    """Returns a pod of a realistic size, about 6 KB. The parts that differ between pods are placeholders between @."""
    labels = {"app.kubernetes.io/name": "app-@deployment@", "app.kubernetes.io/version": "1.2.@generation@", "pod-template-hash": "@hash@",
              "team": "team-@team@", "note": "@note@"}
    fields = {f"f:field{n}": {"f:deeper": {}} for n in range(100)}
    metadata = {"name": "app-@deployment@-@hash@-@pod@", "namespace": "team-@team@", "uid": "pods-0000-4000-8000-@pod@", "resourceVersion": "@version@",
                "creationTimestamp": "2026-11-23T00:00:00Z", "labels": labels, "annotations": {"note": "x" * 300},
                "ownerReferences": owned_by("ReplicaSet", "replicasets", 0, "app-@deployment@-@hash@"),
                "managedFields": [{"manager": "kubelet", "fieldsV1": fields}]}
    metadata["ownerReferences"][0]["uid"] = "@owner@"
    spec = {"containers": [{"name": name, "image": f"registry.example/shop/{name}:1.2.@generation@",
                            "env": [{"name": f"V{n}", "value": "v" * 20} for n in range(15)]} for name in ("main", "proxy")]}
    status = {"phase": "Pending"}
    if phase != "added":
        spec["nodeName"] = "nodes-@node@"
    if phase not in ("added", "scheduled"):
        status = {"phase": "Running", "podIP": "10.@ip@", "containerStatuses": [
            {"name": name, "image": f"registry.example/shop/{name}:1.2.@generation@", "restartCount": 0,
             "imageID": f"registry.example/shop/{name}@sha256:" + "ab" * 32, "containerID": f"containerd://{n}@id@"} for n, name in enumerate(("main", "proxy"))]}
    if phase in ("told_to_end", "ended"):
        metadata["deletionTimestamp"] = "2026-11-23T01:00:00Z"
    if phase == "ended":
        status["phase"] = "Succeeded"
    return json.dumps({"metadata": metadata, "spec": spec, "status": status})


class Cluster:
    """The cluster's objects at each tick.

    `replaced` pods a second are replaced. If `replaced` is 0, all pods stay, and `changed` pods a second get another
    label.
    """

    def __init__(self, pods, replaced, changed):
        self.batch = max(1, round((replaced or changed) * TICK_S))
        self.batches = pods // self.batch
        self.replaces = replaced > 0
        self.templates = {phase: pod_template(phase) for phase in ("added", "scheduled", "running", "told_to_end", "ended")}

    # Returns the deployment and the ReplicaSet generation of a batch. Batch b replaces batch b - self.batches.
    def replica_set(self, batch):
        deployment, generation = batch % self.batches, batch // self.batches
        return deployment, (generation if deployment % 10 == 0 else 0)

    def pod(self, i, phase, tick):
        deployment, generation = self.replica_set(i // self.batch)
        values = {"deployment": deployment, "generation": generation, "hash": f"{deployment * 1000 + generation:010x}", "team": deployment % 50,
                  "pod": f"{i:012}", "version": tick, "node": i % 500, "ip": f"{i >> 16 & 255}.{i >> 8 & 255}.{i & 255}", "id": f"{i:063x}",
                  "owner": self.replica_set_uid(deployment, generation), "note": 0 if self.replaces else tick}
        text = self.templates[phase]
        for key, value in values.items():
            text = text.replace(f"@{key}@", str(value))
        return text

    def replica_set_uid(self, deployment, generation):
        return uid("replicasets", deployment * 100_000 + generation)

    def replica_set_json(self, deployment, generation, tick):
        name = f"app-{deployment}-{deployment * 1000 + max(generation, 0):010x}" if generation >= 0 else f"app-{deployment}-old{-generation}"
        return json.dumps({"metadata": {
            **meta("replicasets", 0), "name": name, "namespace": f"team-{deployment % 50}", "resourceVersion": str(tick),
            "uid": self.replica_set_uid(deployment, generation) if generation >= 0 else uid("oldreplicasets", deployment * 10 - generation),
            "annotations": {"deployment.kubernetes.io/revision": str(generation + REPLICA_SETS)},
            "ownerReferences": owned_by("Deployment", "deployments", deployment, f"deployments-{deployment}")}})

    def listed(self, plural):
        """Returns all objects of a kind, as they are before the first tick."""
        if plural == "pods":
            return (self.pod(i, "running", FIRST_TICK) for i in range(self.batches * self.batch))
        if plural == "replicasets":
            return (self.replica_set_json(d, g, FIRST_TICK) for d in range(self.batches) for g in range(1 - REPLICA_SETS, 1))
        count = {"namespaces": 50, "nodes": 500, "deployments": self.batches}.get(plural, 0)
        return (json.dumps({"metadata": meta(plural, i)}) for i in range(count))

    def events(self, plural, tick):
        """Returns the events of a tick: (event, object)."""
        if plural == "pods":
            return self.pod_events(tick) if self.replaces else self.changes(tick)
        if plural == "replicasets" and self.replaces:
            return self.replica_set_events(tick)
        return ()

    def pod_events(self, tick):
        new = self.batches - 1 + tick - FIRST_TICK  # the batch that is added with this tick
        old = new - self.batches
        for event, phase, batch in (("ADDED", "added", new), ("MODIFIED", "scheduled", new - SCHEDULED), ("MODIFIED", "running", new - RUNNING),
                                    ("MODIFIED", "told_to_end", old + TOLD_TO_END), ("MODIFIED", "ended", old + ENDED), ("DELETED", "ended", old)):
            if phase in ("scheduled", "running") and batch < self.batches:
                continue  # these pods ran before the first tick
            for i in range(batch * self.batch, (batch + 1) * self.batch):
                yield event, self.pod(i, phase, tick)

    def changes(self, tick):
        batch = tick % self.batches
        for i in range(batch * self.batch, (batch + 1) * self.batch):
            yield "MODIFIED", self.pod(i, "running", tick)

    def replica_set_events(self, tick):
        batch = self.batches - 1 + tick - FIRST_TICK
        deployment, generation = self.replica_set(batch)
        # A ReplicaSet's status changes when its pods change.
        if generation > 0:
            yield "ADDED", self.replica_set_json(deployment, generation, tick)
            yield "DELETED", self.replica_set_json(deployment, generation - REPLICA_SETS, tick)
        else:
            yield "MODIFIED", self.replica_set_json(deployment, generation, tick)
        for later in (SCHEDULED, RUNNING):
            yield "MODIFIED", self.replica_set_json(*self.replica_set(batch - later), tick)


class Server(http.server.ThreadingHTTPServer):
    """Time begins with start(). A client that reads too slowly falls behind but still gets every event."""

    daemon_threads = True

    def __init__(self, cluster):
        super().__init__(("127.0.0.1", 0), Handler)
        self.cluster = cluster
        self.began = None
        self.sent = dict.fromkeys(("ADDED", "MODIFIED", "DELETED"), 0)
        # Make the lists in advance, so that this program does not use the collector's CPU time.
        self.lists = {plural: list(cluster.listed(plural)) for plural in API}

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def start(self):
        self.began = time.monotonic()

    def tick(self):
        return FIRST_TICK if self.began is None else FIRST_TICK + int((time.monotonic() - self.began) / TICK_S)

    def handle_error(self, *_):
        """Ignores errors: the collector disconnects in the middle of a watch."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path, _, query = self.path.partition("?")
        plural = KIND_OF[path]
        arguments = dict(part.split("=", 1) for part in query.split("&"))
        if "watch" in arguments:
            return self.watch(plural, int(arguments["resourceVersion"]), float(arguments["timeoutSeconds"]))
        begin = int(arguments.get("continue", 0))
        end = begin + int(arguments["limit"])
        items = self.server.lists[plural]
        more = str(end) if end < len(items) else ""
        body = '{"kind":"List","metadata":{"resourceVersion":"%d","continue":"%s"},"items":[%s]}' % (FIRST_TICK, more, ",".join(items[begin:end]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def watch(self, plural, seen, seconds):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        end = bookmark = time.monotonic()
        end += seconds
        while time.monotonic() < end:
            for tick in range(seen + 1, self.server.tick() + 1):
                for event, text in self.server.cluster.events(plural, tick):
                    self.write('{"type":"%s","object":%s}\n' % (event, text))
                    if plural == "pods":
                        self.server.sent[event] += 1
                seen = tick
            if time.monotonic() - bookmark > BOOKMARK_S:
                bookmark = time.monotonic()
                self.write('{"type":"BOOKMARK","object":{"kind":"","metadata":{"resourceVersion":"%d"}}}\n' % seen)
            time.sleep(TICK_S)
        self.wfile.write(b"0\r\n\r\n")

    def write(self, line):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line.encode()))

    def log_message(self, *_):
        pass


def serve(cluster):
    server = Server(cluster)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
