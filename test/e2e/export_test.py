"""Tests the whole path: samples of this machine, exported as OTLP to a real OpenTelemetry Collector, as text, and to files.

By gRPC and by HTTP, the Collector's count and ns must be equal to the store's, and the protocol's validator must find
no error in the received data.
"""

import collections
import contextlib
import json
import os
import pathlib
import stat
import subprocess
import sys

import lib

sys.path.insert(0, str(lib.SOURCE / "test" / "otlp"))
import otelcol  # noqa: E402

VALIDATE = pathlib.Path(os.environ["TRIBUTARY_BUILD"]) / "tests" / "otlp_validate"


def await_names(reducer, start):
    """Waits for the load's names.

    A node sends the symbol tables one after the other. On a busy machine the load may end before its table arrives.
    """
    lib.wait_for("names", lambda: reducer.flamegraph("{}", start - 60_000, lib.now_ms() + 60_000).count_of("hash_blocks"), 60, 0.5)


def check_received(way, otel, stored, stored_ns, truth):
    """Checks that a Collector received all stored samples, with their names."""
    requests = otel.requests()
    totals = otelcol.Totals(otelcol.samples(requests))
    print(f"  {way}: stored {stored} samples, {stored_ns} ns; the Collector wrote {totals.count} samples, {totals.ns} ns")
    lib.check(totals.count == stored, f"{way}: {totals.count} samples arrived, {stored} are stored")
    lib.check(totals.ns == stored_ns, f"{way}: {totals.ns} ns arrived, {stored_ns} are stored")

    of_truth = [s for s in otelcol.samples(requests) if s.attributes.get("process.pid") == truth["pid"]]
    leaves = sum(s.count for s in of_truth if "hash_blocks" in s.frames())
    count = sum(s.count for s in of_truth)
    lib.check(count > 1000, f"{way}: {count} samples of the truth program arrived")
    lib.check(abs(leaves / count - 0.6) <= lib.four_sigma(0.6, count), f"{way}: {leaves} of {count} samples in hash_blocks")

    validated = subprocess.run([VALIDATE, "profiles", otel.proto_path], capture_output=True, text=True, check=False)
    print(f"  {way}: validator: {validated.stdout.strip()}")
    lib.check(validated.returncode == 0, f"{way}: the validator has findings")


def otlp_to_collectors():
    """Exports to three Collectors at a time: by gRPC, by HTTP with protobuf, and by HTTP with JSON."""
    with lib.directory() as d, lib.programs() as programs, contextlib.ExitStack() as stack:
        otels = {way: stack.enter_context(otelcol.Collector(d / f"otelcol-{way}")) for way in ("grpc", "http", "json")}
        # The variables make the second URL, and fill what the third one leaves open.
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{otels['http'].http_address}",
                     "OTEL_EXPORTER_OTLP_COMPRESSION": "none"}
        reducer = lib.Reducer(d, env={**os.environ, **variables}, args=[
            "--export", f"otlp://{otels['grpc'].address}", "--export", "otlp",
            "--export", f"otlp+http://{otels['json'].http_address}?encoding=json"])
        programs.append(reducer)
        start = lib.now_ms()
        collector = lib.Collector(d, reducer.intake_port, rate=997, args=["--batch-interval", "1s"])
        programs.append(collector)
        lib.wait_for("the node", lambda: reducer.status()["nodes"], 20)
        truth = lib.run_truth(8)
        await_names(reducer, start)
        lib.check(collector.stop() == 0, "the collector's exit code")
        status = reducer.status()
        lib.check_law(status)
        stored = status["total"]["stored"]
        graph = reducer.flamegraph("{}", start - 60_000, lib.now_ms() + 60_000)

        def arrived():
            return all(sum(s.count for s in otelcol.samples(otel.requests())) >= stored for otel in otels.values())

        lib.wait_for("every sample to arrive", arrived, 60, 0.5)
        lib.check(reducer.stop() == 0, "the reducer's exit code")
        for way, otel in otels.items():
            otel.stop()
            check_received(way, otel, stored, graph.total_ns[0], truth)


def console():
    """Tests the console exporter's two layouts on standard output."""
    for layout, marks in (("lazybackend", ["  PeriodType: [cpu, nanoseconds", "  Timestamp[0]: ", ", File: , Line: 0, Column: 0"]),
                          ("collector", ["  thread.name: truth (Str)", "  thread.id: "])):
        with lib.directory() as d, lib.programs() as programs:
            reducer = lib.Reducer(d, args=["--export", f"console?layout={layout}"])
            programs.append(reducer)
            start = lib.now_ms()
            collector = lib.Collector(d, reducer.intake_port, rate=199, args=["--batch-interval", "1s"])
            programs.append(collector)
            lib.wait_for("the node", lambda: reducer.status()["nodes"], 20)
            lib.run_truth(3)
            await_names(reducer, start)
            lib.check(collector.stop() == 0, "the collector's exit code")
            lib.check(reducer.stop(15) == 0, "the reducer's exit code")
            text = reducer.text()
            for mark in ["--------------- New Resource Profile --------------", "------------------- New Profile -------------------",
                         "------------------- New Sample --------------------", "Instrumentation: native, Function: hash_blocks",
                         "------------------- End Sample --------------------", "------------------- End Profile -------------------",
                         "-------------- End Resource Profile ---------------", *marks]:
                lib.check(mark in text, f"{layout}: '{mark}' is missing")


