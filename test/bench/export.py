"""dev/bench export: samples that the reducer sends per CPU second, beside an OpenTelemetry Collector (docs/benchmarks.md).

    dev/bench export [--load LOAD] [--recording FILE] [--samples N] [--otelcol PATH] [--rounds N] [--no-history]

The script fills a store: it replays a recording of a real load as many nodes. In the mixed load, processes are
short-lived. In the tight load, a few processes run all the time. Then it starts the reducer with --export
to a receiver that keeps the requests, and measures the reducer until all samples have been sent. A Collector (receiver
otlp, exporter otlp_grpc or otlp_http, no processor) gets exactly these requests, and sends them on to the same kind of
receiver. The two take turns, with gRPC and HTTP, with and without compression.
"""

import argparse
import http.client
import os
import pathlib
import statistics
import subprocess
import sys
import time

import measure  # first: it finds lib
import export_sink
import h2_client
import intake
import lib
import report

sys.path.insert(0, str(lib.SOURCE / "test" / "otlp"))
import otelcol  # noqa: E402  (in the folder of the tests of the export)

RATIO_MIN = 3
LOADS = ["mixed", "tight"]
WAYS = [("grpc", "gzip"), ("http", "gzip"), ("grpc", "none"), ("http", "none")]
METHOD = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
PATH = "/v1development/profiles"
QUIET_S = 20  # after the replay, the reducer closes minutes and joins chunks
SEND_S_MAX = 300
HERE = pathlib.Path(__file__).resolve().parent


class Store:
    """A data directory with samples of many nodes, and the symbol tables of their executables."""

    def __init__(self, directory, load, options):
        directory.mkdir()
        self.directory = directory
        self.data = directory / "export-data"
        if options.recording:
            recording, symbols = options.recording, ["--symbols", options.symbols]
            self.arguments = []
        else:
            recording, symbols = intake.record(directory, load, options.record_seconds), []
            self.arguments = ["--symbols-dir", directory / "data" / "symbols"]
        session = intake.summary_of(recording)
        repeat = max(1, round(options.samples / options.nodes / session["samples"]))
        with lib.programs() as programs:
            reducer = self.start(directory)
            programs.append(reducer)
            sender = intake.replay(recording, reducer, options.nodes, "--speed", "max", "--repeat", repeat, *symbols)
            self.samples = intake.finish(sender)["samples_acked"]
            lib.check_law(reducer.status(), lost=0)
            time.sleep(QUIET_S)
            lib.check(reducer.stop(60) == 0, "the reducer's exit code")
        print(f"\n{load}: {self.samples} samples of {options.nodes} nodes, {sum(f.stat().st_size for f in self.data.rglob('*') if f.is_file()) / 2**20:.0f} MiB; "
              f"load average {os.getloadavg()[0]:.1f}", flush=True)

    def start(self, directory, *more, name="reducer"):
        return lib.Reducer(directory, args=[*self.arguments, *more], data=self.data, name=name)


class Otelcol(lib.Program):
    """A Collector that sends everything to `to`."""

    def __init__(self, directory, name, binary, way, compression, to):
        self.grpc, self.http = (f"127.0.0.1:{otelcol.free_port()}" for _ in range(2))
        more = {"GRPC": self.grpc, "HTTP": self.http, "TO": to, "EXPORTER": f"otlp_{way}", "COMPRESSION": compression}
        super().__init__(name, [binary, "--config", HERE / "otelcol" / "config.yaml", "--feature-gates=service.profilesSupport"], directory,
                         env={**os.environ, **more})
        lib.wait_for("the Collector", lambda: "Everything is ready" in self.text() or not self.running())
        lib.check(self.running(), f"the Collector ended:\n{self.text()}")


def run_reducer(store, way, compression, number):
    """Exports the store once. Returns (figures, the requests that were sent)."""
    scheme = {"grpc": "otlp", "http": "otlp+http"}[way]
    with export_sink.ExportSink(way) as sink, lib.programs() as programs:
        url = f"{scheme}://{sink.address}?compression={compression}&name=run-{number}"  # a new cursor: it starts at the oldest sample
        reducer = store.start(store.directory, "--export", url, name=f"export-{way}-{compression}-{number}")
        programs.append(reducer)
        lib.wait_for("all samples", lambda: reducer.metric("tributary_export_samples_total") >= store.samples, SEND_S_MAX, step_s=0.5)
        out = figures_of(reducer.pid, 0, sink.requests, store.samples)
        sent = reducer.metric("tributary_export_samples_total")
        lib.check(sent == store.samples, f"{sent} samples were sent, {store.samples} are stored")
        lib.check(reducer.stop(60) == 0, "the reducer's exit code")
        return out, list(sink.requests)


def run_otelcol(store, binary, requests, way, compression, number):
    """Sends the requests through a Collector, one after the other. Returns its figures."""
    with export_sink.ExportSink(way) as sink, lib.programs() as programs:
        relay = Otelcol(store.directory, f"otelcol-{way}-{compression}-{number}", binary, way, compression, sink.address)
        programs.append(relay)
        before = measure.cpu_ns(relay.pid)
        client = h2_client.GrpcClient(relay.grpc, METHOD) if way == "grpc" else http.client.HTTPConnection(relay.http)
        for i, request in enumerate(requests):
            lib.check(send(client, way, request), "the Collector refused a request")
            # The next request begins when the last one has arrived, so the Collector's queue stays short.
            lib.check(sink.wait_for(i + 1), "the Collector did not send a request on")
        client.close()
        out = figures_of(relay.pid, before, sink.requests, store.samples)
        lib.check(len(sink.requests) == len(requests), f"{len(sink.requests)} of {len(requests)} requests")
        if number == 0:
            counted = sum(r.samples() for r in sink.requests)
            lib.check(counted == store.samples, f"the Collector sent {counted} samples of {store.samples}")
        relay.stop()
        return out


