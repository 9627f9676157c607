"""Compares a node without a reducer with the OpenTelemetry eBPF profiler: both send OTLP profiles over gRPC.

dev/bench peers --alone calls it. The programs run one after the other, each under a load of its own, to a new receiver
each. Every round has them in another order, and the figures are medians of the rounds.
"""

import statistics
import time

import measure  # first: it finds lib
import lib
import loads
import memory_cgroup
import otlp_sink

PEER_READY_S = 300  # on a busy machine the peer may take minutes to start
REPORT_S = 30  # the node sends every 15 s, after a wait for names of at most 10 s; the peer's 5 s vary by a fifth
NAMES, NO_NAMES, PEER = "names", "no names", "peer"
LOADS = {each.name: each for each in (loads.Recursion, loads.Tools)}
# At most so much of the peer's figure, by subject.
LIMITS = {NAMES: {"cpu_all": 1.0, "bytes": 1.2, "rss": 0.5, "rss_peak": 0.5}, NO_NAMES: {"cpu_all": 0.5, "bytes": 1.0, "rss": 0.5, "rss_peak": 0.5}}
ROWS = [
    ("samples", "samples in the window", "", "{:.0f}"),
    ("frames", "frames a sample", "", "{:.1f}"),
    ("cpu_all", "CPU per 1,000 samples: user, system, BPF", "ms", "{:.2f}"),
    ("cpu", "  of it user and system", "ms", "{:.2f}"),
    ("bpf", "  of it BPF programs", "ms", "{:.2f}"),
    ("core_percent", "CPU, share of one core", "%", "{:.3f}"),
    ("bytes", "bytes sent per sample", "B", "{:.1f}"),
    ("rss", "RSS, mean", "MiB", "{:.1f}"),
    ("rss_peak", "RSS, peak since the start", "MiB", "{:.1f}"),
    ("rss_no_maps", "RSS without mapped BPF maps", "MiB", "{:.1f}"),
    ("cgroup", "memory of the cgroup with memory files, mean", "MiB", "{:.1f}"),
]


def command_of(subject, address, rate, options):
    host, port = address.split(":")
    if subject == PEER:
        return [options.ebpf_profiler, "-collection-agent", address, "-disable-tls", "-samples-per-second", rate]
    return [lib.BIN / "kernel-collector", "--intake-encoder", "otlp_profiles", "--intake-host", host, "--intake-port", port, "--sample-rate", rate,
            "--cpu-budget", "off", f"--names={'true' if subject == NAMES else 'false'}"]


class Reading:
    """What is read at the beginning and at the end of a window."""

    def __init__(self, pid, sink):
        self.time_ns = time.time_ns()
        self.cpu_ns, self.bpf_ns = measure.cpu_ns(pid), measure.program_run_time(pid)[0]
        with sink.lock:
            _, self.bytes_sent, self.samples_sent = sink.arrivals[-1] if sink.arrivals else (0, 0, 0)
            self.frames = sink.samples.frames


def watch(pid, cgroup, seconds):
    """Reads the memory once a second. Returns the means in MiB: resident, and of the cgroup."""
    readings, end = [], time.monotonic() + seconds
    while True:
        readings.append((measure.memory_kib(pid)["VmRSS"] / 1024, cgroup.kib() / 1024))
        left = end - time.monotonic()
        if left <= 0:
            return [statistics.mean(each) for each in zip(*readings)]
        time.sleep(min(1, left))


