"""Measures how much a reducer can receive: recorded sessions, replayed as a thousand nodes on loopback.

The reducer runs on one core, the sender on another.

    dev/bench intake [--recording FILE] [--nodes N] [--no-history] [--memory-only]

Without --recording the script records real loads first (needs root): a tight load, in which no new program starts, at
the default rate and at 97 Hz; and a mixed load, in which compilers and shells start all the time. Each pass of a replay
sends all definitions again. This machine's few cores make small batches. At 97 Hz a batch is as large as the batch of a
node with five times as many cores at the default rate. Figures of each load: samples decoded and committed per second
of the reducer's CPU time, user and system; the reducer's peak memory; bytes per sample; the share of the capacity that
remains when the sender offers ten times the capacity; and the reducer's memory when 50 nodes have sent a million samples.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import measure
import lib
import report

REDUCER_CORE, SENDER_CORE = 0, 1
LOADS = {"tight": ("tight", 19), "tight_97hz": ("tight", 97), "mixed": ("mixed", 19)}  # name in the figures: load, rate in Hz
SAMPLES_PER_CPU_SECOND = {"tight_97hz": 1e6}  # at least
MEMORY_NODES, MEMORY_SAMPLES = 50, 1e6
GOODPUT_SHARE = 0.8  # under overload, at least
MIB = 1 << 20


class PinnedReducer(lib.Reducer):
    """A reducer with one shard and with all its threads on one core."""

    def __init__(self, directory, name):
        super().__init__(directory, args=["--shards", "1"], data=pathlib.Path(directory) / f"{name}-data", name=name)
        subprocess.run(["taskset", "-a", "-p", "-c", str(REDUCER_CORE), str(self.pid)], check=True, capture_output=True)


def replay(recording, reducer, nodes, *more):
    return subprocess.Popen(["taskset", "-c", str(SENDER_CORE), lib.BIN / "tributary", "replay", recording, "--intake-port", str(reducer.intake_port),
                             "--nodes", str(nodes), "--json", *map(str, more)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    out, err = process.communicate()
    lib.check(process.returncode == 0, f"the replay failed: {err}")
    return json.loads(out)


def summary_of(recording):
    lines = subprocess.Popen([lib.BIN / "tributary", "inspect", recording], stdout=subprocess.PIPE, text=True)
    last = first_clock = last_clock = None
    for line in lines.stdout:
        last = json.loads(line)
        if "clock" in last and last["type"] == "batch":
            first_clock, last_clock = first_clock or last["clock"]["monotonic_ns"], last["clock"]["monotonic_ns"]
    lib.check(lines.wait() == 0, f"{recording} cannot be inspected")
    last["seconds"] = (last_clock - first_clock) / 1e9
    return last


def record(directory, name, seconds):
    """Records the frames that a node under this load sends in `seconds`. Returns the recording's path."""
    import mixed_load  # imported only for a recording: the load's programs may be missing
    load_name, rate = LOADS[name]
    recording = pathlib.Path(directory) / f"{name}.rec"
    with lib.programs() as programs:
        reducer = lib.Reducer(directory, name=f"{name}-recording")
        programs.append(reducer)
        load = {"tight": mixed_load.Tight, "mixed": mixed_load.Mixed}[load_name](directory)
        try:
            collector = lib.Collector(directory, reducer.intake_port, rate=rate, args=["--record-intake-output-path", recording])
            programs.append(collector)
            time.sleep(seconds)
            lib.check(collector.stop() == 0, "the collector's exit code")
        finally:
            load.stop()
        lib.check_law(reducer.status())
        reducer.stop()
    return recording


def measure_capacity(directory, recording, nodes, repeat, name):
    """Replays as fast as possible. Returns figures by name, with samples/s in wall-clock time."""
    with lib.programs() as programs:
        reducer = PinnedReducer(directory, f"{recording.stem}-{name}")
        programs.append(reducer)
        before = measure.cpu_ns(reducer.pid)
        started = time.monotonic()
        summary = finish(replay(recording, reducer, nodes, "--speed", "max", "--repeat", repeat))
        seconds = time.monotonic() - started
        cpu_s = (measure.cpu_ns(reducer.pid) - before) / 1e9
        status = reducer.status()
        lib.check_law(status, lost=0)
        lib.check(status["total"]["stored"] == summary["samples_acked"] == summary["samples_sent"], f"{status['total']}, {summary}")
        lib.check(len(status["nodes"]) == nodes, f"{len(status['nodes'])} nodes")
        peak = measure.memory_kib(reducer.pid)["VmHWM"] / 1024
        print(f"  {summary['samples_acked']} samples of {nodes} nodes in {seconds:.1f} s, {cpu_s:.1f} s of CPU; {summary['bytes_sent'] / MIB:.0f} MiB sent, "
              f"{summary['batches_built']} batches built, {summary['reconnects']} reconnects; "
              f"{status['reducer']['disk_bytes'] / summary['samples_acked']:.2f} B a sample on disk; "
              f"dictionaries asked for {reducer.metric('tributary_reducer_need_dictionary_total'):.0f}")
        lib.check(reducer.stop(60) == 0, "the reducer's exit code")
        return {"samples_per_cpu_second": summary["samples_acked"] / cpu_s, "peak_rss": peak,
                "wire_bytes_per_sample": summary["bytes_sent"] / summary["samples_acked"], "samples_per_second": summary["samples_acked"] / seconds}


