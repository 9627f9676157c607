"""Compares Tributary's kernel-collector with the OpenTelemetry eBPF profiler: see dev/bench and docs/benchmarks.md.

The two programs run one after the other, under the same loads. The caller must have built the other program. It sends
to an endpoint of this script, which counts the samples and bytes that arrive.
"""

import argparse
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import subprocess
import time

import alone
import loads
import measure
import lib
import mixed_load
import otlp_sink
import report
import together

PYTHON_LOADS = (loads.Python.name, loads.PythonChurn.name)
REPORT_S = 7  # both report every 5 s, the peer with a variation of a fifth


@dataclasses.dataclass
class Reading:
    """Figures read at the beginning and at the end of a window."""

    time_ns: int  # since 1970
    cpu_ns: int
    bpf_ns: int
    bytes_sent: int
    symbol_bytes: int
    samples_sent: int  # samples that bytes_sent contained


class Ours:
    name = "tributary"

    def __init__(self, directory, rate, _options):
        self.reducer = lib.Reducer(directory)
        self.started_ns = time.time_ns()
        self.program = lib.Collector(directory, self.reducer.intake_port, rate=rate)

    def sent(self):
        """Returns (bytes, bytes of symbol tables among them, samples).

        It reads them just after a batch arrived, so the three belong together.
        """
        stored = self.reducer.status()["total"]["stored"]
        lib.wait_for("a batch", lambda: self.reducer.status()["total"]["stored"] != stored, REPORT_S)
        status = self.reducer.status()
        return status["nodes"][0]["wire_bytes"], int(self.reducer.metric("tributary_intake_symbol_bytes_total")), status["total"]["stored"]

    def _health(self, begin_ns, end_ns):
        return self.reducer.json("/api/v1/stack-health", **{"from": begin_ns // 10**6, "to": end_ns // 10**6})

    def count(self, begin_ns, end_ns):
        return self._health(begin_ns, end_ns)["samples"]

    def complete_share(self, begin_ns, end_ns):
        return self._health(begin_ns, end_ns)["complete_share"]

    def named_share(self, begin_ns, end_ns):
        """Returns the share of stacks that are complete, and in which no name of Python is missing (otlp_sink.py)."""
        health = self._health(begin_ns, end_ns)
        walked = health["samples"] - health["endings"].get("kernel_only", 0)
        answer = self.reducer.json("/api/v1/flamegraph", frames="all", max_nodes=1_000_000,
                                   **{"from": begin_ns // 10**6, "to": end_ns // 10**6})
        return (health["endings"].get("complete", 0) - unnamed_samples(answer)) / walked if walked else None

    def first(self, complete):
        """Returns the ns from the start to the first sample (or the first complete sample).

        It searches for the shortest range from the start that contains such a sample. None: no sample within 60 s.
        """
        low, high = 0, 60_000
        while high - low > 1:
            middle = (low + high) // 2
            health = self._health(self.started_ns, self.started_ns + middle * 10**6)
            found = health["endings"].get("complete", 0) if complete else health["samples"]
            low, high = (low, middle) if found else (middle, high)
        return high * 10**6 if high < 60_000 else None

    def stop(self):
        lib.check(self.program.stop() == 0, "the collector's exit code")
        lib.check_law(self.reducer.status())
        self.law = self.reducer.status()["total"]
        lost = sum(self.law["lost"].values())
        print(f"  captured {self.law['captured']} = stored {self.law['stored']} + lost {lost}", flush=True)

    def end(self):
        self.reducer.stop()


class Peer:
    name = "peer"

    def __init__(self, directory, rate, options, error_frames=False):
        self.sink = otlp_sink.OtlpSink().__enter__()
        self.started_ns = time.time_ns()
        arguments = ["-collection-agent", self.sink.address, "-disable-tls", "-samples-per-second", rate]
        self.program = lib.Program("peer", [options.ebpf_profiler, *arguments] + ["-send-error-frames"] * error_frames, directory)

    def sent(self):
        with self.sink.lock:
            _, received, samples = self.sink.arrivals[-1] if self.sink.arrivals else (0, 0, 0)
        return received, 0, samples

    def count(self, begin_ns, end_ns):
        return self.sink.count_between(begin_ns, end_ns)

    def complete_share(self, _begin_ns, _end_ns):
        samples = self.sink.samples
        walked = len(samples.times) - samples.kernel_only
        return (walked - samples.cut) / walked if walked else None

    def named_share(self, _begin_ns, _end_ns):
        samples = self.sink.samples
        walked = len(samples.times) - samples.kernel_only
        return (walked - samples.cut_or_unnamed) / walked if walked else None

    def first(self, complete):
        samples = self.sink.samples
        first = samples.first_complete if complete else min(samples.times, default=0)
        return first - self.started_ns if first else None

    def stop(self):
        self.program.stop()
        lib.check(self.sink.unreadable == 0, f"{self.sink.unreadable} requests of the peer could not be read")

    def end(self):
        self.sink.__exit__()


def unnamed_samples(answer):
    """Returns the samples of a flame graph in which a name of Python is missing."""
    nodes, kinds = answer["nodes"], [kind["name"] for kind in answer["kinds"]]
    unnamed = 0
    states = [(False, False, False)]  # of each stack: has code of the interpreter, has Python, has Python without a name
    for i in range(1, len(nodes["parent"])):
        interpreter, python, nameless = states[nodes["parent"][i]]
        name, executable = answer["names"][nodes["name"][i]], nodes["executable"][i]
        if kinds[nodes["kind"][i]] == "python":
            python, nameless = True, nameless or name.startswith("[")
        elif executable >= 0 and re.match(r"(lib)?python\d", answer["executables"][executable]):
            interpreter = True
        states.append((interpreter, python, nameless))
        if nameless or (interpreter and not python):
            unnamed += nodes["self_count"][i]
    return unnamed


def read(subject):
    costs = time.time_ns(), measure.cpu_ns(subject.program.pid), measure.program_run_time(subject.program.pid)[0]
    return Reading(*costs, *subject.sent())


def run(make, load_class, rate, options):
    """Runs one program under one load. Returns its figures by name."""
    with lib.directory() as d, lib.programs() as programs:
        load = load_class(d)
        try:
            time.sleep(2)
            maps_before = measure.map_ids()
            subject = make(d, rate, options)
            programs.append(subject.program)
            if isinstance(subject, Ours):
                programs.append(subject.reducer)
            time.sleep(options.settle)
            lib.check(subject.program.running(), "the program ended")
            pid = subject.program.pid
            first = read(subject)
            time.sleep(max(0, first.time_ns / 1e9 + options.seconds - time.time()))
            second = read(subject)
            memory, mapped = measure.memory_kib(pid), measure.mapped_maps_kib(pid)
            maps = measure.map_bytes(pid, maps_before)
            time.sleep(REPORT_S)
            samples = subject.count(first.time_ns, second.time_ns)
            out = {"samples": samples}
            cpu, bpf = second.cpu_ns - first.cpu_ns, second.bpf_ns - first.bpf_ns
            out["cpu"] = cpu / samples * 1000 / 1e6
            out["bpf"] = bpf / samples * 1000 / 1e6
            out["cpu_all"] = out["cpu"] + out["bpf"]
            out["core_percent"] = (cpu + bpf) / (second.time_ns - first.time_ns) * 100
            out["rss_anon"], out["rss_peak"] = memory["RssAnon"] / 1024, memory["VmHWM"] / 1024
            out["rss"], out["maps"] = (memory["VmRSS"] - mapped) / 1024, maps / 2**20
            out["rss_and_maps"] = out["rss"] + out["maps"]
            sent = second.samples_sent - first.samples_sent
            symbols = second.symbol_bytes - first.symbol_bytes
            out["bytes"] = (second.bytes_sent - first.bytes_sent - symbols) / max(1, sent)
            out["symbol_bytes"] = second.symbol_bytes
            out["first_sample"], out["first_complete"] = seconds(subject.first(False)), seconds(subject.first(True))
            out["complete"] = subject.complete_share(first.time_ns, second.time_ns)
            out["named"] = subject.named_share(first.time_ns, second.time_ns)
            subject.stop()
            subject.end()
            return out
        finally:
            load.stop()


def seconds(ns):
    return None if ns is None else ns / 1e9


def peers_shares(load_class, rate, options):
    """Measures the peer's shares of complete and of named stacks in a separate run, a third as long.

    By default the peer does not report where a stack was cut. The option that makes it report this has a cost.
    """
    with lib.directory() as d, lib.programs() as programs:
        load = load_class(d)
        try:
            time.sleep(2)
            peer = Peer(d, rate, options, error_frames=True)
            programs.append(peer.program)
            time.sleep(options.settle + options.seconds / 3 + REPORT_S)
            shares = {"complete": peer.complete_share(0, 0), "named": peer.named_share(0, 0)}
            peer.stop()
            peer.end()
            return shares
        finally:
            load.stop()


ROWS = [
    ("samples", "samples in the window", "", "{:.0f}"),
    ("cpu_all", "CPU per 1,000 samples: user, system, BPF", "ms", "{:.2f}"),
    ("cpu", "  of it user and system", "ms", "{:.2f}"),
    ("bpf", "  of it BPF programs", "ms", "{:.2f}"),
    ("core_percent", "CPU, share of one core", "%", "{:.3f}"),
    ("rss_anon", "RssAnon", "MiB", "{:.1f}"),
    ("rss_peak", "RSS, peak since the start", "MiB", "{:.1f}"),
    ("rss", "RSS without mapped BPF maps", "MiB", "{:.1f}"),
    ("maps", "kernel memory of BPF maps", "MiB", "{:.2f}"),
    ("rss_and_maps", "RSS plus maps", "MiB", "{:.1f}"),
    ("bytes", "bytes sent per sample, symbol tables left out", "B", "{:.1f}"),
    ("symbol_bytes", "symbol tables sent, since the start", "B", "{:.0f}"),
    ("first_sample", "start to the first sample taken", "s", "{:.2f}"),
    ("first_complete", "start to the first complete stack", "s", "{:.2f}"),
    ("complete", "share of complete stacks", "", "{:.4f}"),
    ("named", "share of complete stacks with all names of Python", "", "{:.4f}"),
]


def print_table(title, ours, peer):
    print(f"\n{title}\n{'':48} {'tributary':>12} {'peer':>12} {'ratio':>8}")
    for key, text, unit, form in ROWS:
        a, b = ours[key], peer[key]
        ratio = f"{a / b:8.3f}" if a is not None and b else f"{'':>8}"
        print(f"{text:48} {'-' if a is None else form.format(a):>12} {'-' if b is None else form.format(b):>12} {ratio}  {unit}")


def judge(load, rate, ours, peer):
    """Yields (statement, whether it holds) for each promise."""
    where = f"{load} {rate} Hz:"
    of_python = load in PYTHON_LOADS
    share = 0.4 if of_python else 0.2 if load == "churn" else 0.5
    ratio = ours["cpu_all"] / peer["cpu_all"]
    yield f"{where} CPU per 1,000 samples at most {share:.0%} of the peer's: {ratio:.1%}", ratio <= share
    yield f"{where} RssAnon at most 20 MiB: {ours['rss_anon']:.1f}", ours["rss_anon"] <= 20
    ratio = ours["rss_and_maps"] / peer["rss_and_maps"]
    yield f"{where} RSS plus maps at most 50% of the peer's: {ratio:.1%}", ratio <= 0.5
    share = 0.25 if of_python else 1
    yield f"{where} bytes per sample at most {share:.0%} of the peer's: {ours['bytes']:.1f}, {peer['bytes']:.1f}", ours["bytes"] <= share * peer["bytes"]
    first = ours["first_complete"]
    yield f"{where} first complete stack within 1 s: {'never' if first is None else f'{first:.2f}'}", first is not None and first <= 1
    if of_python and peer["named"] is not None:
        yield (f"{where} share of complete stacks with names no lower than the peer's: {ours['named'] or 0:.4f}, {peer['named']:.4f}",
               (ours["named"] or 0) >= peer["named"])
    if peer["complete"] is not None:
        yield (f"{where} share of complete stacks no lower than the peer's: {ours['complete'] or 0:.4f}, {peer['complete']:.4f}",
               (ours["complete"] or 0) >= peer["complete"])


def mount_tracefs():
    """Mounts tracefs: the peer attaches to tracepoints and does not start without it."""
    if not pathlib.Path("/sys/kernel/tracing/events").is_dir():
        subprocess.run(lib.ROOT + ["mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"], check=True)


def describe(options, window):
    commit = report.commit_name()
    binary = pathlib.Path(options.ebpf_profiler).read_bytes()
    built = {key.decode(): value.decode() for key, value in re.findall(rb"build\tvcs\.(revision|modified)=(\w+)", binary)}
    print(f"tributary {commit}; peer {built.get('revision', 'of unknown commit')}"
          f"{', modified' if built.get('modified') == 'true' else ''}, sha256 {hashlib.sha256(binary).hexdigest()[:16]}; "
          f"Linux {os.uname().release}, {os.cpu_count()} CPUs; {window}; load average before {os.getloadavg()[0]:.2f}", flush=True)
    return commit


def compare_bytes(load_class, options):
    options.seconds = options.seconds or together.SECONDS
    commit = describe(options, f"{options.seconds:g} s, all at once: bytes only, CPU and memory are not comparable so")
    subjects, readings = together.run(load_class, options)
    verdicts, figures = together.report(load_class, subjects, readings, options)
    if options.history:
        report.append_history(figures, commit)
    return verdicts, [{"figure": figure, "value": value, "unit": unit} for figure, value, unit in figures]


def selected_loads(name):
    if name == "python":
        return [loads.Python, loads.PythonChurn]
    return [each for each in (loads.Recursion, loads.Tools) if name in (None, each.name)]


def compare_in_turn(options):
    options.seconds = options.seconds or 60
    describe(options, f"windows of {options.seconds:g} s, {options.settle:g} s after the start")
    results, verdicts = [], []
    with measure.BpfStats():
        for load_class in selected_loads(options.load):
            for rate in (20, 97):
                if options.rate not in (None, rate):
                    continue
                ours = run(Ours, load_class, rate, options)
                peer = run(Peer, load_class, rate, options)
                peer.update(peers_shares(load_class, rate, options))
                print_table(f"{load_class.name}, {rate} Hz: {load_class.__doc__.split(': ', 1)[1]}", ours, peer)
                verdicts += judge(load_class.name, rate, ours, peer)
                results.append({"load": load_class.name, "rate": rate, "tributary": ours, "peer": peer})
    return verdicts, results


def compare_alone(options):
    lib.check(options.load in (None, *alone.LOADS), f"--alone has no load {options.load}")
    options.seconds = options.seconds or 60
    commit = describe(options, f"{options.rounds} rounds, windows of {options.seconds:g} s, {options.settle:g} s after the start")
    verdicts, results = alone.compare(options)
    if options.history:
        report.append_history(alone.figures_of(results), commit)
    return verdicts, results


def main():
    parser = argparse.ArgumentParser(prog="dev/bench peers")
    parser.add_argument("--ebpf-profiler", required=True, metavar="PATH",
                        help="binary of the OpenTelemetry eBPF profiler, the peer")
    parser.add_argument("--alone", action="store_true",
                        help="compare nodes without a reducer, with and without names; loads steady and churn")
    parser.add_argument("--rounds", type=int, default=3, help="--alone: the figures are medians of so many runs of each program")
    parser.add_argument("--seconds", type=float,
                        help=f"length of each window in s; default 60, and {together.SECONDS} with mixed and tight")
    parser.add_argument("--settle", type=float, default=15, help="seconds from a program's start to its window")
    parser.add_argument("--load", choices=["steady", "churn", "python", "mixed", "tight"],
                        help="this load only; without --load: steady and churn; python: two loads of Python, steady and churning; "
                             "mixed and tight count only bytes, of all programs at once")
    parser.add_argument("--rate", type=int, choices=[20, 97], help="this rate in Hz only; mixed and tight run both at once")
    parser.add_argument("--batch-interval", type=float, default=together.BATCH_S,
                        help="mixed, tight: Tributary's batch interval, in s")
    parser.add_argument("--keep", metavar="DIR", help="mixed, tight: write what Tributary's collectors send to DIR/intake-RATE.bin")
    parser.add_argument("--history", action="store_true", help="--alone, mixed, tight: append the figures to test/bench/history.jsonl")
    parser.add_argument("--json", metavar="PATH", help="also write all figures to this file")
    options = parser.parse_args()

    mount_tracefs()
    at_once = {each.name: each for each in (mixed_load.Mixed, mixed_load.Tight)}
    if options.alone:
        verdicts, results = compare_alone(options)
    elif options.load in at_once:
        verdicts, results = compare_bytes(at_once[options.load], options)
    else:
        verdicts, results = compare_in_turn(options)
    print()
    report.print_verdicts(verdicts)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    report.exit_with(verdicts)


if __name__ == "__main__":
    main()
