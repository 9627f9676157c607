"""Tests signal=metrics: real OpenTelemetry Collectors get the values of the reducer's /metrics.

The metrics arrive by gRPC, by HTTP with protobuf, and by HTTP with JSON. The protocol's validator must find no error in
the received data.
"""

import contextlib
import os
import pathlib
import subprocess
import sys

import lib
import prometheus_text

sys.path.insert(0, str(lib.SOURCE / "test" / "otlp"))
sys.path.insert(0, str(lib.SOURCE / "test" / "k8s"))
import node  # noqa: E402
import otelcol  # noqa: E402

VALIDATE = pathlib.Path(os.environ["TRIBUTARY_BUILD"]) / "tests" / "otlp_validate"
PATIENT_S = 60
SAMPLES, SECONDS = 40, 0.4  # a made-up node's samples have 10 ms each
METRIC, COMMITTED = "profile_cpu_seconds_total", "tributary_reducer_committed_samples_total"


def send_samples(reducer, directory):
    now_ns = lib.now_ms() * 1_000_000
    with open(directory / "node.log", "w", encoding="utf-8") as log:
        made_up = node.Node("metrics-node", reducer.intake_port, log)
        try:
            made_up.sample(7, "/usr/bin/server", "/", "service.name=a\"b\\c", [now_ns + i for i in range(SAMPLES)])
            lib.check(made_up.stop() == 0, "the node's samples were not taken")
        finally:
            made_up.kill()


def prometheus_name(metric):
    """Returns the name that the Collector's exporters for Prometheus give the metric.

    They add the suffix of the unit if no word of the name is the unit, and move or add `total` (OpenTelemetry's
    specification, "OTLP Metric points to Prometheus").
    """
    words = metric["name"].split("_")
    unit = {"s": "seconds", "By": "bytes", "": ""}[metric.get("unit", "")]
    if unit and unit not in words:
        words.append(unit)
    if "sum" in metric:
        words = [word for word in words if word != "total"] + ["total"]
    return "_".join(words)


def series_of(point):
    """Returns name and labels of a data point, as prometheus_text.parse returns them."""
    escaped = {key: value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for key, value in point.attributes.items()}
    return point.name, ",".join(f'{key}="{value}"' for key, value in escaped.items()) or None


def newest(collector, after_ns):
    """Returns {series: point} of the newest interval after a time, or {}."""
    points = [point for point in otelcol.points(collector.metrics_requests()) if point.time > after_ns]
    last = max((point.time for point in points), default=0)
    return {series_of(point): point for point in points if point.time == last}


def scrape(reducer):
    families = prometheus_text.parse(reducer.get("/metrics").decode())
    return {(name, labels): value for name, series in families.items() for labels, value in series.items()}


def check_points(way, points, before, after):
    """Checks the data points of an interval between two scrapes: counters that stood still have the same values."""
    known = {series for series, value in before.items() if value == value}
    lib.check(set(points) >= known, f"{way}: not sent are {sorted(map(str, known - set(points)))[:5]}")
    still = [series for series in known if series[0].endswith("_total") and before[series] == after.get(series)]
    wrong = [(series, points[series].value, before[series]) for series in still if points[series].value != before[series]]
    lib.check(not wrong, f"{way}: series, sent value, value on /metrics: {wrong[:5]}")
    lib.check(len(still) > 100 and any(name == METRIC for name, _ in still), f"{way}: {len(still)} counters stand still")
    for (name, _), point in points.items():
        lib.check(point.is_sum == name.endswith("_total"), f"{way}: {name} is a sum: {point.is_sum}")
        lib.check(prometheus_name(point.metric) == name, f"{way}: Prometheus would get {name} as {prometheus_name(point.metric)}")
    print(f"  {way}: {len(points)} data points, {len(still)} counters stand still and have the values of /metrics")


def check_file(way, collector):
    last = sum(point.value for point in newest(collector, 0).values() if point.name == COMMITTED)
    lib.check(last == 2 * SAMPLES, f"{way}: in the last interval, {last} samples are stored")
    validated = subprocess.run([VALIDATE, "metrics", collector.metrics_proto_path], capture_output=True, text=True, check=False)
    print(f"  {way}: validator: {validated.stdout.strip()}")
    lib.check(validated.returncode == 0, f"{way}: the validator has findings")


def metrics_to_collectors():
    with lib.directory() as d, lib.programs() as programs, contextlib.ExitStack() as stack:
        otels = {way: stack.enter_context(otelcol.Collector(d / f"otelcol-{way}")) for way in ("grpc", "http", "json")}
        # The variables make the second URL, and fill what the third one leaves open.
        variables = {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": f"http://{otels['http'].http_address}/v1/metrics",
                     "OTEL_METRIC_EXPORT_INTERVAL": "1000"}
        reducer = lib.Reducer(d, env={**os.environ, **variables}, args=[
            "--metric", f"name={METRIC},by=service,executable", "--metadata-wait", "0s",
            "--export", f"otlp://{otels['grpc'].address}?signal=metrics&interval=1s", "--export", "otlp?signal=metrics",
            "--export", f"otlp+http://{otels['json'].http_address}?signal=metrics&encoding=json"])
        programs.append(reducer)
        send_samples(reducer, d)
        lib.wait_for("the samples to be counted", lambda: reducer.metric(METRIC) == SECONDS, PATIENT_S)
        before, begin_ns = scrape(reducer), lib.now_ms() * 1_000_000
        lib.wait_for("an interval", lambda: all(newest(otel, begin_ns) for otel in otels.values()), PATIENT_S)
        sent = {way: newest(otel, begin_ns) for way, otel in otels.items()}
        after = scrape(reducer)
        for way, points in sent.items():
            check_points(way, points, before, after)
        resources = [point.resource for points in sent.values() for point in points.values()]
        lib.check(all(resource == resources[0] for resource in resources), "the resources differ")
        lib.check(resources[0]["service.name"] == "tributary-reducer" and resources[0]["service.instance.id"], f"resource {resources[0]}")
        send_samples(reducer, d)
        lib.check(reducer.stop() == 0, "the reducer's exit code")
        for way, otel in otels.items():
            otel.stop()
            check_file(way, otel)


if __name__ == "__main__":
    lib.main(metrics_to_collectors)
