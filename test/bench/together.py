"""Compares bytes on the wire: Tributary and the OpenTelemetry eBPF profiler, each at 97 and at 20 Hz, under one load.

All four run at the same time, so that all see the same programs do the same things. So this script has no figures of
CPU or memory. On a busy machine the peer can take minutes to attach to all processes. Tributary and the count of both
start when the peer has reported. Therefore Tributary's figures include its first batches, in which everything is new;
the peer's figures do not."""

import pathlib
import time

import measure  # first: it finds lib
import intake_tap
import lib
import otlp_sink

RATES = (97, 20)
SECONDS = 600
BATCH_S = 5  # the collector's default, and the peer's report interval
PEER_READY_S = 300


class Ours:
    name = "tributary"

    def __init__(self, directory, rate, options):
        self.rate = rate
        home = directory / f"tributary-{rate}"
        home.mkdir()
        self.reducer = lib.Reducer(home)
        record = pathlib.Path(options.keep) / f"intake-{rate}.bin" if options.keep else None
        self.tap = intake_tap.IntakeTap(self.reducer.intake_port, record)
        arguments = ["--node-id", f"bench-{rate}", "--batch-interval", f"{options.batch_interval:g}s"]
        self.program = lib.Collector(home, self.tap.port, rate=rate, args=arguments)

    def sent(self):
        """Returns (bytes without symbol tables, samples) just after a batch was stored: the two belong together."""
        before = self.tap.acks
        lib.wait_for("a batch", lambda: self.tap.acks != before, 60, step_s=0.01)
        return self.tap.acknowledged_bytes, self.reducer.status()["total"]["stored"]

    def stop(self):
        """Ends the collector, reads the totals of the whole session, and checks the law."""
        lib.check(self.program.stop() == 0, "the collector's exit code")
        status = self.reducer.status()
        lib.check_law(status)
        self.total = status["total"]
        self.complete = self.reducer.json("/api/v1/stack-health", **{"from": 0, "to": lib.now_ms()})["complete_share"]
        self.reducer.stop()


class Peer:
    name = "peer"

    def __init__(self, directory, rate, options):
        self.rate = rate
        home = directory / f"peer-{rate}"
        home.mkdir()
        self.sink = otlp_sink.OtlpSink().__enter__()
        arguments = ["-collection-agent", self.sink.address, "-disable-tls", "-samples-per-second", rate]
        self.program = lib.Program("peer", [options.ebpf_profiler, *arguments], home)

    def sent(self):
        with self.sink.lock:
            _, received, samples = self.sink.arrivals[-1] if self.sink.arrivals else (0, 0, 0)
        return received, samples

    def stop(self):
        self.program.stop()
        lib.check(self.sink.unreadable == 0, f"{self.sink.unreadable} requests of the peer could not be read")
        self.frames = self.sink.samples.frames / max(1, len(self.sink.samples.times))
        self.sink.__exit__()


def run(load_class, options):
    """Returns (subjects, readings). `readings` has one (seconds, [(bytes, samples) per subject]) for each minute."""
    with lib.directory() as directory, lib.programs() as programs:
        if options.keep:
            pathlib.Path(options.keep).mkdir(parents=True, exist_ok=True)
        load = load_class(directory)
        try:
            print(f"load {load.name}: {', '.join(load.parts)}" + (f"; not installed: {', '.join(load.left_out)}" if load.left_out else ""), flush=True)
            time.sleep(2)
            subjects = []
            for rate in RATES:
                subjects.append(Peer(directory, rate, options))
                programs.append(subjects[-1].program)
            for peer in list(subjects):
                lib.wait_for("the peer's first report", lambda: peer.sent()[1] or not peer.program.running(), PEER_READY_S)
            for rate in RATES:
                subjects.append(Ours(directory, rate, options))
                programs += [subjects[-1].program, subjects[-1].reducer]
            started, readings = time.monotonic(), [(0, [s.sent() if isinstance(s, Peer) else (0, 0) for s in subjects])]
            while time.monotonic() - started < options.seconds:
                minute = 60 * len(readings)
                time.sleep(max(0, started + min(minute, options.seconds) - time.monotonic()))
                lib.check(all(s.program.running() for s in subjects), "a program ended")
                readings.append((time.monotonic() - started, [s.sent() for s in subjects]))
                print(f"  {readings[-1][0]:4.0f} s  " + "  ".join(
                    f"{s.name} {s.rate} Hz: {each:.2f}" for s, each in zip(subjects, per_sample(readings[0], readings[-1]))), flush=True)
        finally:
            load.stop()
        for subject in subjects:
            subject.stop()
        return subjects, readings


