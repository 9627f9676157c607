"""Compares the lives of processes (test/workloads/lives.c) with the stored process events.

A life is matched to events by its pid and by the start time in the events: the kernel takes this time during the fork,
and the life knows CLOCK_BOOTTIME before and after the fork. So the match needs no tolerance, also if pids are reused at
once.

Each life must be stored exactly once: event by event, or in a sum. Otherwise its events must be counted as lost.
"""

import codecs
import collections
import dataclasses
import json
import subprocess

import lib

TIME_NS = 10_000_000
TICK_NS = 10_000_000
LAUNCHER = "lives_launcher"  # the launcher's name at its end
ENDINGS = ("exit", "end_unknown")
STARTS = ("start", "seen_running")

codecs.register_error("each_byte", lambda e: ("\ufffd" * (e.end - e.start), e.end))


def text_of(hex_bytes):
    """Returns the text that the API's JSON has for these bytes: each ill-formed byte becomes U+FFFD."""
    return bytes.fromhex(hex_bytes).decode("utf-8", "each_byte")


@dataclasses.dataclass(frozen=True)
class Key:
    """What all processes of a sum have in common. The path is not part of it, because it may be unknown."""

    name: str
    uid: int
    exit_code: int
    signal: int
    oom: bool


class Life:
    def __init__(self, record):
        self.record = record
        for name in ("kind", "pid", "parent", "uid", "boot", "start", "end", "again", "program", "exit_code", "signal", "oom", "has_children"):
            setattr(self, name, record[name])
        self.name, self.started_as = text_of(record["name"]), text_of(record["started_as"])
        self.cpu_ns = record["user_ns"] + record["system_ns"]
        self.peak_bytes = record["peak_bytes"]
        # (name, earliest, latest); of many execs, the times are not known
        self.execs = [tuple(each) for each in record["execs"]] + [(self.program, self.start[0], self.end[1])] * self.again
        self.key = Key(self.name, self.uid, self.exit_code, self.signal, self.oom)
        self.events = 2 + len(self.execs)

    def __str__(self):
        return json.dumps(self.record)


def parse(text):
    return [Life(json.loads(line)) for line in text.splitlines()]


def run(seed, count, *options):
    """Runs `count` processes, and up to as many children of them. Returns their lives."""
    done = subprocess.run([lib.BIN / "lives", str(seed), str(count), *(str(o) for o in options)], check=True, capture_output=True, text=True)
    return parse(done.stdout)


def events_of(reducer, start_ms=0, end_ms=None, **more):
    """Returns all stored process events of a range, the oldest first. Reads page by page."""
    found, cursor = [], {}
    while True:
        answer = reducer.json("/api/v1/events", order="oldest", limit=10_000, **{"from": start_ms, "to": end_ms or lib.now_ms() + 60_000}, **cursor, **more)
        found += answer["events"]
        if not answer["events"] or not answer["next"]:
            return found
        cursor = {"cursor": answer["next"]}


def check_law(status, events=None):
    """Checks that captured = stored + lost exactly, and that each stored event is in `events` exactly once.

    Returns the number of lost events by reason.
    """
    total = status["total"]["process_events"]
    lost = {reason: n for reason, n in total["lost"].items() if n}
    lib.check(total["captured"] == total["stored"] + sum(lost.values()) and total["in_flight"] == 0, f"the law of events is broken: {total}")
    for name in ("captured", "stored"):
        of_nodes = sum(node["process_events"][name] for node in status["nodes"])
        lib.check(of_nodes == total[name], f"{name}: {of_nodes} events of all nodes, {total[name]} in total")
    if events is not None:
        read = sum(e["events"] if e["kind"] == "sum" else 1 for e in events)
        lib.check(read == total["stored"], f"{total['stored']} events stored, {read} read back")
    return lost


@dataclasses.dataclass
class Outcome:
    """What became of the lives."""

    single: int = 0  # lives with events of their own
    summed: int = 0  # lives in sums
    missing_events: int = 0
    unknown_paths: int = 0  # of exits
    cpu_off_ns: int = 0  # the largest difference of a process
    late_ns: int = 0  # how far the worst time is outside of its range

    def __str__(self):
        return (f"{self.single} one by one, {self.summed} in sums, {self.missing_events} events missing; CPU time at most {self.cpu_off_ns / 1e6:.2f} ms "
                f"off, times {self.late_ns / 1e6:.2f} ms, {self.unknown_paths} exits without a path")


