"""Sends requests through a real OpenTelemetry Collector and reads the output of its file exporter.

The reducer's code builds and sends the requests. Nothing may be lost or changed. The validator must find no fault in
the output.
"""

import functools
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import otelcol  # noqa: E402

TESTS = pathlib.Path(os.environ["TRIBUTARY_BUILD"]) / "tests"
REQUESTS = 3


def run(*command):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=120)
    return done.returncode, done.stdout


@functools.cache
def send(way):
    """Sends to a new Collector, and returns it with the sender's output."""
    folder = tempfile.TemporaryDirectory(prefix="tributary-otelcol-")
    unittest.addModuleCleanup(folder.cleanup)
    collector = otelcol.Collector(folder.name)
    with collector:
        address = collector.address if way == "grpc" else collector.http_address
        status, output = run(TESTS / "otlp_send", way, address, 7, REQUESTS)
    if status != 0:
        raise AssertionError(f"{output}\n{collector.log()}")
    return collector, output


class GrpcTest(unittest.TestCase):
    WAY = "grpc"

    def setUp(self):
        self.collector, self.output = send(self.WAY)
        self.requests = self.collector.requests()

    def test_every_request_is_in_the_file(self):
        self.assertEqual(len(self.requests), REQUESTS)

    def test_count_and_sum_are_those_that_were_sent(self):
        count, ns = (int(number) for number in self.output.split())
        totals = otelcol.Totals(self.requests)
        self.assertEqual((totals.count, totals.ns), (count, ns))
        self.assertEqual(sum(entry[0] for entry in totals.by_process.values()), count)
        self.assertEqual({pid for _, pid in totals.by_process}, set(range(100, 108)))

    def test_attributes_and_names_arrive(self):
        containers, names = set(), set()
        for sample in otelcol.samples(self.requests):
            self.assertEqual(sample.resource["host.name"], "host")
            self.assertEqual(sample.resource["host.id"], "m-1")
            self.assertEqual(sample.attributes["thread.name"], "thr\u00e4d\x01")
            self.assertEqual(sample.attributes["process.executable.path"], "/usr/bin/server")
            self.assertEqual(sample.attributes["process.pid"], sample.attributes["thread.id"])
            containers.add(sample.resource.get("container.id"))
            names.update(sample.frames())
        self.assertEqual(containers, {None, "c4", "c5", "c6", "c7"})
        self.assertEqual(names, {None, "inlined"} | {f"f{i}" for i in range(20)})

    def test_the_validator_finds_nothing(self):
        status, output = run(TESTS / "otlp_validate", self.collector.proto_path)
        self.assertEqual(status, 0, output)
        self.assertIn(f"{REQUESTS} requests", output)


class HttpTest(GrpcTest):
    WAY = "http"


class JsonTest(GrpcTest):
    WAY = "json"

    def test_links_arrive(self):
        links = [link for request in self.requests for link in request["dictionary"]["linkTable"] if link]
        self.assertTrue(links)
        self.assertEqual({(link["traceId"], link["spanId"]) for link in links}, {("5a" * 16, "f1" * 8)})


class WaysTest(unittest.TestCase):
    def test_every_way_carries_the_same_fields(self):
        grpc, http, json = (send(way)[0].requests() for way in ("grpc", "http", "json"))
        self.assertEqual(http, grpc)
        self.assertEqual(json, grpc)


if __name__ == "__main__":
    unittest.main()
