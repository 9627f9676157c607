"""Tests exports to a real OpenTelemetry Collector that is killed, stopped and continued, and senders that are killed.

The Collector's file must have every stored sample. A sample may occur twice only if it was counted as repeated, or in
the one request that was in flight at a kill. The senders' memory stays bounded.
"""

import collections
import contextlib
import os
import pathlib
import re
import signal
import sys
import time
import urllib.request

import faults
import lib
import prometheus_text

sys.path.insert(0, str(lib.SOURCE / "test" / "otlp"))
import otelcol  # noqa: E402

RATE = 499
RSS_GROWTH_MAX_MIB = 100  # of a sender whose receiver is away for some seconds


def rss_mib(program):
    text = pathlib.Path(f"/proc/{program.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) // 1024


def metric(port, name):
    """Returns a metric of a collector without labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        values = prometheus_text.parse(answer.read().decode())[name]
    return values[None]


def last_totals(collector):
    """Returns the numbers of the collector's last line of totals."""
    line = [line for line in collector.text().splitlines() if " stopped captured=" in line][-1]
    return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line)}


def profiles_of(otels):
    """Returns {profile id: [how often it arrived, its samples]}. A request that is sent again has the same ids."""
    found = collections.defaultdict(lambda: [0, 0])
    for otel in otels:
        for request in otel.requests():
            for resource in request.get("resourceProfiles", []):
                for scope in resource["scopeProfiles"]:
                    for profile in scope["profiles"]:
                        entry = found[profile["profileId"]]
                        entry[0] += 1
                        entry[1] = sum(len(sample["timestampsUnixNano"]) for sample in profile["samples"])
    return found


def check_arrived(name, otels, expected, repeated_max):
    """Checks that each sample arrived, and that not too many arrived twice."""
    profiles = profiles_of(otels)
    distinct = sum(samples for _, samples in profiles.values())
    twice = sum((times - 1) * samples for times, samples in profiles.values())
    print(f"  {name}: {distinct} of {expected} samples arrived, {twice} of them twice, {repeated_max} may have")
    lib.check(distinct == expected, f"{name}: {distinct} samples arrived, expected {expected}")
    lib.check(twice <= repeated_max, f"{name}: {twice} samples arrived twice, only {repeated_max} may have")


def away(otel, reducer, lone, how):
    """Lets the Collector be away while samples are taken. Checks the memory of the senders."""
    before = rss_mib(reducer), rss_mib(lone)
    failures = reducer.metric("tributary_export_failures_total")
    sent = lone.text().count("cannot send samples")
    how()
    lib.run_truth(2, threads=2)
    lib.wait_for("the exporter to fail", lambda: reducer.metric("tributary_export_failures_total") > failures, 60)
    lib.wait_for("the node to fail", lambda: lone.text().count("cannot send samples") > sent, 60)
    after = rss_mib(reducer), rss_mib(lone)
    print(f"  MiB resident before and during: reducer {before[0]} {after[0]}, node {before[1]} {after[1]}")
    for one, other in zip(before, after):
        lib.check(other - one <= RSS_GROWTH_MAX_MIB, f"memory grew from {one} to {other} MiB")


def kill_after_flush(otel):
    """Kills the Collector between two requests. It writes requests to its files a moment after its answers."""
    size = otel.json_path.stat().st_size
    lib.wait_for("a request", lambda: otel.json_path.stat().st_size > size, 60, 0.02)
    while otel.json_path.stat().st_size > size:
        size = otel.json_path.stat().st_size
        time.sleep(0.3)
    otel.kill()


