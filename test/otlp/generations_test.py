"""Sends profiles in each generation to the pdata of a Collector of that time, over each transport.

The reducer's code builds and sends the requests. Each pdata must decode the samples that the newest one decodes.
"""

import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import sample_points  # noqa: E402

TESTS = pathlib.Path(os.environ["TRIBUTARY_BUILD"]) / "tests"
REQUESTS = 2
# The first release of pdata that is known to decode each generation; for the newest one, a later release.
PDATA = {"1.7": "v0.128", "1.8": "v0.136", "1.9": "v0.140", "1.10": "v0.162", "1.11": "v0.162"}

# What the pdata of another generation does with a request: it refuses the request with an error that begins like this, or
# accepts it and finds no samples, or the same ones. In JSON, requests in 1.9 and 1.10 are so similar that both read both.
HTTP_ERROR, GRPC_ERROR = "INVALID_ARGUMENT: HTTP 400", "INTERNAL: grpc: error unmarshalling request"
EMPTY, SAME = "empty", "same"
REFUSED = {"grpc": GRPC_ERROR, "http": HTTP_ERROR}
OTHERS = {
    ("1.10", "v0.128"): {**REFUSED, "json": HTTP_ERROR},
    ("1.10", "v0.136"): {**REFUSED, "json": EMPTY},
    ("1.10", "v0.140"): {**REFUSED, "json": SAME},
    ("1.9", "v0.162"): {**REFUSED, "json": SAME},
    ("1.8", "v0.140"): {**REFUSED, "json": EMPTY},
    ("1.7", "v0.162"): {**REFUSED, "json": HTTP_ERROR},
}


@functools.cache
def build(pdata):
    done = subprocess.run([HERE / "pdata" / "build.sh", pdata], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip().splitlines()[-1]


@functools.cache
def send(generation, way, pdata):
    """Returns the output of otlp_send, and the requests that a receiver with this pdata has decoded."""
    program = build(pdata)
    with tempfile.NamedTemporaryFile(prefix="tributary-pdata-") as file, subprocess.Popen(
            [program, file.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as receiver:
        try:
            addresses = json.loads(receiver.stdout.readline())
            done = subprocess.run(
                [TESTS / "otlp_send", "profiles", way, addresses["grpc" if way == "grpc" else "http"], "7",
                 str(REQUESTS), generation], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        finally:
            receiver.stdin.close()
        return done, [json.loads(line) for line in file.read().splitlines()]


def points(requests):
    return [sample_points.points(request) for request in requests]


@functools.cache
def expected():
    return points(send("1.10", "grpc", PDATA["1.10"])[1])


class GenerationsTest(unittest.TestCase):
    maxDiff = 2000

    def test_the_newest_pdata_decodes_what_was_sent(self):
        done, requests = send("1.10", "grpc", PDATA["1.10"])
        self.assertEqual(done.returncode, 0, done.stdout)
        count, ns = (int(number) for number in done.stdout.split())
        values = [point for request in points(requests) for point in request]
        self.assertEqual(len(requests), REQUESTS)
        self.assertEqual(len(values), count)
        period, value = 2, -1
        self.assertEqual(sum(point[value] * (point[2][period] or 1) for point in values), ns)
        self.assertTrue(any(point[2][0] == ("off_cpu", "nanoseconds") for point in values))

    def test_each_pdata_decodes_the_same_samples(self):
        for generation, pdata in PDATA.items():
            for way in ("grpc", "http", "json"):
                with self.subTest(generation=generation, way=way, pdata=pdata):
                    done, requests = send(generation, way, pdata)
                    self.assertEqual(done.returncode, 0, done.stdout)
                    self.assertEqual(points(requests), expected())

    def test_a_receiver_of_another_generation_refuses_or_reads_other_samples(self):
        for (generation, pdata), outcomes in OTHERS.items():
            for way, outcome in outcomes.items():
                with self.subTest(generation=generation, pdata=pdata, way=way):
                    done, requests = send(generation, way, pdata)
                    if outcome in (EMPTY, SAME):
                        self.assertEqual(done.returncode, 0, done.stdout)
                        self.assertEqual(points(requests), expected() if outcome == SAME else [[]] * REQUESTS)
                    else:
                        self.assertEqual(done.returncode, 1, done.stdout)
                        self.assertTrue(done.stdout.startswith(f"not taken: {outcome}"), done.stdout)
                        self.assertEqual(requests, [])


if __name__ == "__main__":
    unittest.main()
