"""Runs a real OpenTelemetry Collector that writes the profiles, logs and metrics it receives to files, and reads them.

    with Collector(folder) as collector:
        …send to collector.address (gRPC) or collector.http_address…
    totals = Totals(samples(collector.requests()))
    totals.count, totals.ns

Import it with sys.path set to this folder. Building the Collector takes minutes the first time (collector/build.sh).
"""

import collections
import ctypes
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent


def binary(recipe=HERE / "collector"):
    """Returns the path of a folder's Collector. Builds it if it is not in the cache."""
    done = subprocess.run([recipe / "build.sh"], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip().splitlines()[-1]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _die_with_parent():
    """Makes the Collector end with the test: a killed test must not leave its Collector behind."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def _json_lines(path):
    """Returns the lines of a file. Leaves out a last line that is still incomplete."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1] if line.strip()]


class Collector:
    """One Collector process. Its files and its log are in `folder`, which it creates.

    The folder `recipe` has its build.sh and config.yaml.
    """

    def __init__(self, folder, start_timeout_s=30, recipe=HERE / "collector", gates=(), environment=None):
        self.recipe, self.gates, self.environment = recipe, ["service.profilesSupport", *gates], environment or {}
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.json_path = self.folder / "profiles.jsonl"
        self.proto_path = self.folder / "profiles.binpb"
        self.logs_json_path = self.folder / "logs.jsonl"
        self.logs_proto_path = self.folder / "logs.binpb"
        self.metrics_json_path = self.folder / "metrics.jsonl"
        self.metrics_proto_path = self.folder / "metrics.binpb"
        self.log_path = self.folder / "otelcol.log"
        self.start_timeout_s = start_timeout_s
        self.process = None
        self.address = self.http_address = None  # "127.0.0.1:port" once it listens; the second one if the recipe has HTTP

    def start(self):
        # A port that was just free may be taken now. In that case try another port.
        for _ in range(5):
            self.address, self.http_address = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
            if self._run():
                return self
        raise RuntimeError(f"the Collector does not start:\n{self.log()}")

    def successor(self):
        """Returns another Collector at the same addresses, for after stop() or kill(): it would overwrite the files."""
        next_one = Collector(self.folder.with_name(self.folder.name + "-next"), self.start_timeout_s, self.recipe, self.gates[1:],
                             self.environment)
        next_one.address, next_one.http_address = self.address, self.http_address
        if not next_one._run():
            raise RuntimeError(f"the Collector does not start again:\n{next_one.log()}")
        return next_one

    def kill(self):
        self.process.kill()
        self.process.wait()

    def _run(self):
        program = binary(self.recipe)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [program, "--config", self.recipe / "config.yaml", f"--feature-gates={','.join(self.gates)}"],
                env={**os.environ, **self.environment, "GRPC": self.address, "HTTP": self.http_address,
                     "OUT": str(self.folder)},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_die_with_parent)
        return self._wait_until_it_listens()

    def _wait_until_it_listens(self):
        host, port = self.address.split(":")
        deadline = time.monotonic() + self.start_timeout_s
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                return False
            # Check the Collector's log first: another program on that port would accept a connection too.
            if "Everything is ready" in self.log():
                with socket.create_connection((host, int(port)), timeout=5):
                    return True
            time.sleep(0.05)
        self.stop()
        return False

    def stop(self, timeout_s=20):
        """Ends the Collector in order: afterwards the files have everything that it received."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        self.process.send_signal(signal.SIGCONT)  # a test that failed may have left it stopped
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def requests(self):
        """Returns every received request of profiles as the Collector's JSON."""
        return _json_lines(self.json_path)

    def log_requests(self):
        """Returns every received request of logs as the Collector's JSON."""
        return _json_lines(self.logs_json_path)

    def metrics_requests(self):
        """Returns every received request of metrics as the Collector's JSON."""
        return _json_lines(self.metrics_json_path)

    def __enter__(self):
        return self if self.process else self.start()

    def __exit__(self, *_):
        self.stop()


def attribute_value(value, strings):
    """Returns an AnyValue in JSON as a Python value."""
    if "stringValueStrindex" in value:
        return strings[value["stringValueStrindex"]]
    if "intValue" in value:
        return int(value["intValue"])
    if "arrayValue" in value:
        return [attribute_value(item, strings) for item in value["arrayValue"].get("values", [])]
    if "kvlistValue" in value:
        return attributes(value["kvlistValue"].get("values", []), strings)
    for key in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        if key in value:
            return value[key]
    return None


def attributes(key_values, strings):
    """Returns a list of KeyValue in JSON as a dict. The Collector writes keys and strings as indices into the table."""
    out = {}
    for attribute in key_values or []:
        key = strings[attribute["keyStrindex"]] if "keyStrindex" in attribute else attribute.get("key", "")
        out[key] = attribute_value(attribute.get("value", {}), strings)
    return out


