"""Tests an API server that answers HTML, stalls, floods and lies.

Its errors are counted, use no memory, and delay neither samples nor other kinds. Its texts reach a terminal, a log or
an export without their control bytes.
"""

import json
import re
import signal
import subprocess
import time

import container_test
import containers_test
import fake_kubernetes
import kubernetes_test
import lib

RSS_MB_MAX = 60  # of k8s-collector
GOOD, EVIL, COPY = (f"{digit * 8}-1111-4222-8333-444444444444" for digit in "ace")
CONTAINERS = {GOOD: "a" * 64, EVIL: "e" * 64}
# Control bytes: set a terminal's window title, clear the screen, C1's CSI, begin a new line.
BYTES = "\x1b]0;owned\x07\x1b[2J\u009b31m\r\nforged"


class HostileKubernetes(fake_kubernetes.FakeKubernetes):
    """An API server that is hostile in a different way for each kind, until a test calls calm()."""

    def __init__(self):
        super().__init__()
        self.hostile = True
        self.answered = set()

    def calm(self):
        with self.changed:
            self.hostile = False
            self.changed.notify_all()

    def hold(self):
        with self.changed:
            self.changed.wait_for(lambda: self.stopping or not self.hostile)

    def begin(self, handler, kind="application/json"):
        handler.send_response(200)
        handler.send_header("Content-Type", kind)
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.close_connection = True

    def list(self, handler, kind):
        how = {"Namespace": self.html, "Node": self.half, "CronJob": self.endless}.get(kind)
        if not self.hostile or how is None:
            return super().list(handler, kind)
        self.answered.add(kind)
        try:
            return how(handler)
        except OSError:
            return None  # the client has disconnected

    def watch(self, handler, kind, query):
        if not self.hostile or kind != "Job":
            return super().watch(handler, kind, query)
        self.answered.add(kind)
        self.begin(handler)
        handler.wfile.write(b'{"type":"ADDED","object":{"metadata":{"name":"ha')
        return self.hold()

    def html(self, handler):
        self.begin(handler, "text/html")
        handler.wfile.write(b"<!DOCTYPE html><html><body>\x1b[2JPlease log in</body></html>")

    def half(self, handler):
        self.begin(handler)
        handler.wfile.write(b'{"kind":"NodeList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"half')
        self.hold()

    def endless(self, handler):
        """Sends one object of 100 MB, then keeps the list open without an end."""
        self.begin(handler)
        handler.wfile.write(b'{"kind":"CronJobList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"')
        for _ in range(100):
            handler.wfile.write(b"x" * 1_000_000)
        handler.wfile.write(b'"}}')
        self.hold()

    def add_raw_event(self, kind, line):
        with self.changed:
            self.version += 1
            self.events.append((self.version, kind, line))
            self.changed.notify_all()


def put_pod(api, name, uid, container, image, template_hash, **more):
    owner = ("ReplicaSet", f"web-{template_hash}", f"rs-{template_hash}")
    api.put("ReplicaSet", owner[1], owner[2], "shop", owner=("Deployment", f"web{BYTES}", "deployment"))
    kubernetes_test.put_pod(api, name, uid, container, image, owner, {"pod-template-hash": template_hash, **more.pop("labels", {})}, **more)


def put_pods(api):
    put_pod(api, "good", GOOD, CONTAINERS[GOOD], "web:1", "1")
    # 1 MB of annotations, 300 labels, control bytes in every text.
    put_pod(api, f"evil{BYTES}", EVIL, CONTAINERS[EVIL], f"evil{BYTES}:1", "1",
            labels={"app": f"red{BYTES}", f"key{BYTES}": "x", **{f"label-{i}": "x" for i in range(300)}},
            annotations={"resource.opentelemetry.io/service.namespace": f"annotated{BYTES}", "huge": "x" * 1_000_000,
                         **{f"note-{i}": "x" * 900 for i in range(100)}})
    put_pod(api, "copy", COPY, CONTAINERS[GOOD], "liar:1", "1")  # claims the good pod's container


def send_unusable_pods(api):
    """Sends pods that cannot be used, and one pod larger than an object may be."""
    for metadata in ('"name":"x\\q"', f'"name":"{"x" * 5_000_000}"', '"name":"no uid"'):
        api.add_raw_event("Pod", '{"type":"ADDED","object":{"metadata":{%s}}}\n' % metadata)


def metrics(watcher):
    """Returns the metrics that k8s-collector logs after a signal."""
    before = watcher.text().count("metric tributary_k8s_watches_total")
    watcher.signal(signal.SIGUSR1)
    lib.wait_for("metrics in the log", lambda: watcher.text().count("metric tributary_k8s_watches_total") > before, 5)
    found = re.findall(r'metric (tributary_[a-z0-9_]+(?:\{[^}]*\})?) (\d+)', watcher.text())
    return {name: int(value) for name, value in found}


def resident_mb(program):
    status = open(f"/proc/{program.pid}/status", encoding="ascii").read()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def check_text(source, text):
    """Checks that a terminal would take all of `text` as plain text."""
    bad = sorted({c for c in text if (c < " " and c != "\n") or "\x7f" <= c < "\xa0"})
    lib.check(not bad, f"{source} has {bad}")
    lib.check("\nforged" not in text, f"{source}: a line of its own was forged")


