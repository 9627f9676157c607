"""Tests OTLP logs: samples and process events of this machine, exported to real OpenTelemetry Collectors.

A reader of the logs alone must get the same counts, values, flame graph and process events as the API shows.
"""

import collections
import contextlib
import os
import pathlib
import re
import subprocess
import sys

import lib

sys.path.insert(0, str(lib.SOURCE / "test" / "otlp"))
import otelcol  # noqa: E402

VALIDATE = pathlib.Path(os.environ["TRIBUTARY_BUILD"]) / "tests" / "otlp_validate"


def plain(name):
    """Removes the address of a frame without a name: the API shows the return address of a caller, OTLP one byte less."""
    return re.sub(r"^.*?([^/]*)\+0x[0-9a-f]+$", r"\1+", name)


def frame_name(frame):
    """Returns the API's name of a frame of a log record."""
    if "function" in frame:
        return frame["function"]
    file = os.path.basename(frame.get("mapping", ""))
    if not file and frame["type"] == "kernel":
        file = "[kernel]"
    if frame["type"] == "unknown" or not file and "build_id" not in frame:
        return "[unknown]"
    return f"{file}+"


def folded_logs(records):
    """Returns {stack, outermost frame first: [ns, count]}, from nothing but the records."""
    stacks = collections.defaultdict(lambda: [0, 0])
    for record in records:
        names = tuple(plain(frame_name(f)) for f in reversed(record.attributes["tributary.stack"]))
        stacks[names][0] += record.ns
        stacks[names][1] += record.count
    return dict(stacks)


def folded_api(graph):
    stacks = collections.defaultdict(lambda: [0, 0])
    for node in range(len(graph)):
        if graph.self_count[node] or graph.self_ns[node]:
            names = tuple(plain(name) for name in graph.path(node))
            stacks[names][0] += graph.self_ns[node]
            stacks[names][1] += graph.self_count[node]
    return dict(stacks)


def samples_of(otel):
    return [r for r in otelcol.log_records(otel.log_requests()) if r.event == "tributary.samples"]


def events_of(otel):
    """Returns {(kind, pid, executable, exit code, signal): count} of the process events, and all of their identities."""
    counts, identities = collections.Counter(), []
    for record in otelcol.log_records(otel.log_requests()):
        if not record.event.startswith("tributary.process."):
            continue
        a = record.attributes
        kind = record.event.removeprefix("tributary.process.")
        counts[kind, a.get("process.pid", 0), a.get("process.executable.path", ""), a.get("process.exit.code"),
               a.get("tributary.process.signal")] += 1
        identities.append(record.identity)
    return counts, identities


def losses_of(otel):
    """Returns {reason: samples}, the sums of the records of losses."""
    lost = collections.Counter()
    for record in otelcol.log_records(otel.log_requests()):
        if record.event == "tributary.loss" and "tributary.loss.samples" in record.attributes:
            lost[record.attributes["tributary.loss.reason"]] += record.attributes["tributary.loss.samples"]
    return {reason: samples for reason, samples in lost.items() if samples}


def events_of_api(reducer, start_ms):
    counts, cursor = collections.Counter(), None
    while True:
        page = {"cursor": cursor} if cursor else {}
        answer = reducer.json("/api/v1/events", **{"from": start_ms, "to": lib.now_ms() + 60_000, "order": "oldest", "limit": 10_000, **page})
        for event in answer["events"]:
            # A log has the exit code or the signal, because a process that a signal ended has no exit code.
            ended = event["kind"] in ("exit", "sum")
            signal = event["signal_name"] if ended and event["signal"] else None
            code = event["exit_code"] if ended and signal is None else None
            counts[event["kind"], event["pid"], event.get("executable_path", ""), code, signal] += 1
        cursor = answer["next"]
        if not cursor or not answer["truncated"]:
            return counts


def check_numbers(records):
    """Checks that the numbers of each session have no gap and no overlap."""
    sessions = collections.defaultdict(list)
    for record in records:
        sender, session, sequence = record.identity
        sessions[sender, session].append((sequence, record.count))
    for session, numbers in sessions.items():
        position = 0
        for sequence, count in sorted(numbers):
            lib.check(sequence == position, f"session {session}: number {sequence} follows {position}")
            position = sequence + count


def has_names(graph):
    """Returns whether the symbol tables of the truth program and of the kernel have arrived."""
    kernel = [graph.name_of(i) for i in range(len(graph)) if graph.kind_of(i) == "kernel"]
    return graph.count_of("hash_blocks") and any("+0x" not in name for name in kernel)