class Sample:
    """One sample with everything it refers to: resource and sample attributes, frames leaf first, count and ns."""

    def __init__(self, dictionary, resource, profile, sample):
        strings = dictionary["stringTable"]
        sample_type = profile.get("sampleType", {})
        self.type = strings[sample_type.get("typeStrindex", 0)]
        self.resource = resource
        self.attributes = {}
        for index in sample.get("attributeIndices", []):
            entry = dictionary["attributeTable"][index]
            key = strings[entry.get("keyStrindex", 0)]
            self.attributes[key] = attribute_value(entry.get("value", {}), strings)
        self.timestamps = [int(time) for time in sample.get("timestampsUnixNano", [])]
        values = [int(value) for value in sample.get("values", [])]
        if strings[sample_type.get("unitStrindex", 0)] == "nanoseconds":
            self.count, self.ns = len(self.timestamps), sum(values)
        else:
            self.count = len(self.timestamps) if self.timestamps else sum(values)
            self.ns = self.count * int(profile.get("period", 0))
        self._dictionary = dictionary
        self._stack = sample.get("stackIndex", 0)

    def frames(self):
        """Returns function names, leaf first. A frame without a name is None."""
        tables = self._dictionary
        strings = tables["stringTable"]
        out = []
        for index in tables["stackTable"][self._stack].get("locationIndices", []):
            lines = tables["locationTable"][index].get("lines", [])
            if not lines:
                out.append(None)
            for line in lines:
                function = tables["functionTable"][line.get("functionIndex", 0)]
                out.append(strings[function.get("nameStrindex", 0)])
        return out


def samples(requests):
    """Yields every sample of every request."""
    for request in requests:
        dictionary = request.get("dictionary", {})
        strings = dictionary.get("stringTable", [""])
        for resource_profiles in request.get("resourceProfiles", []):
            resource = attributes(resource_profiles.get("resource", {}).get("attributes"), strings)
            for scope in resource_profiles.get("scopeProfiles", []):
                for profile in scope.get("profiles", []):
                    for sample in profile.get("samples", []):
                        yield Sample(dictionary, resource, profile, sample)


class LogRecord:
    """One log record: the attributes of its resource and its own, and its fields."""

    def __init__(self, resource, record):
        self.resource = resource
        self.event = record.get("eventName", "")
        self.attributes = attributes(record.get("attributes"), [])
        self.body = attribute_value(record.get("body", {}), [])
        self.time_ns = int(record.get("timeUnixNano", 0))
        self.link = record.get("traceId", ""), record.get("spanId", "")
        self.type = self.attributes.get("tributary.sample.type")
        self.count = self.attributes.get("tributary.sample.count", 0)
        self.ns = self.attributes.get("tributary.sample.value", 0)
        self.identity = tuple(self.attributes.get(f"tributary.{key}") for key in ("sender", "session", "sequence"))

    def frames(self):
        """Returns function names, leaf first. A frame without a name is None."""
        return [frame.get("function") for frame in self.attributes.get("tributary.stack", [])]


def log_records(requests):
    """Yields every log record of every request."""
    for request in requests:
        for of_resource in request.get("resourceLogs", []):
            resource = attributes(of_resource.get("resource", {}).get("attributes"), [])
            for scope in of_resource.get("scopeLogs", []):
                for record in scope.get("logRecords", []):
                    yield LogRecord(resource, record)


def frame_types(requests):
    """Returns {function: its locations' profile.frame.type values}."""
    types = {}
    for request in requests:
        tables = request.get("dictionary", {})
        strings = tables.get("stringTable", [""])
        for location in tables.get("locationTable", []):
            for index in location.get("attributeIndices", []):
                entry = tables["attributeTable"][index]
                if strings[entry.get("keyStrindex", 0)] != "profile.frame.type":
                    continue
                for line in location.get("lines", []):
                    name = strings[tables["functionTable"][line.get("functionIndex", 0)].get("nameStrindex", 0)]
                    types.setdefault(name, set()).add(attribute_value(entry.get("value", {}), strings))
    return types


def lines(request):
    """Yields the line number of every line of every location. 0: unknown."""
    for location in request.get("dictionary", {}).get("locationTable", []):
        for line in location.get("lines", []):
            yield int(line.get("line", 0))


class Totals:
    """Count and ns of all samples, together and by (sample type, process.pid). `of`: from samples() or log_records()."""

    def __init__(self, of):
        self.count = self.ns = 0
        self.by_process = collections.defaultdict(lambda: [0, 0])
        for sample in of:
            self.count += sample.count
            self.ns += sample.ns
            entry = self.by_process[sample.type, sample.attributes.get("process.pid")]
            entry[0] += sample.count
            entry[1] += sample.ns


class Point:
    """One data point of a metric, with its metric's JSON and its resource's attributes."""

    def __init__(self, resource, metric, point):
        self.resource, self.metric, self.name = resource, metric, metric["name"]
        self.is_sum = "sum" in metric
        self.attributes = attributes(point.get("attributes"), [])
        self.time = int(point["timeUnixNano"])
        self.start = int(point.get("startTimeUnixNano", 0))
        self.value = float(point["asInt"] if "asInt" in point else point["asDouble"])


def points(requests):
    """Yields every data point of every request of metrics."""
    for request in requests:
        for resource_metrics in request.get("resourceMetrics", []):
            resource = attributes(resource_metrics["resource"].get("attributes"), [])
            for scope in resource_metrics.get("scopeMetrics", []):
                for metric in scope.get("metrics", []):
                    for point in (metric.get("sum") or metric["gauge"])["dataPoints"]:
                        yield Point(resource, metric, point)
