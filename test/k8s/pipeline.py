"""Made-up nodes and a k8s-collector that send to a real reducer.

At the end every sample is read back and compared with its cluster's API.
"""

import collections
import json
import pathlib
import random
import sys
import time

from cluster import wait_for
from collectors import Collector
from expected_resource import CLUSTER_NAME, NAME_RULES
from exported import Sink
from history import History
from node import Node

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import lib  # noqa: E402

MATCHERS_MAX = 32  # per selector


def selector_of(attributes):
    """Returns a selector of these attributes. The label of a list attribute has the list as text."""
    def text(value):
        return ",".join(value) if isinstance(value, list) else str(value)
    return "{" + ",".join(f"{key}={json.dumps(text(value), ensure_ascii=False)}" for key, value in attributes) + "}"


class Pipeline:
    """A context manager. `node_names`: nodes that may be sampled. `arguments`: arguments of k8s-collector."""

    def __init__(self, directory, node_names, *arguments):
        self.directory, self.node_names, self.arguments = pathlib.Path(directory), node_names, arguments
        self.history = History()
        self.exported_before = 0  # samples that earlier reducers exported
        self.nodes, self.collector, self.reducer = {}, None, None

    def __enter__(self):
        self.live = Sink().__enter__()
        self.reducer = self._start_reducer(self.live)
        self.node_log = open(self.directory / "nodes.log", "ab")
        self.nodes = {name: Node(name, self.reducer.intake_port, self.node_log) for name in self.node_names}
        return self

    def __exit__(self, *_):
        for each in [*self.nodes.values(), *filter(None, [self.collector])]:
            each.kill()
        if self.reducer.running():
            self.reducer.kill()
        self.node_log.close()
        self.live.__exit__()

    def _start_reducer(self, sink, **ports):
        # The reducer waits for metadata longer than any action of a test on the API server takes.
        return lib.Reducer(self.directory, args=["--export", f"otlp://{sink.address}", "--metadata-wait", "3m", *NAME_RULES], **ports)

    def watch(self):
        self.collector = Collector("--cluster-name", CLUSTER_NAME, "--intake-port", self.reducer.intake_port, *self.arguments,
                                   log=self.directory / "telling.log")

    def restart_reducer(self):
        """Restarts the reducer. The clients must find the new one themselves."""
        self._wait_until_exported()
        self.exported_before = len(self.history.samples)
        port = self.reducer.intake_port
        assert self.reducer.stop() == 0, self.reducer.text()[-2000:]
        self.reducer = self._start_reducer(self.live, intake_port=port)

    def send(self):
        self.history.send(self.nodes)

    def wait_until_known(self, pod, attributes, seconds=30):
        """Waits until the reducer knows these attributes of a pod: later samples have them."""
        def is_known():
            container_id, ms = self.history.take_uncertain(pod)
            self.send()
            return self._count(selector_of([("container.id", container_id), *attributes.items()]), ms)
        wait_for(is_known, seconds, f"the reducer to know {attributes}")

    def _count(self, selector, ms):
        """Returns the number of samples at that ms."""
        return sum(self.reducer.json("/api/v1/timeline", query=selector, **{"from": ms, "to": ms + 1})["count"])

    def assert_all_as_expected(self):
        """Ends all programs and starts the reducer again: it exports the data from its disk. Compares both exports."""
        exit_codes = [each.stop() for each in self.nodes.values()]
        assert not any(exit_codes), f"{exit_codes}\n{(self.directory / 'nodes.log').read_text()[-2000:]}"
        self._compare("exported as they came", self.live, with_late=False)
        assert self.collector.stop() == 0, self.collector.log()[-2000:]
        lib.check_law(self.reducer.status(), lost=0)
        assert self.reducer.stop() == 0, self.reducer.text()[-2000:]
        with Sink() as again:
            self.exported_before = 0
            self.reducer = self._start_reducer(again)
            self._compare("exported once more, by a reducer started anew", again, with_late=True)
        self._compare_series()
        self._compare_selections(random.Random(1))

    def _wait_until_exported(self):
        wait_for(lambda: self.exported_before + self.reducer.metric("tributary_export_samples_total") >= len(self.history.samples), 60,
                 "all samples to be exported")

    def _compare(self, label, sink, with_late):
        begin = time.monotonic()
        self._wait_until_exported()
        wrong, samples, attributes = self.history.compare(sink.samples(), with_late)
        print(f"{label}: {samples} samples of {len(self.history.processes)} containers, {attributes} attributes, {len(wrong)} differ "
              f"({time.monotonic() - begin:.1f} s)", file=sys.stderr)
        assert not wrong, "\n".join(wrong[:20])

    def _compare_series(self):
        """Compares pods and containers and their numbers of samples, one namespace at a time."""
        pods, containers = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
        for sample in self.history.samples.values():
            attributes = sample.process.attributes
            pods[attributes["k8s.namespace.name"]][sample.process.pod_uid, attributes["k8s.namespace.name"]] += 1
            containers[attributes["k8s.namespace.name"]][sample.process.container_id, attributes["k8s.container.name"]] += 1
        for namespace in pods:
            found = self.reducer.json("/api/v1/series", query=selector_of([("k8s.namespace.name", namespace)]), limit=1000,
                                      **{"from": "-1h", "to": int(time.time() * 1000) + 1000})
            assert not found["truncated"], namespace
            got = {(p["id"], p["namespace"]): p["count"] for p in found["pods"]}, {(c["id"], c["name"]): c["count"] for c in found["containers"]}
            assert got == (pods[namespace], containers[namespace]), namespace
        print(f"found by namespace: {sum(map(len, pods.values()))} pods, {sum(map(len, containers.values()))} containers", file=sys.stderr)

    def _compare_selections(self, chance, count=100):
        """Checks that samples are found by all their attributes at once."""
        samples = [(key, s) for key, s in self.history.samples.items() if s.attributes]
        for (_, ms), sample in chance.sample(samples, min(count, len(samples))):
            identity = ("container.id", sample.process.container_id)
            rest = [item for item in sample.attributes.items() if item[0] != identity[0]]
            for i in range(0, len(rest), MATCHERS_MAX - 1):
                selector = selector_of([identity, *rest[i:i + MATCHERS_MAX - 1]])
                assert self._count(selector, ms) == 1, selector
        print(f"found by all of their attributes: {min(count, len(samples))} samples", file=sys.stderr)