def per_sample(earlier, later):
    """Returns the bytes per sample of each subject between two readings."""
    return [(b - b0) / max(1, n - n0) for (b0, n0), (b, n) in zip(earlier[1], later[1])]


def print_types(ours):
    """Prints the bytes that one of our collectors sent, by message type."""
    sent, answered = ours.tap.snapshot()
    samples = max(1, ours.total["stored"])
    print(f"\ntributary, {ours.rate} Hz, by message, to the session's end: {ours.tap.connections} connection"
          f"{'s' if ours.tap.connections != 1 else ''}; captured {ours.total['captured']} = stored {ours.total['stored']} + lost "
          f"{sum(ours.total['lost'].values())}; complete stacks {ours.complete:.4f}")
    for name, total in sorted(sent.bytes.items(), key=lambda item: -item[1]):
        headers = sent.frames[name] * intake_tap.HEADER.size
        print(f"  {name:16} {sent.frames[name]:7} frames {total:10} B, of it frame headers {headers:7} B; {total / samples:7.3f} B a sample"
              f"{'  (symbol tables: once a reducer, not counted)' if name == 'symbols' else ''}")
    print(f"  {'answers':16} {sum(answered.frames.values()):7} frames {sum(answered.bytes.values()):10} B, the other way")


def report(load_class, subjects, readings, options):
    """Prints the report. Returns (verdicts, figures)."""
    print(f"\n{load_class.name}: {load_class.__doc__.split(': ', 1)[1]} Batches and reports of {options.batch_interval:g} s.")
    print("Bytes a sample of each minute, all definitions and headers counted:")
    columns = [f"{s.name} {s.rate} Hz" for s in subjects]
    print(f"{'':>8}" + "".join(f"{c:>18}" for c in columns))
    for earlier, later in zip(readings, readings[1:]):
        print(f"{later[0]:6.0f} s" + "".join(f"{each:18.2f}" for each in per_sample(earlier, later)))
    totals = per_sample(readings[0], readings[-1])
    counts = [n - n0 for (_, n0), (_, n) in zip(readings[0][1], readings[-1][1])]
    print(f"{'all':>8}" + "".join(f"{each:18.2f}" for each in totals))
    print(f"{'samples':>8}" + "".join(f"{n:18}" for n in counts))
    by_subject = {(s.name, s.rate): each for s, each in zip(subjects, totals)}
    for subject in subjects:
        if isinstance(subject, Ours):
            print_types(subject)
        else:
            print(f"\npeer, {subject.rate} Hz: {subject.frames:.1f} frames a sample")
    verdicts, figures = [], []
    for rate in RATES:
        mine, theirs = by_subject["tributary", rate], by_subject["peer", rate]
        bound = load_class.bounds[rate]
        verdicts.append((f"{load_class.name} {rate} Hz: at most {bound} bytes a sample: {mine:.2f}", mine <= bound))
        if load_class.name == "mixed":
            verdicts.append((f"{load_class.name} {rate} Hz: at most 1/5 of the peer's {theirs:.1f}: 1/{theirs / mine:.2f}", mine <= theirs / 5))
        prefix = f"{load_class.name}_{rate}hz_together"
        figures += [(f"{prefix}_wire_bytes_per_sample", mine, "B"), (f"{prefix}_peer_wire_bytes_per_sample", theirs, "B")]
    return verdicts, figures