def receiver_is_away():
    """Kills the Collector, and later stops and continues it. Both senders go on without a loss."""
    with lib.directory() as d, lib.programs() as programs, contextlib.ExitStack() as stack:
        otel, of_node = [stack.enter_context(otelcol.Collector(d / name)) for name in ("of-reducer", "of-node")]
        reducer = lib.Reducer(d, args=["--export", f"otlp://{otel.address}?timeout=1s"])
        programs.append(reducer)
        node = lib.Collector(d, reducer.intake_port, rate=RATE, args=["--batch-interval", "1s"])
        programs.append(node)
        metrics = otelcol.free_port()
        # OTEL_EXPORTER_OTLP_TIMEOUT is in ms.
        lone = lib.Collector(d, of_node.http_address.split(":")[1], rate=RATE, name="lone",
                             env={**os.environ, "OTEL_EXPORTER_OTLP_TIMEOUT": "1000"},
                             args=["--intake-encoder", "otlp_profiles", "--intake-host", "http://127.0.0.1",
                                   "--batch-interval", "1s", "--names=false", "--log-console", "--metrics-listen", f"127.0.0.1:{metrics}"])
        programs.append(lone)
        both = [otel, of_node]
        lib.wait_for("requests", lambda: all(o.requests() for o in both), 60, 0.5)

        away(otel, reducer, lone, lambda: [o.process.send_signal(signal.SIGSTOP) for o in both])
        for o in both:
            o.process.send_signal(signal.SIGCONT)
        lib.run_truth(1)
        away(otel, reducer, lone, lambda: [kill_after_flush(o) for o in both])
        later = [stack.enter_context(o.successor()) for o in both]

        lib.check(node.stop() == 0, "the collector's exit code")
        lib.wait_for("the node's last repeated request", lambda: metric(metrics, "tributary_direct_queue_bytes") < 100_000, 60, 0.2)
        of_node_repeated = metric(metrics, "tributary_direct_repeated_samples_total")
        lib.check(lone.stop(20) == 0, "the lone node's exit code")
        stored = reducer.status()["total"]["stored"]
        lib.check_law(reducer.status())
        lib.wait_for("the export", lambda: reducer.metric("tributary_export_samples_total") == stored, 60, 0.2)
        repeated = reducer.metric("tributary_export_repeated_samples_total")
        lib.check(reducer.stop() == 0, "the reducer's exit code")
        for o in later:
            o.stop()
        check_arrived("reducer", [otel, later[0]], stored, repeated)
        last = last_totals(lone)
        lib.check(last["captured"] == last["sent"] + last["lost"] and last["lost"] == 0, f"the law is broken: {last}")
        check_arrived("node", [of_node, later[1]], last["captured"], of_node_repeated)


def reducer_is_killed():
    """Kills the reducer while a request has no answer. Only this request may arrive twice, with the same identity."""
    with lib.directory() as d, lib.programs() as programs, otelcol.Collector(d / "otelcol") as otel:
        export = ["--export", f"otlp+http://{otel.http_address}"]
        intake = faults.free_port()
        reducer = lib.Reducer(d, args=export, intake_port=intake)
        programs.append(reducer)
        node = lib.Collector(d, intake, rate=RATE, args=["--batch-interval", "200ms"])
        programs.append(node)
        kills, repeated = 3, 0
        for _ in range(kills):
            lib.wait_for("an export", lambda: reducer.metric("tributary_export_samples_total"), 60)
            otel.process.send_signal(signal.SIGSTOP)
            exported = reducer.metric("tributary_export_samples_total")
            stored = lib.wait_for("samples", lambda: reducer.metric("tributary_reducer_committed_samples_total"), 60)
            lib.wait_for("more samples than are exported", lambda: reducer.metric("tributary_reducer_committed_samples_total") >
                         max(exported, stored) + 1000, 60)
            repeated += reducer.metric("tributary_export_repeated_samples_total")
            reducer.kill()
            otel.process.send_signal(signal.SIGCONT)
            reducer = lib.Reducer(d, args=export, intake_port=intake)
            programs.append(reducer)
        lib.check(node.stop(20) == 0, "the collector's exit code")
        status = reducer.status()
        lib.check_law(status)
        stored = status["total"]["stored"]

        def all_arrived():
            return sum(samples for _, samples in profiles_of([otel]).values()) >= stored

        lib.wait_for("the export", all_arrived, 60, 0.5)
        repeated += reducer.metric("tributary_export_repeated_samples_total")
        lib.check(reducer.stop(15) == 0, "the reducer's exit code")
        otel.stop()
        check_arrived("killed reducer", [otel], stored, repeated)
        lib.check(repeated > 0, "no request was in doubt at a kill")


def store_on_a_full_disk():
    """Fills the disk of the store. The export goes on with what is stored, and sends nothing twice."""
    with lib.directory() as d, lib.small_disk(d / "disk", "64m") as disk, lib.programs() as programs, \
            otelcol.Collector(d / "otelcol") as otel:
        reducer = lib.Reducer(d, data=disk / "data", args=["--export", f"otlp://{otel.address}"])
        programs.append(reducer)
        node = lib.Collector(d, reducer.intake_port, rate=RATE, args=["--batch-interval", "1s"])
        programs.append(node)
        lib.wait_for("an export", lambda: reducer.metric("tributary_export_samples_total"), 60)
        before = rss_mib(reducer)
        filler = lib.fill_disk(disk)
        lib.run_truth(2, threads=2)
        grown = rss_mib(reducer) - before
        lib.check(grown <= RSS_GROWTH_MAX_MIB, f"memory grew by {grown} MiB")
        filler.unlink()
        lib.run_truth(1)
        lib.check(node.stop(30) == 0, "the collector's exit code")
        lib.check_law(reducer.status())
        stored = reducer.status()["total"]["stored"]
        lib.wait_for("the export", lambda: reducer.metric("tributary_export_samples_total") == stored, 60, 0.2)
        lib.check(reducer.stop(15) == 0, "the reducer's exit code")
        otel.stop()
        check_arrived("full disk", [otel], stored, 0)


if __name__ == "__main__":
    lib.main(receiver_is_away, reducer_is_killed, store_on_a_full_disk)
