"""Tests exports to a real OpenTelemetry Collector that is killed, stopped and continued, and senders that are killed.

The Collector's file must have every stored sample. A sample may occur twice only if it was counted as repeated, and
then with the same contents.
"""

import contextlib
import os
import pathlib
import signal
import sys
import urllib.request

import lib
import prometheus_text

sys.path.insert(0, str(lib.SOURCE / "test" / "otlp"))
import otelcol  # noqa: E402

RATE = 499


def node_metric(port, name):
    """Returns a metric of a collector without labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        return prometheus_text.parse(answer.read().decode())[name][None]


def profiles_of(otels):
    """Returns {profile id: the contents of its samples, once for each time that it arrived}.

    A request that is sent again has the same ids.
    """
    found = {}
    for otel in otels:
        for request in otel.requests():
            for resource in request.get("resourceProfiles", []):
                for scope in resource["scopeProfiles"]:
                    for profile in scope["profiles"]:
                        samples = [(sample["timestampsUnixNano"], sample.get("values", [])) for sample in profile["samples"]]
                        found.setdefault(profile["profileId"], []).append(samples)
    return found


def count(samples):
    return sum(len(times) for times, _ in samples)


def arrived(otels):
    """Returns the number of samples that arrived, each counted once."""
    return sum(count(contents[0]) for contents in profiles_of(otels).values())


def check_arrived(name, otels, expected, repeated_max):
    """Checks that each sample arrived, that not too many arrived twice, and that those were the same."""
    profiles = profiles_of(otels)
    distinct = sum(count(contents[0]) for contents in profiles.values())
    twice = sum(count(again) for contents in profiles.values() for again in contents[1:])
    print(f"  {name}: {distinct} of {expected} samples arrived, {twice} of them twice, {repeated_max:.0f} may have")
    lib.check(distinct == expected, f"{name}: {distinct} samples arrived, expected {expected}")
    lib.check(twice <= repeated_max, f"{name}: {twice} samples arrived twice, only {repeated_max} may have")
    for profile, contents in profiles.items():
        lib.check(all(again == contents[0] for again in contents), f"{name}: profile {profile} was sent again with other samples")


@contextlib.contextmanager
def workload(directory, programs):
    """Lets the workload run in the background."""
    program = lib.Program("truth", [lib.BIN / "truth", 600, 2], directory)
    programs.append(program)
    yield
    program.kill()


def wait_until_still(description, value):
    """Waits until a value is not 0 and stays the same for a second."""
    same, last = 0, None

    def is_still():
        nonlocal same, last
        now = value()
        same = same + 1 if now and now == last else 0
        last = now
        return same >= 5

    lib.wait_for(description, is_still, 60, 0.2)


def away(reducer, metrics, how):
    """Lets the Collectors be away until both senders have failed."""
    failures, of_node = reducer.metric("tributary_export_failures_total"), node_metric(metrics, "tributary_direct_failures_total")
    how()
    lib.wait_for("the exporter to fail", lambda: reducer.metric("tributary_export_failures_total") > failures, 60)
    lib.wait_for("the node to fail", lambda: node_metric(metrics, "tributary_direct_failures_total") > of_node, 60)


def kill_between_requests(otels, senders):
    """Kills the Collectors while no request is on its way. They write to their files a moment after their answers."""
    for sender in senders:
        sender.signal(signal.SIGSTOP)
    for otel in otels:
        wait_until_still("the last request in the file", lambda path=otel.json_path: path.stat().st_size)
        otel.kill()
    for sender in senders:
        sender.signal(signal.SIGCONT)


def receiver_is_away():
    """Stops and continues the Collectors, and kills them later. Both senders go on without a loss."""
    with lib.directory() as d, lib.programs() as programs, contextlib.ExitStack() as stack:
        both = otel, of_node = [stack.enter_context(otelcol.Collector(d / name)) for name in ("of-reducer", "of-node")]
        reducer = lib.Reducer(d, args=["--export", f"otlp://{otel.address}?timeout=1s"])
        programs.append(reducer)
        node = lib.Collector(d, reducer.intake_port, rate=RATE, args=["--batch-interval", "1s"])
        programs.append(node)
        # OTEL_EXPORTER_OTLP_TIMEOUT is in ms.
        lone = lib.Collector(d, of_node.http_address.split(":")[1], rate=RATE, name="lone",
                             env={**os.environ, "OTEL_EXPORTER_OTLP_TIMEOUT": "1000"},
                             args=["--intake-encoder", "otlp_profiles", "--intake-host", "http://127.0.0.1", "--batch-interval", "1s",
                                   "--names=false", "--metrics-listen", "127.0.0.1:0", "--otlp-metrics-interval", "1s",
                                   *lib.PATIENT])
        programs.append(lone)
        metrics = lib.metrics_port(lone)
        stack.enter_context(workload(d, programs))
        lib.wait_for("requests", lambda: all(o.requests() for o in both), 60)

        away(reducer, metrics, lambda: [o.process.send_signal(signal.SIGSTOP) for o in both])
        sizes = [o.json_path.stat().st_size for o in both]
        for o in both:
            o.process.send_signal(signal.SIGCONT)
        lib.wait_for("requests", lambda: all(o.json_path.stat().st_size > size for o, size in zip(both, sizes)), 60)
        away(reducer, metrics, lambda: kill_between_requests(both, (reducer, lone)))
        later = [stack.enter_context(o.successor()) for o in both]

        lib.check(node.stop(60) == 0, "the collector's exit code")
        lib.stop_patiently(lone)
        stored = reducer.status()["total"]["stored"]
        lib.check_law(reducer.status())
        lib.wait_for("the export", lambda: reducer.metric("tributary_export_samples_total") == stored, 60)
        repeated = reducer.metric("tributary_export_repeated_samples_total")
        lib.check(reducer.stop(60) == 0, "the reducer's exit code")
        for o in later:
            o.stop()
        check_arrived("reducer", [otel, later[0]], stored, repeated)
        last = lib.last_totals(lone.text())
        lib.check(last["captured"] == last["sent"] and last["lost"] == 0, f"the node has a loss: {last}")
        # The last metrics that the node sent have its last values.
        points = {point.name: point.value for point in otelcol.points(later[1].metrics_requests())}
        lib.check(points["tributary_direct_samples_total"] == last["sent"], "the node's last metrics are missing")
        check_arrived("node", [of_node, later[1]], last["captured"], points["tributary_direct_repeated_samples_total"])


def unread_bytes(port):
    """Returns how many bytes wait in the kernel for the program that listens on the port."""
    waiting = 0
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, queues = line.split()[:5]
        if state == "01" and int(local.split(":")[1], 16) == port:
            waiting += int(queues.split(":")[1], 16)
    return waiting


def stop_in_a_request(otel, reducer):
    """Stops the Collector, and waits until the first attempt to send a request has no answer.

    If the Collector has read this request whole before it stopped, the exporter gives up and tries again. Both attempts
    would arrive, and a kill in the second one is not counted. So the Collector then continues, and is stopped again.
    """
    port = int(otel.http_address.rsplit(":", 1)[1])
    while True:
        failures = reducer.metric("tributary_export_failures_total")
        otel.process.send_signal(signal.SIGSTOP)

        def is_sent_or_failed():
            return unread_bytes(port) > 0 or reducer.metric("tributary_export_failures_total") > failures

        lib.wait_for("a request without an answer", is_sent_or_failed, 60, 0.1)
        if unread_bytes(port) > 0 and reducer.metric("tributary_export_failures_total") == failures:
            return
        otel.process.send_signal(signal.SIGCONT)
        lib.wait_for("an answer", lambda: unread_bytes(port) == 0, 60, 0.1)


def reducer_is_killed():
    """Kills the reducer while a request has no answer. Only this request may arrive twice, with the same identity."""
    with lib.directory() as d, lib.programs() as programs, otelcol.Collector(d / "otelcol") as otel, workload(d, programs):
        export = ["--export", f"otlp+http://{otel.http_address}"]
        reducer = lib.Reducer(d, args=export)
        programs.append(reducer)
        intake = reducer.intake_port
        node = lib.Collector(d, intake, rate=RATE, args=["--batch-interval", "200ms"])
        programs.append(node)
        repeated = 0
        for _ in range(2):
            lib.wait_for("an export", lambda: reducer.metric("tributary_export_samples_total"), 60)
            stop_in_a_request(otel, reducer)
            repeated += reducer.metric("tributary_export_repeated_samples_total")
            reducer.kill()
            otel.process.send_signal(signal.SIGCONT)
            reducer = lib.Reducer(d, args=export, intake_port=intake)
            programs.append(reducer)
        lib.check(node.stop(60) == 0, "the collector's exit code")
        status = reducer.status()
        lib.check_law(status)
        stored = status["total"]["stored"]
        lib.wait_for("the export", lambda: arrived([otel]) >= stored, 60)
        repeated += reducer.metric("tributary_export_repeated_samples_total")
        lib.check(reducer.stop(60) == 0, "the reducer's exit code")
        otel.stop()
        check_arrived("killed reducer", [otel], stored, repeated)
        lib.check(repeated > 0, "no request was in doubt at a kill")


def store_on_a_full_disk():
    """Fills the disk of the store until it takes nothing. Afterwards every stored sample arrives."""
    with lib.directory() as d, lib.small_disk(d / "disk", "64m") as disk, lib.programs() as programs, \
            otelcol.Collector(d / "otelcol") as otel, workload(d, programs):
        reducer = lib.Reducer(d, data=disk / "data", args=["--export", f"otlp://{otel.address}"])
        programs.append(reducer)
        node = lib.Collector(d, reducer.intake_port, rate=RATE, args=["--batch-interval", "1s"])
        programs.append(node)
        lib.wait_for("an export", lambda: reducer.metric("tributary_export_samples_total"), 60)
        filler = lib.fill_disk(disk)
        lib.wait_for("a failed commit", lambda: reducer.metric("tributary_reducer_commit_failures_total"), 60)
        filler.unlink()
        committed = reducer.metric("tributary_reducer_committed_samples_total")
        lib.wait_for("a commit", lambda: reducer.metric("tributary_reducer_committed_samples_total") > committed, 60)
        lib.check(node.stop(60) == 0, "the collector's exit code")
        lib.check_law(reducer.status())
        stored = reducer.status()["total"]["stored"]
        lib.wait_for("the export", lambda: reducer.metric("tributary_export_samples_total") == stored, 60)
        repeated = reducer.metric("tributary_export_repeated_samples_total")
        lib.check(reducer.stop(60) == 0, "the reducer's exit code")
        otel.stop()
        check_arrived("full disk", [otel], stored, repeated)


if __name__ == "__main__":
    lib.main(receiver_is_away, reducer_is_killed, store_on_a_full_disk)