COUNTED = {'tributary_k8s_failures_total{reason="malformed"}': 1, 'tributary_k8s_objects_dropped_total{reason="malformed"}': 1,
           'tributary_k8s_objects_dropped_total{reason="too_large"}': 2, "tributary_k8s_unusable_objects_total": 1,
           "tributary_k8s_duplicate_containers_total": 1, "tributary_k8s_fields_left_out_total": 40,
           "tributary_k8s_attributes_left_out_total": 30}


def check_bounds(watcher):
    def is_counted():
        found = metrics(watcher)
        return all(found.get(name, 0) >= least for name, least in COUNTED.items())

    lib.wait_for(f"all to be counted: {COUNTED}", is_counted, 10, 1)
    peak_mb = resident_mb(watcher)
    lib.check(peak_mb < RSS_MB_MAX or lib.is_instrumented("k8s-collector"), f"k8s-collector took {peak_mb:.0f} MB")
    print(f"  k8s-collector: {peak_mb:.0f} MB at the peak")


def count(reducer, start, **labels):
    return containers_test.count(reducer, start, lib.now_ms() + 1000, **labels)


def check_answers(reducer, start):
    """Checks that users and programs get the pods' texts without control bytes."""
    tributary = [lib.BIN / "tributary"]
    for arguments in (["rollouts"], ["rollouts", "--json"], ["status"]):
        out = subprocess.run([*tributary, *arguments, "--server", reducer.url], check=True, capture_output=True).stdout.decode()
        check_text(f"tributary {arguments}", out)
        lib.check(arguments == ["status"] or "owned" in out, f"{arguments}: {out}")
    for path in ("/api/v1/series", "/api/v1/labels", "/api/v1/rollouts"):
        text = reducer.get(path, **{"from": start, "to": lib.now_ms()}).decode()
        check_text(path, text)
        json.loads(text)
    pods = reducer.json("/api/v1/series", **{"from": start, "to": lib.now_ms()})["pods"]
    lib.check({pod["name"] for pod in pods} >= {"good", f"evil{BYTES}"}, f"{pods}")


def an_api_server_that_lies():
    made = {uid: container_test.make(f"kubepods/pod{uid}/{container}") for uid, container in CONTAINERS.items()}
    try:
        with lib.directory() as d, HostileKubernetes() as api, lib.programs() as programs:
            reducer = lib.Reducer(d, args=["--k8s-label", "app", "--export", "console?layout=collector", "--metadata-wait", "3s"])
            programs.append(reducer)
            start = lib.now_ms()
            node = lib.Collector(d, reducer.intake_port, rate=199, args=["--batch-interval", "500ms", "--docker-socket", ""])
            programs.append(node)
            work = [lib.Program(f"truth-{uid}", ["sh", "-c", " && ".join(f"echo $$ > {root}/{folder}/cgroup.procs" for root, folder in folders) +
                                                 f" && exec {lib.BIN}/truth 60"], d, as_root=True) for uid, folders in made.items()]
            programs += work
            watcher = kubernetes_test.KubernetesCollector(d, api, reducer)
            programs.append(watcher)
            lib.wait_for("four kinds of evil", lambda: len(api.answered) == 4, 10)
            put_pods(api)
            # Pods are known while namespaces, nodes, jobs and cron jobs are not.
            lib.wait_for("samples of the good pod", lambda: count(reducer, start, k8s_pod_name="good") > 50, 15)
            lib.wait_for("samples of the evil pod", lambda: count(reducer, start, k8s_pod_uid=EVIL, k8s_replicaset_name="web-1") > 50, 15)
            lib.check(count(reducer, start, k8s_pod_name="copy") == 0, "a pod has samples of another's container")
            send_unusable_pods(api)
            check_bounds(watcher)
            lib.check("objects were read" not in watcher.text(), "it reports a complete list without the server's answers")

            # The server becomes normal: the whole cluster is known, and another version is a rollout.
            api.calm()
            lib.wait_for("all of the cluster", lambda: "objects were read" in watcher.text(), 30)
            put_pod(api, "next", "0" * 8, "f" * 64, f"next{BYTES}:2", "2")
            lib.wait_for("the rollout", lambda: any("next" in rollout["images"] for rollout in kubernetes_test.rollouts(reducer)), 10)
            check_answers(reducer, start)
            lib.check(watcher.stop() == 0, "k8s-collector's exit code")
            lib.check(node.stop() == 0, "the collector's exit code")
            lib.check_law(reducer.status())
            lib.check(reducer.stop() == 0, "the reducer's exit code")
            lib.check("forged" in reducer.text(), "the evil pod was not exported")
            for program in (watcher, reducer, node):
                check_text(f"the log of {program.name}", program.text())
    finally:
        time.sleep(0.2)
        for folders in made.values():
            container_test.remove(folders)


if __name__ == "__main__":
    lib.main(an_api_server_that_lies)