def read_folded(folder):
    """Adds up the folded stacks of all files of a folder, as flamegraph.pl does. Returns {stack: value}."""
    sums = collections.Counter()
    for path in folder.glob("*.folded"):
        lib.check(".cpu.nanoseconds." in path.name, f"{path.name} does not name its type and unit")
        for line in path.read_text().splitlines():
            stack, value = line.rsplit(" ", 1)
            sums[stack] += int(value)
    return sums


def files():
    """Tests the export to files: the sums of folded stacks and of OTLP JSON lines are the store's, also after kill -9."""
    with lib.directory() as d, lib.programs() as programs:
        folded, lines = d / "folded", d / "lines"
        exports = ["--export", f"file://{folded}?rotate_bytes=1MiB&rotate_after=2s&keep=1000",
                   "--export", f"file://{lines}?format=otlp_json&by=container"]
        reducer = lib.Reducer(d, args=exports)
        programs.append(reducer)
        start = lib.now_ms()
        collector = lib.Collector(d, reducer.intake_port, rate=199, args=["--batch-interval", "1s"])
        programs.append(collector)
        lib.wait_for("the node", lambda: reducer.status()["nodes"], 20)
        lib.run_truth(3)
        await_names(reducer, start)
        lib.check(collector.stop() == 0, "the collector's exit code")
        stored = reducer.status()["total"]["stored"]
        # Nothing is in flight at the kill, so nothing is written twice.
        lib.wait_for("the exports", lambda: reducer.metric("tributary_export_samples_total") == 2 * stored, 60, 0.5)
        lib.check(any(folded.glob("*.part")), "no file is unfinished")
        reducer.kill()
        reducer = lib.Reducer(d, args=exports)
        programs.append(reducer)
        graph = reducer.flamegraph("{}", start - 60_000, lib.now_ms() + 60_000)
        lib.check(reducer.stop() == 0, "the reducer's exit code")

        for folder in (folded, lines):
            lib.check(not any(folder.glob("*.part")), f"{folder.name}: a file is unfinished after the stop")
            modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.glob("*.*l*")}
            lib.check(modes == {0o640}, f"{folder.name}: modes {modes}")
        series = collections.Counter(path.name.split(".2")[0] for path in folded.glob("*.folded"))
        lib.check(max(series.values()) < 1000, "the machine is too busy for this test: files were removed, as keep= says")
        sums = read_folded(folded)
        requests = [json.loads(line) for path in lines.glob("*.jsonl") for line in path.open()]
        totals = otelcol.Totals(otelcol.samples(requests))
        print(f"  {len(list(folded.glob('*.folded')))} files of folded stacks with {sum(sums.values())} ns, OTLP with "
              f"{totals.count} samples and {totals.ns} ns; stored {stored} samples, {graph.total_ns[0]} ns")
        lib.check(sum(sums.values()) == graph.total_ns[0], "the sum of the folded stacks")
        lib.check(totals.count == stored and totals.ns == graph.total_ns[0], "the sums of the JSON lines")
        leaf = sum(value for stack, value in sums.items() if "hash_blocks" in stack.split(";"))
        lib.check(leaf == graph.ns_of("hash_blocks"), f"{leaf} ns in hash_blocks, the API says {graph.ns_of('hash_blocks')}")


def files_on_a_full_disk():
    """Tests that no sample is lost or written twice if the disk is full, also if the reducer stops meanwhile."""
    with lib.directory() as d, lib.small_disk(d / "disk", "32m") as disk, lib.programs() as programs:
        exports = ["--export", f"file://{disk / 'folded'}"]
        reducer = lib.Reducer(d, args=exports)
        programs.append(reducer)
        filler = lib.fill_disk(disk)
        start = lib.now_ms()
        collector = lib.Collector(d, reducer.intake_port, rate=199, args=["--batch-interval", "1s"])
        programs.append(collector)
        lib.wait_for("the node", lambda: reducer.status()["nodes"], 20)
        lib.run_truth(2)
        lib.check(collector.stop() == 0, "the collector's exit code")
        stored = reducer.status()["total"]["stored"]
        lib.wait_for("a failed write", lambda: reducer.metric("tributary_export_failures_total"), 60, 0.5)
        lib.check(reducer.stop(15) == 0, "the reducer's exit code")
        reducer = lib.Reducer(d, args=exports)
        programs.append(reducer)
        lib.wait_for("a failed write", lambda: reducer.metric("tributary_export_failures_total"), 60, 0.5)
        lib.check(reducer.metric("tributary_export_samples_total") == 0, "samples were written to a full disk")
        filler.unlink()
        lib.wait_for("the export", lambda: reducer.metric("tributary_export_samples_total") == stored, 60, 0.5)
        graph = reducer.flamegraph("{}", start - 60_000, lib.now_ms() + 60_000)
        lib.check(reducer.stop(15) == 0, "the reducer's exit code")
        total = sum(read_folded(disk / "folded").values())
        lib.check(total == graph.total_ns[0], f"the files have {total} ns, {graph.total_ns[0]} ns are stored")


if __name__ == "__main__":
    lib.main(otlp_to_collectors, console, files, files_on_a_full_disk)