def check_flame_graph(way, records, graph):
    """Checks that the records give the API's flame graph, stack by stack."""
    arrived, expected = folded_logs(records), folded_api(graph)
    if arrived != expected:
        different = [(k, arrived.get(k), expected.get(k)) for k in {*arrived, *expected} if arrived.get(k) != expected.get(k)]
        raise lib.Failure(f"{way}: {len(different)} of {len(expected)} stacks differ (stack, logs, API): {different[:3]}")
    lib.check(len(expected) >= 3, f"{way}: the flame graph has only {len(expected)} stacks")


def check_logs(way, otel, truth, graph, graph_of_truth, stored, api_events):
    otel.stop()
    records = samples_of(otel)
    totals = otelcol.Totals(records)
    print(f"  {way}: {len(records)} records, {totals.count} samples, {totals.ns} ns; stored {stored}")
    lib.check(totals.count == stored, f"{way}: {totals.count} samples arrived, {stored} are stored")
    lib.check(totals.ns == graph.total_ns[0], f"{way}: {totals.ns} ns arrived, {graph.total_ns[0]} are stored")
    check_numbers(records)
    validated = subprocess.run([VALIDATE, "logs", otel.logs_proto_path], capture_output=True, text=True, check=False)
    print(f"  {way}: validator: {validated.stdout.strip()}")
    lib.check(validated.returncode == 0, f"{way}: the validator has findings")

    of_truth = [r for r in records if r.attributes.get("process.pid") == truth["pid"]]
    lib.check(all(r.attributes["process.executable.name"] == "truth" and r.resource["host.name"] for r in of_truth),
              f"{way}: the attributes of the truth program")
    check_flame_graph(way, of_truth, graph_of_truth)

    events, identities = events_of(otel)
    print(f"  {way}: {len(identities)} process events")
    lib.check(events == api_events, f"{way}: not in the store: {list((events - api_events).items())[:5]}, "
              f"not in the logs: {list((api_events - events).items())[:5]}")
    lib.check(len(set(identities)) == len(identities), f"{way}: the number of an event occurs twice")


def logs_to_collectors():
    """Sends a record for each stack by gRPC, and a record for each sample by HTTP with JSON."""
    with lib.directory() as d, lib.programs() as programs, contextlib.ExitStack() as stack:
        otels = {way: stack.enter_context(otelcol.Collector(d / f"otelcol-{way}")) for way in ("stacks", "samples")}
        reducer = lib.Reducer(d, args=[
            "--export", f"otlp://{otels['stacks'].address}?signal=logs",
            "--export", f"otlp+http://{otels['samples'].http_address}?signal=logs&samples=single&encoding=json"])
        programs.append(reducer)
        start = lib.now_ms()
        collector = lib.Collector(d, reducer.intake_port, rate=199, args=["--batch-interval", "1s"])
        programs.append(collector)
        lib.wait_for("the node", lambda: reducer.status()["nodes"], 20)

        def range_until_now():
            return start - 60_000, lib.now_ms() + 60_000

        # The names of the first run must be known before the second run, so that its records have names.
        lib.run_truth(1)
        lib.wait_for("names", lambda: has_names(reducer.flamegraph("{}", *range_until_now())), 60, 0.5)
        truth = lib.run_truth(4)
        subprocess.run(["sh", "-c", "kill -KILL $$"], check=False)  # an end without an exit code
        lib.check(collector.stop() == 0, "the collector's exit code")
        status = reducer.status()
        lib.check_law(status)
        stored = status["total"]["stored"]
        lib.wait_for("every sample to arrive",
                     lambda: all(sum(r.count for r in samples_of(otel)) >= stored for otel in otels.values()), 60, 0.5)
        lost = {reason: samples for reason, samples in status["total"]["lost"].items() if samples}
        print(f"  lost: {lost}")
        lib.wait_for("every loss to arrive", lambda: all(losses_of(otel) == lost for otel in otels.values()), 60, 0.5)
        graph = reducer.flamegraph("{}", *range_until_now())
        graph_of_truth = reducer.flamegraph(f'{{process_pid="{truth["pid"]}"}}', *range_until_now())
        events = events_of_api(reducer, start - 60_000)
        lib.check(any(signal == "SIGKILL" for *_, signal in events), "the end of the process that was killed")
        lib.check(reducer.stop() == 0, "the reducer's exit code")
        for way, otel in otels.items():
            check_logs(way, otel, truth, graph, graph_of_truth, stored, events)


if __name__ == "__main__":
    lib.main(logs_to_collectors)