def run(subject, load_class, rate, options):
    """Runs one program under one load. Returns its figures by name."""
    with lib.directory() as d, lib.programs() as programs, otlp_sink.OtlpSink() as sink, memory_cgroup.MemoryCgroup() as cgroup:
        load = load_class(d)
        try:
            time.sleep(2)
            program = lib.Program("subject", cgroup.prefix + command_of(subject, sink.address, rate, options), d)
            programs.append(program)
            time.sleep(options.settle)
            lib.wait_for("the first report", lambda: sink.arrivals or not program.running(), PEER_READY_S)
            lib.check(program.running(), "the program ended")
            first = Reading(program.pid, sink)
            rss, in_cgroup = watch(program.pid, cgroup, options.seconds)
            second = Reading(program.pid, sink)
            memory, mapped = measure.memory_kib(program.pid), measure.mapped_maps_kib(program.pid)
            time.sleep(REPORT_S)
            samples = sink.count_between(first.time_ns, second.time_ns)
            program.stop()
        finally:
            load.stop()
    lib.check(sink.unreadable == 0, f"{sink.unreadable} requests could not be read")
    lib.check(samples > 0, "no sample of the window arrived")
    cpu, bpf, sent = second.cpu_ns - first.cpu_ns, second.bpf_ns - first.bpf_ns, max(1, second.samples_sent - first.samples_sent)
    return {"samples": samples, "cpu": cpu / samples / 1000, "bpf": bpf / samples / 1000, "cpu_all": (cpu + bpf) / samples / 1000,
            "core_percent": (cpu + bpf) / (second.time_ns - first.time_ns) * 100, "bytes": (second.bytes_sent - first.bytes_sent) / sent,
            "frames": (second.frames - first.frames) / sent, "rss": rss, "rss_peak": memory["VmHWM"] / 1024,
            "rss_no_maps": (memory["VmRSS"] - mapped) / 1024, "cgroup": in_cgroup}


def print_table(title, medians):
    print(f"\n{title}\n{'':48}" + "".join(f"{subject:>12}" for subject in medians) + f"{'/ peer':>20}")
    for key, text, unit, form in ROWS:
        values = [form.format(each[key]) for each in medians.values()]
        ratios = [f"{medians[subject][key] / medians[PEER][key]:.2f}" for subject in (NAMES, NO_NAMES) if medians[PEER][key]]
        print(f"{text:48}" + "".join(f"{value:>12}" for value in values) + f"{', '.join(ratios):>20}  {unit}", flush=True)


def judge(where, rounds):
    """Yields (statement, whether it holds). Each ratio is the median of the rounds' ratios."""
    texts = {key: text for key, text, _, _ in ROWS}
    for subject, limits in LIMITS.items():
        for key, most in limits.items():
            ratios = [each[subject][key] / each[PEER][key] for each in rounds]
            ratio = statistics.median(ratios)
            shown = ", ".join(f"{each:.2f}" for each in ratios)
            yield f"{where}, {subject}: {texts[key]}: at most {most:g} of the peer's: {ratio:.2f} ({shown})", ratio <= most


def compare(options):
    """Returns (verdicts, results)."""
    verdicts, results = [], []
    with measure.BpfStats():
        for name, load_class in LOADS.items():
            for rate in (20, 97):
                if options.load not in (None, name) or options.rate not in (None, rate):
                    continue
                rounds = []
                for number in range(options.rounds):
                    order = [NAMES, NO_NAMES, PEER]
                    order = order[number % 3:] + order[:number % 3]
                    rounds.append({subject: run(subject, load_class, rate, options) for subject in order})
                    print("  round", number + 1, {s: {k: round(v, 2) for k, v in r.items()} for s, r in rounds[-1].items()}, flush=True)
                medians = {s: {key: statistics.median(each[s][key] for each in rounds) for key, *_ in ROWS} for s in (NAMES, NO_NAMES, PEER)}
                print_table(f"{name}, {rate} Hz, medians of {options.rounds}: {load_class.__doc__.split(': ', 1)[1]}", medians)
                verdicts += judge(f"{name} {rate} Hz", rounds)
                results.append({"load": name, "rate": rate, "rounds": rounds})
    return verdicts, results


def figures_of(results):
    """Yields the figures for the history: (name, value, unit)."""
    for each in results:
        for subject in (NAMES, NO_NAMES):
            for key in ("cpu_all", "bytes", "rss", "rss_peak"):
                ratio = statistics.median(r[subject][key] / r[PEER][key] for r in each["rounds"])
                yield f"alone_{each['load']}_{each['rate']}hz_{subject.replace(' ', '_')}_{key}_of_peer", ratio, ""
