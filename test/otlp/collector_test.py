"""Sends requests through a real OpenTelemetry Collector and reads the output of its file exporter.

The reducer's code builds and sends the requests. Nothing may be lost or changed. The validator must find no fault in
the output.
"""

import collections
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
def send(signal, way):
    """Sends to a new Collector, and returns it with the sender's output."""
    folder = tempfile.TemporaryDirectory(prefix="tributary-otelcol-")
    unittest.addModuleCleanup(folder.cleanup)
    collector = otelcol.Collector(folder.name)
    with collector:
        address = collector.address if way == "grpc" else collector.http_address
        status, output = run(TESTS / "otlp_send", signal, way, address, 7, REQUESTS)
    if status != 0:
        raise AssertionError(f"{output}\n{collector.log()}")
    return collector, output


class GrpcTest(unittest.TestCase):
    WAY = "grpc"

    def setUp(self):
        self.collector, self.output = send("profiles", self.WAY)
        self.requests = self.collector.requests()

    def test_every_request_is_in_the_file(self):
        self.assertEqual(len(self.requests), REQUESTS)

    def test_count_and_sum_are_those_that_were_sent(self):
        count, ns = (int(number) for number in self.output.split())
        totals = otelcol.Totals(otelcol.samples(self.requests))
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
        status, output = run(TESTS / "otlp_validate", "profiles", self.collector.proto_path)
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


class LogsTest(unittest.TestCase):
    """The same samples as logs: a record for each stack, by gRPC, HTTP with protobuf, and HTTP with JSON."""

    def check(self, way):
        collector, output = send("logs", way)
        requests = collector.log_requests()
        self.assertEqual(len(requests), REQUESTS)
        records = list(otelcol.log_records(requests))
        count, ns = (int(number) for number in output.split())
        totals = otelcol.Totals(records)
        self.assertEqual((totals.count, totals.ns), (count, ns))
        self.assertEqual({pid for _, pid in totals.by_process}, set(range(100, 108)))
        self.assertEqual({r.event for r in records}, {"tributary.samples"})
        self.assertEqual({r.resource.get("container.id") for r in records}, {None, "c4", "c5", "c6", "c7"})
        self.assertEqual({name for r in records for name in r.frames()}, {None, "inlined"} | {f"f{i}" for i in range(20)})
        self.assertEqual({r.link for r in records}, {("", ""), ("5a" * 16, "f1" * 8)})
        # Each record begins where the last one ended.
        position = 0
        for record in records:
            sender, session, sequence = record.identity
            self.assertEqual((sender, session, sequence), ("test-sender", "01" + "00" * 15, position))
            position += record.count
        status, found = run(TESTS / "otlp_validate", "logs", collector.logs_proto_path)
        self.assertEqual(status, 0, found)
        self.assertIn(f"{REQUESTS} requests", found)

    def test_logs_arrive_over_grpc(self):
        self.check("grpc")

    def test_logs_arrive_over_http(self):
        self.check("http")

    def test_logs_arrive_as_json(self):
        self.check("json")

    def test_the_stacks_are_those_of_the_profiles(self):
        def weights(of):
            sums = collections.Counter()
            for sample in of:
                stack = tuple(sample.frames()), sample.type if sample.type != "samples" else "cpu"
                sums[stack, sample.attributes["thread.id"]] += sample.ns
            return sums

        profiles = weights(otelcol.samples(send("profiles", "http")[0].requests()))
        self.assertEqual(weights(otelcol.log_records(send("logs", "http")[0].log_requests())), profiles)


class ConfigurationTest(unittest.TestCase):
    def test_the_configuration_for_users_is_valid(self):
        """The test's Collector has no exporter `debug`, so the exporter is replaced."""
        text = (otelcol.HERE.parent.parent / "dev" / "otel" / "otel-config.yaml").read_text()
        exporter = "debug:\n    verbosity: detailed"
        self.assertEqual((text.count(exporter), text.count("[debug]")), (1, 1))
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text.replace(exporter, "file:\n    path: /dev/null").replace("[debug]", "[file]"))
            file.flush()
            status, output = run(otelcol.binary(), "validate", "--config", file.name)
        self.assertEqual(status, 0, output)


class WaysTest(unittest.TestCase):
    def test_every_way_carries_the_same_fields(self):
        grpc, http, json = (send("profiles", way)[0].requests() for way in ("grpc", "http", "json"))
        self.assertEqual(http, grpc)
        self.assertEqual(json, grpc)

    def test_every_way_carries_the_same_logs(self):
        grpc, http, json = (send("logs", way)[0].log_requests() for way in ("grpc", "http", "json"))
        self.assertEqual(http, grpc)
        self.assertEqual(json, grpc)


if __name__ == "__main__":
    unittest.main()