class Comparison:
    """Compares lives with events.

    `lost`: how many events may be missing. `runs`: how many collectors ran, one after the other. If there were several,
    processes may have started, called exec or ended without an event.
    """

    def __init__(self, lives, events, lost=0, runs=1):
        self._lives, self._lost, self._runs, self._gaps = lives, lost, runs, runs > 1
        self._by_process = collections.defaultdict(list)
        self._sums = collections.defaultdict(list)
        for event in events:
            if event["kind"] == "sum":
                self._sums[Key(event["name"], event["uid"], event["exit_code"], event["signal"], event["oom_killed"])].append(event)
            else:
                self._by_process[event["node_id"], event["pid"], event["start_time_ns"]].append(event)
        self._starts_of_pid = collections.defaultdict(list)
        for process in self._by_process:
            self._starts_of_pid[process[1]].append(process)
        self._outcome = Outcome()

    def check(self):
        """Returns the Outcome. Fails if an event is wrong, missing or stored twice."""
        for process, events in self._by_process.items():
            self._check_once(process, events)
        claimed, rest = set(), collections.defaultdict(list)
        for life in self._lives:
            process = self._find(life)
            if process:
                lib.check(process not in claimed, f"two lives have the events of {process}: {life}")
                claimed.add(process)
                self._check_single(life, self._by_process[process])
            else:
                rest[life.key].append(life)
        self._check_strangers(claimed)
        for key, lives in rest.items():
            self._check_sums(key, lives, self._sums.pop(key, []))
        for sums in self._sums.values():
            for each in sums:
                lib.check(not each["executable"].startswith("lives"), f"a sum of processes that did not run: {each}")
        if not self._gaps:
            lib.check(self._outcome.missing_events <= self._lost, f"{self._outcome.missing_events} events are missing, {self._lost} counted as lost")
        return self._outcome

    def _check_once(self, process, events):
        starts = [e["at_ns"] for e in events if e["kind"] == "start"]
        seen = [e["at_ns"] for e in events if e["kind"] == "seen_running"]
        ends = [e["at_ns"] for e in events if e["kind"] in ENDINGS]
        lib.check(len(starts) <= 1 and len(ends) <= 1, f"{process} has {len(starts)} starts and {len(ends)} ends: {events}")
        # Each collector reports what runs at its start: it may send to another reducer than the one before it.
        lib.check(len(starts) + len(seen) <= self._runs, f"{process} was seen running {len(seen)} times: {events}")
        earliest, latest = min(e["at_ns"] for e in events), max(e["at_ns"] for e in events)
        lib.check(earliest >= min(starts + seen, default=0), f"{process} has an event before its start: {events}")
        lib.check(not starts or starts[0] == earliest, f"{process} has an event before its start: {events}")
        lib.check(not ends or latest == ends[0], f"{process} has an event after its end: {events}")

    def _find(self, life):
        found = [p for p in self._starts_of_pid.get(life.pid, []) if life.boot[0] <= p[2] <= life.boot[1]]
        lib.check(len(found) <= 1, f"one life has the events of {found}: {life}")
        return found[0] if found else None

    def _check_strangers(self, claimed):
        """Checks that no process of our programs has events, except the lives and their launchers."""
        for process, events in self._by_process.items():
            ends = [e for e in events if e["kind"] == "exit"]
            if process not in claimed and ends and ends[0]["executable"].startswith("lives"):
                lib.check(ends[0]["name"] == LAUNCHER, f"events of a process that is no life: {events}")

    def _check_time(self, at_ns, earliest, latest, what, life):
        late = max(earliest - at_ns, at_ns - latest, 0)
        self._outcome.late_ns = max(self._outcome.late_ns, late)
        lib.check(late <= TIME_NS, f"the time of {what} is {at_ns}, {late / 1e6:.1f} ms outside of {earliest} to {latest}: {life}")

    def _check_single(self, life, events):
        self._outcome.single += 1
        of_kind = collections.defaultdict(list)
        for event in sorted(events, key=lambda e: e["at_ns"]):
            of_kind[event["kind"]].append(event)
        for start in of_kind["start"]:
            self._check_time(start["at_ns"], *life.start, "the start", life)
            lib.check(start["parent_pid"] == life.parent, f"the start has the parent {start['parent_pid']}: {life}")
            lib.check(start["name"] == life.started_as, f"the start has the name {start['name']!r}: {life}")
        lib.check(self._gaps or not of_kind["seen_running"], f"{of_kind['seen_running']}: {life}")
        self._check_execs(life, of_kind["exec"])
        for end in of_kind["exit"]:
            self._check_exit(life, end, of_kind["start"])
        lib.check(self._gaps or not of_kind["end_unknown"], f"the end is unknown: {life}")
        self._outcome.missing_events += life.events - sum(len(of_kind[kind]) for kind in ("start", "exec", "exit"))

    def _check_execs(self, life, execs):
        if len(execs) == len(life.execs):
            for exec_, (name, earliest, latest) in zip(execs, life.execs):
                lib.check(exec_["name"] == name, f"exec of {exec_['name']!r}, not of {name}: {life}")
                lib.check(exec_["executable"] in ("", name), f"exec of the path {exec_['executable_path']!r}: {life}")
                self._check_time(exec_["at_ns"], earliest, latest, f"the exec of {name}", life)
        else:
            lib.check(len(execs) < len(life.execs), f"{len(execs)} execs instead of {len(life.execs)}: {life}")
            rest = iter(name for name, _, _ in life.execs)
            lib.check(all(e["name"] in rest for e in execs), f"the execs {[e['name'] for e in execs]} are not in order: {life}")

    def _check_exit(self, life, end, starts):
        self._check_time(end["at_ns"], *life.end, "the end", life)
        seen = Key(end["name"], end["uid"], end["exit_code"], end["signal"], end["oom_killed"])
        lib.check(seen == life.key and not end["core_dumped"], f"the end is {seen}, not {life.key}: {life}")
        lib.check(end["executable"] in ("", life.program), f"the end has the path {end['executable_path']!r}: {life}")
        self._outcome.unknown_paths += not end["executable"]
        lib.check(end["cpu_ns"] == end["user_ns"] + end["system_ns"], f"CPU time of {end}")
        if life.has_children:  # wait4 adds the CPU time of the children
            lib.check(end["cpu_ns"] <= life.cpu_ns + TICK_NS, f"{end['cpu_ns']} ns of CPU time with children: {life}")
        else:
            off = abs(end["cpu_ns"] - life.cpu_ns)
            self._outcome.cpu_off_ns = max(self._outcome.cpu_off_ns, off)
            lib.check(off <= TICK_NS, f"{end['cpu_ns']} ns of CPU time: {life}")
            lib.check(end["peak_rss_bytes"] == life.peak_bytes, f"a peak of {end['peak_rss_bytes']} bytes: {life}")
        for start in starts:
            run_ns = end["at_ns"] - start["at_ns"]
            lib.check(abs(end["run_ns"] - run_ns) <= TIME_NS, f"a run time of {end['run_ns']} ns, by the times {run_ns}: {life}")

    def _check_sums(self, key, lives, sums):
        processes = sum(s["processes"] for s in sums)
        events = sum(s["events"] for s in sums)
        self._outcome.summed += processes
        lib.check(processes <= len(lives), f"sums of {processes} processes, {len(lives)} such processes are without events: {key}")
        self._outcome.missing_events += sum(life.events for life in lives) - events
        for each in sums:
            lib.check(each["executable"] in {"", *(life.program for life in lives)}, f"a sum with the path {each['executable_path']!r}: {key}")
        if processes < len(lives):
            lib.check(self._gaps or self._lost > 0, f"{len(lives)} processes are without events, but only {processes} in sums: {key}")
            return
        lib.check(events == sum(life.events for life in lives), f"sums of {events} events: {key}")
        if any(life.has_children for life in lives):
            return
        off = abs(sum(s["cpu_ns"] for s in sums) - sum(life.cpu_ns for life in lives))
        lib.check(off <= TICK_NS * processes, f"the CPU time of {processes} processes is {off} ns off: {key}")
        peak, true_peak = max(s["peak_rss_bytes"] for s in sums), max(life.peak_bytes for life in lives)
        lib.check(peak == true_peak, f"a peak of {peak} bytes, by wait4 {true_peak}: {key}")


def compare(lives, events, **options):
    outcome = Comparison(lives, events, **options).check()
    print(f"  {len(lives)} processes: {outcome}", flush=True)
    return outcome