def send(client, way, request):
    if way == "grpc":
        return client.call(request.compressed, request.body)
    encoding = {"Content-Encoding": "gzip"} if request.compressed else {}
    client.request("POST", PATH, request.body, {"Content-Type": "application/x-protobuf", **encoding})
    answer = client.getresponse()
    answer.read()
    return answer.status == 200


def figures_of(pid, cpu_before, requests, samples):
    """Reads the figures of a program that has just sent the requests."""
    cpu_s = (measure.cpu_ns(pid) - cpu_before) / 1e9
    return {"per_cpu_second": samples / cpu_s, "cpu_s": cpu_s, "rss_peak": measure.memory_kib(pid)["VmHWM"] / 1024,
            "bytes": sum(len(r.body) for r in requests) / samples, "requests": len(requests)}


ROWS = [("per_cpu_second", "samples per CPU second", "{:,.0f}"), ("cpu_s", "CPU time, s", "{:.2f}"), ("rss_peak", "RSS, peak, MiB", "{:.0f}"),
        ("bytes", "bytes of requests per sample", "{:.1f}"), ("requests", "requests", "{:.0f}")]


def medians(runs):
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def measure_way(store, load, options, way, compression):
    """Measures both programs in turn. Returns (figures for the history, verdicts)."""
    ours, theirs = [], []
    for number in range(options.rounds):
        figures, requests = run_reducer(store, way, compression, number)
        if number == 0:
            counted = sum(r.samples() for r in requests)
            lib.check(counted == store.samples, f"{counted} samples in the requests, {store.samples} in the store")
        ours.append(figures)
        theirs.append(run_otelcol(store, options.otelcol, requests, way, compression, number))
    ratio = statistics.median(a["per_cpu_second"] / b["per_cpu_second"] for a, b in zip(ours, theirs))
    print(f"\n{load}, {way}, {compression}, medians of {options.rounds}{'':22} {'reducer':>14} {'Collector':>14} {'ratio':>8}")
    a, b = medians(ours), medians(theirs)
    for key, text, form in ROWS:
        print(f"{text:48} {form.format(a[key]):>14} {form.format(b[key]):>14} {a[key] / b[key]:8.2f}")
    print("ratios of the rounds: " + ", ".join(f"{x['per_cpu_second'] / y['per_cpu_second']:.2f}" for x, y in zip(ours, theirs)), flush=True)
    prefix = f"export_{way}_{compression}" if load == "mixed" else f"export_{load}_{way}_{compression}"
    named = [(f"{prefix}_samples_per_cpu_second", a["per_cpu_second"], "samples/s"),
             (f"{prefix}_otelcol_samples_per_cpu_second", b["per_cpu_second"], "samples/s"), (f"{prefix}_of_otelcol", ratio, ""),
             (f"{prefix}_bytes_per_sample", a["bytes"], "B"), (f"{prefix}_peak_rss", a["rss_peak"], "MiB")]
    return named, [(f"{load}, {way}, {compression}: at least {RATIO_MIN} times the Collector's samples per CPU second: {ratio:.2f}", ratio >= RATIO_MIN)]


def main():
    parser = argparse.ArgumentParser(prog="dev/bench export")
    parser.add_argument("--load", choices=LOADS, help="only this load")
    parser.add_argument("--recording", type=pathlib.Path, help="recording to replay; default: a new one of each load (needs root)")
    parser.add_argument("--record-seconds", type=float, default=60)
    parser.add_argument("--symbols", type=int, default=2000, help="with --recording: invented functions of each executable")
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--samples", type=float, default=1e6, help="in the store, about")
    parser.add_argument("--rounds", type=int, default=3, help="figures are medians of so many runs of both programs")
    parser.add_argument("--way", choices=["-".join(way) for way in WAYS], help="only this way")
    parser.add_argument("--otelcol", metavar="PATH", help="binary of a Collector; default: built from test/bench/otelcol, once")
    parser.add_argument("--no-history", action="store_true")
    options = parser.parse_args()
    options.otelcol = options.otelcol or otelcol.binary(HERE / "otelcol")
    commit = report.commit_name()
    reference = measure.reference_ns()
    version = subprocess.run([options.otelcol, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    print(f"tributary {commit}; {version}; {os.cpu_count()} CPUs")
    figures, verdicts = [], []
    loads = [options.load or "mixed"] if options.recording else [options.load] if options.load else LOADS
    with lib.directory() as directory:
        for load in loads:
            store = Store(directory / load, load, options)
            for way, compression in WAYS:
                if options.way in (None, f"{way}-{compression}"):
                    named, judged = measure_way(store, load, options, way, compression)
                    figures += named
                    verdicts += judged
    if not options.no_history:
        report.append_history(figures, commit, reference)
    print()
    report.print_verdicts(verdicts)
    report.exit_with(verdicts)


if __name__ == "__main__":
    try:
        main()
    except lib.Failure as failure:
        sys.exit(f"FAILED: {failure}")