def measure_overload(directory, recording, nodes, session, capacity, seconds):
    """Offers ten times the capacity. After the first pass, measures durable samples per second for `seconds`."""
    speed = 10 * capacity / (nodes * session["samples"] / session["seconds"])
    with lib.programs() as programs:
        reducer = PinnedReducer(directory, f"{recording.stem}-overload")
        programs.append(reducer)
        sender = replay(recording, reducer, nodes, "--speed", f"{speed:.3f}", "--repeat", 0)
        try:
            # Measure after the first pass, like most of the capacity run: until then the reducer's memory grows.
            lib.wait_for("a pass of each node", lambda: reducer.metric("tributary_reducer_committed_samples_total") > nodes * session["samples"], 120)
            cpu, begin, started = measure.cpu_ns(reducer.pid), reducer.metric("tributary_reducer_committed_samples_total"), time.monotonic()
            time.sleep(seconds)
            stored = reducer.metric("tributary_reducer_committed_samples_total") - begin
            took, cpu_s = time.monotonic() - started, (measure.cpu_ns(reducer.pid) - cpu) / 1e9
        finally:
            sender.send_signal(signal.SIGTERM)
            out, _ = sender.communicate()
        acked = json.loads(out)["samples_acked"]
        status = reducer.status()
        lib.check_law(status, lost=0)
        lib.check(status["total"]["stored"] >= acked, f"{acked} acknowledged, {status['total']}")
        print(f"  offered {10 * capacity:,.0f}/s ({speed:.1f} x real time), durable {stored / took:,.0f}/s, {stored / cpu_s:,.0f} per CPU second; nothing lost")
        reducer.kill()  # queued batches were never acknowledged
        return stored / took


def measure_memory(directory, recording, session):
    """Replays 50 nodes as fast as possible. Returns the reducer's resident memory in MiB: at the end, and its peak."""
    repeat = max(1, round(MEMORY_SAMPLES / MEMORY_NODES / session["samples"]))
    with lib.programs() as programs:
        reducer = PinnedReducer(directory, f"{recording.stem}-memory")
        programs.append(reducer)
        summary = finish(replay(recording, reducer, MEMORY_NODES, "--speed", "max", "--repeat", repeat))
        lib.check(reducer.status()["total"]["stored"] == summary["samples_sent"], f"{reducer.status()['total']}, {summary}")
        memory = measure.memory_kib(reducer.pid)
        lib.check(reducer.stop(60) == 0, "the reducer's exit code")
        return [("intake_rss_50_nodes", memory["VmRSS"] / 1024, "MiB"), ("intake_peak_rss_50_nodes", memory["VmHWM"] / 1024, "MiB")]


def measure_load(directory, recording, session, options):
    """Measures the capacity before and after the overload: a machine's speed varies by a fifth between minutes."""
    repeat = max(1, round(options.samples / options.nodes / session["samples"]))
    before = measure_capacity(directory, recording, options.nodes, repeat, "before")
    overload = measure_overload(directory, recording, options.nodes, session, before["samples_per_second"], options.overload_seconds)
    behind = measure_capacity(directory, recording, options.nodes, repeat, "behind")
    mean = {name: (value + behind[name]) / 2 for name, value in before.items()}
    return [("intake_samples_per_cpu_second", mean["samples_per_cpu_second"], "samples/s"),
            ("intake_peak_rss", max(before["peak_rss"], behind["peak_rss"]), "MiB"),
            ("intake_wire_bytes_per_sample", mean["wire_bytes_per_sample"], "B"),
            ("intake_overload_goodput_share", overload / mean["samples_per_second"], ""),
            ("intake_overload_samples_per_second", overload, "samples/s"),
            *measure_memory(directory, recording, session)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--recording", type=pathlib.Path)
    parser.add_argument("--record-seconds", type=float, default=120)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--samples", type=float, default=20e6, help="minimum number of samples to send in total")
    parser.add_argument("--overload-seconds", type=float, default=30)
    parser.add_argument("--memory-only", action="store_true", help="only measure the reducer's memory with 50 nodes under the mixed load")
    parser.add_argument("--no-history", action="store_true")
    options = parser.parse_args()
    lib.check(os.cpu_count() >= 2, "two cores: one for the reducer, one for the sender")

    commit = report.commit_name()
    reference = measure.reference_ns()
    with lib.directory() as directory:
        names = ["mixed"] if options.memory_only else LOADS
        loads = {"given": options.recording} if options.recording else {name: record(directory, name, options.record_seconds) for name in names}
        verdicts = []
        for name, recording in loads.items():
            session = summary_of(recording)
            print(f"{name} load: {session['samples']} samples in {session['seconds']:.0f} s, {session['bytes_per_sample']:.2f} B each in the file; "
                  f"load average {os.getloadavg()[0]:.1f}")
            figures = measure_memory(directory, recording, session) if options.memory_only else measure_load(directory, recording, session, options)
            named = [(figure.replace("intake_", f"intake_{name}_"), value, unit) for figure, value, unit in figures]
            for figure, value, unit in named:
                print(f"{figure:50} {value:16.3f}  {unit}")
            if not options.no_history:
                report.append_history(named, commit, reference)
            if options.memory_only:
                continue
            by_name = {figure: value for figure, value, _ in figures}
            speed, goodput = by_name["intake_samples_per_cpu_second"], by_name["intake_overload_goodput_share"]
            if name in SAMPLES_PER_CPU_SECOND:
                least = SAMPLES_PER_CPU_SECOND[name]
                verdicts.append((f"{name}: at least {least:,.0f} samples a CPU second: {speed:,.0f}", speed >= least))
            verdicts.append((f"{name}: goodput under overload at least {GOODPUT_SHARE:.0%}: {goodput:.0%}", goodput >= GOODPUT_SHARE))
        report.print_verdicts(verdicts)
        report.exit_with(verdicts)


if __name__ == "__main__":
    try:
        main()
    except lib.Failure as failure:
        sys.exit(f"FAILED: {failure}")
