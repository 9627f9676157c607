"""Tests process events: every start, exec and exit is stored once, or in a sum, or counted as lost.

TRIBUTARY_LONG=1 runs 5,000 processes instead of 1,000, a storm of 20 s instead of 2 s, and 10,000 execs instead of 1,000.
"""

import contextlib
import json
import math
import os
import pathlib
import re
import subprocess
import time

import faults
import lib
import process_lives

LONG = bool(os.environ.get("TRIBUTARY_LONG"))
BATCH_S = 0.5
SETTLE_S = 2 * BATCH_S
BUDGET = 200  # --event-budget's default
BUDGET_WINDOW_S = 10
ALL = ["--event-budget", "10000"]
STORM_RATE = 2000
RATE_HZ = 199
PF_KTHREAD = 0x200000


class Scene:
    """One reducer and one collector. Other programs of the machine have events too."""

    def __init__(self, directory, programs, args=(), rate=19):
        self.directory, self.programs, self.args, self.rate = directory, programs, args, rate
        self.reducer = lib.Reducer(directory)
        programs.append(self.reducer)
        self.start_collector()

    def start_collector(self):
        self.started_at = time.monotonic()
        before = self.count("sampling rate_hz")
        self.collector = lib.Collector(self.directory, self.reducer.intake_port, rate=self.rate,
                                       args=["--batch-interval", f"{BATCH_S * 1000:.0f}ms", *self.args])
        self.programs.append(self.collector)
        lib.wait_for("the collector's start", lambda: self.count("sampling rate_hz") > before or not self.collector.running(), 30)
        lib.check(self.collector.running(), "the collector ended")

    def count(self, words):
        log = self.directory / "collector.log"
        return log.read_text(errors="replace").count(words) if log.exists() else 0

    def restart_reducer(self):
        self.programs.remove(self.reducer)
        self.reducer = lib.Reducer(self.directory, intake_port=self.reducer.intake_port, data=self.reducer.data)
        self.programs.append(self.reducer)

    def find(self, **fields):
        """Returns the stored events with these values of their fields."""
        return [e for e in process_lives.events_of(self.reducer) if all(e[name] == value for name, value in fields.items())]

    def finish(self, lives, lost=(), runs=1):
        """Stops the collector, and compares all events with the lives and with the law. Returns (outcome, events)."""
        lib.wait_for("the collector's connection", lambda: any(node["connected"] for node in self.reducer.status()["nodes"]))
        time.sleep(SETTLE_S)
        lib.check(self.collector.stop(60) == 0, "the collector's exit code")
        self.ran_s = time.monotonic() - self.started_at
        self.status, events = self.reducer.status(), process_lives.events_of(self.reducer)
        counted = process_lives.check_law(self.status, events)
        print(f"  law of events: {self.status['total']['process_events']}", flush=True)
        lib.check(set(counted) <= set(lost), f"events were lost: {counted}, allowed {sorted(lost)}")
        lib.check_law(self.status)
        outcome = process_lives.compare(lives, events, lost=sum(counted.values()), runs=runs)
        lib.check(self.reducer.stop() == 0, "the reducer's exit code")
        return outcome, events


@contextlib.contextmanager
def scene(*args, **more):
    lib.mount_bpffs()
    with lib.directory() as d, lib.programs() as programs:
        yield Scene(d, programs, args, **more)


def check_command_line(reducer, selector):
    """Checks that `tributary events` prints the API's answer."""
    to_ms = lib.now_ms()
    printed = subprocess.run([lib.BIN / "tributary", "events", "--server", reducer.url, "--query", selector, "--from", "0", "--to", str(to_ms),
                              "--kind", "exit,sum", "--limit", "10000", "--json"], check=True, capture_output=True, text=True).stdout
    answer = reducer.json("/api/v1/events", query=selector, limit=10_000, kind="exit,sum", **{"from": 0, "to": to_ms})
    lib.check(answer["events"] and json.loads(printed)["events"] == answer["events"], f"tributary events prints {printed[:2000]}")


def every_process():
    """Every kind of life, one by one: the budget is large enough. One process exceeds the memory limit of its cgroup."""
    with scene(*ALL) as s:
        lives = process_lives.run(1, 5000 if LONG else 1000) + process_lives.run(2, 1, "--kinds", "oom")
        if LONG:
            lives += process_lives.run(3, 1, "--kinds", "again", "--execs", 10_000)
        time.sleep(SETTLE_S)
        check_command_line(s.reducer, '{process_executable_name="lives_3"}')
        outcome, _ = s.finish(lives)
        lib.check(outcome.single == len(lives), f"only {outcome.single} of {len(lives)} lives are stored one by one")
        lib.check(outcome.unknown_paths <= len(lives) / 100, f"{outcome.unknown_paths} exits have no path")


def storm():
    """2,000 processes per second, with the default budget: most are in sums, and nothing is lost."""
    seconds = 20 if LONG else 2
    with scene() as s:
        lives = process_lives.run(4, STORM_RATE * seconds, "--kinds", "exit,signal,vfork", "--rate", STORM_RATE)
        time.sleep(2)  # A stop counts the events that the budget does not allow as lost.
        outcome, events = s.finish(lives)
        # The bucket holds the budget of 10 s, and is full at the start.
        allowed = BUDGET * (BUDGET_WINDOW_S + s.ran_s)
        print(f"  {len(events)} records in {s.ran_s:.1f} s, the budget allows {allowed:.0f}")
        lib.check(len(events) <= allowed, f"{len(events)} records are above the budget of {allowed:.0f}")
        lib.check(outcome.summed > len(lives) / 2, "most processes of a storm are in sums")
        keys = {life.key for life in lives}
        seen = {process_lives.Key(e["name"], e["uid"], e["exit_code"], e["signal"], e["oom_killed"]) for e in events if e["kind"] in ("exit", "sum")}
        lib.check(keys <= seen, f"no event of {keys - seen}")


def sleeper(name, directory, programs):
    """Starts a process that only waits."""
    program = lib.Program(name, ["sleep", "600"], directory)
    programs.append(program)
    return program


def killed_collector():
    """kill -9 of the collector in a storm. Processes start, run and end while no collector runs."""
    lib.mount_bpffs()
    with lib.directory() as d, lib.programs() as programs:
        before = sleeper("before", d, programs)
        s = Scene(d, programs, ALL)
        ended, stays = sleeper("ended", d, programs), sleeper("stays", d, programs)
        for program in (ended, stays):
            lib.wait_for(f"the exec of {program.name}", lambda pid=program.pid: s.find(pid=pid, kind="exec"))
        with subprocess.Popen([lib.BIN / "lives", "5", str(2 * STORM_RATE), "--kinds", "exit,signal,vfork", "--rate", str(STORM_RATE)],
                              stdout=subprocess.PIPE, text=True) as storming:
            time.sleep(1)
            s.collector.kill()
            lives = process_lives.parse(storming.communicate()[0])
        programs.remove(s.collector)
        captured = sum(faults.pinned_captured(lib.EVENT_SLOTS).values())
        ended.kill()
        away = sleeper("away", d, programs)
        unseen = process_lives.run(6, 10, "--kinds", "exit")
        s.start_collector()
        lib.wait_for("the process that started without a collector", lambda: s.find(pid=away.pid, kind="seen_running"))
        lives += process_lives.run(7, 100)
        stays.kill()
        _, events = s.finish(lives, lost=["collector_killed"], runs=2)
        captured += int(re.findall(r" stopped .* events=(\d+)", s.collector.text())[-1])
        lib.check(s.status["total"]["process_events"]["captured"] == captured, f"the kernel counted {captured} events")

        def kinds_of(program):
            found = [e for e in events if e["pid"] == program.process.pid]
            lib.check(len({e["start_time_ns"] for e in found}) <= 1, f"{program.name} has several identities: {found}")
            return [e["kind"] for e in found]

        for program, kinds in ((before, ["seen_running"] * 2), (ended, ["start", "exec", "end_unknown"]), (stays, ["start", "exec", "seen_running", "exit"]),
                               (away, ["seen_running"])):
            lib.check(kinds_of(program) == kinds, f"{program.name} has the events {kinds_of(program)} instead of {kinds}")
        pids = {life.pid for life in unseen}
        lib.check(not [e for e in events if e["pid"] in pids and e["name"] == "lives" and e["kind"] == "exit"],
                  "processes that no collector saw have exits")


def reducer_away(*args):
    with scene(*ALL, *args) as s:
        lives = process_lives.run(8, 200)
        s.reducer.kill()
        lives += process_lives.run(9, STORM_RATE, "--kinds", "exit,signal,execs,vfork", "--rate", STORM_RATE)
        s.restart_reducer()
        outcome, _ = s.finish(lives)
        lib.check(outcome.single == len(lives), f"only {outcome.single} of {len(lives)} lives are stored one by one")


def killed_reducer():
    """kill -9 of the reducer, and a storm while it is away: nothing is lost, and nothing is stored twice."""
    reducer_away()
    with lib.directory() as spool:
        reducer_away("--spool-dir", spool / "spool")


def kernel_threads():
    """Returns {pid: name} of the kernel's threads."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = path.read_text(errors="replace").partition("(")[2].rpartition(")")
            if int(rest.split()[6]) & PF_KTHREAD:
                found[int(path.parent.name)] = name
    return found


def hostile():
    """Names of any bytes, zombies, reused pids, namespaces, many execs, threads that call exec, kernel threads."""
    with scene(*ALL) as s:
        lives = process_lives.run(10, 300, "--kinds", "name,zombie,namespace,thread_exec,threads,leader,daemon", "--parallel", 32)
        reused = process_lives.run(11, 300, "--kinds", "reuse", "--parallel", 1)
        lib.check(len({life.pid for life in reused}) == 1, "the pid was not reused")
        lives += reused + process_lives.run(12, 1, "--kinds", "again", "--execs", 1000)
        threads = kernel_threads()
        outcome, events = s.finish(lives)
        lib.check(outcome.single == len(lives), f"only {outcome.single} of {len(lives)} lives are stored one by one")
        lib.check(2 in threads, "kthreadd was not found")
        of_kernel = [e for e in events if threads.get(e["pid"]) == e["name"]]
        lib.check(not of_kernel, f"kernel threads have events: {of_kernel[:5]}")
        # kthreadd also starts the helpers that the kernel runs in user mode. These begin as kernel threads.
        forked = [e for e in events if e["kind"] in process_lives.STARTS and e["parent_pid"] == 2]
        lib.check(not forked, f"children of kthreadd have starts: {forked[:5]}")


def sampling_sigma_ns(cpu_ns):
    """Returns the standard deviation of the CPU time that samples show, at most.

    A sample stands for T = 1/199 s. During an interval of length d on a CPU, d/T ticks occur on average, and the number
    is one of the two whole numbers next to d/T. With a random phase its variance is f(1 − f), where f is the fraction
    of d/T: 1/6 on average. So k intervals have a variance of about k·T²/6. k is unknown, because other programs run on
    the CPUs too. But f(1 − f) is at most d/T, whatever the intervals are. So the variance of the sum, T² · Σ f(1 − f),
    is at most T² · t/T, as if ticks were independent of each other. Hence σ = T·√(t/T).
    """
    period_ns = 1e9 / RATE_HZ
    return period_ns * math.sqrt(cpu_ns / period_ns)


def cpu_agrees():
    """The CPU time in exits agrees with the samples' ns, for processes that start and end while they are sampled."""
    with scene(*ALL, rate=RATE_HZ) as s:
        start_ms, stolen = lib.now_ms(), lib.stolen_ns()
        with subprocess.Popen([lib.BIN / "lives", "13", "300", "--kinds", "exit,execs,burn,vfork", "--rate", "50"], stdout=subprocess.PIPE,
                              text=True) as mixed:
            lives = process_lives.run(41, 40, "--kinds", "long", "--parallel", 3)
            others = process_lives.parse(mixed.communicate()[0])
        stolen = lib.stolen_ns() - stolen
        time.sleep(SETTLE_S)
        end_ms = lib.now_ms()
        exits = {e["pid"]: e["cpu_ns"] for e in process_lives.events_of(s.reducer, start_ms, end_ms, kind="exit") if e["name"] == "lives"}
        by_events = by_samples = worst = 0
        for life in lives:
            graph = s.reducer.flamegraph(f'{{process_pid="{life.pid}"}}', start_ms, end_ms)
            cpu_ns, sampled_ns = exits[life.pid], graph.total_ns[0]
            off = abs(sampled_ns - cpu_ns) / sampling_sigma_ns(cpu_ns)
            worst = max(worst, off)
            lib.check(off <= 4, f"{sampled_ns / 1e6:.0f} ms by samples, {cpu_ns / 1e6:.0f} ms by the exit, {off:.1f} sigma: {life}")
            by_events, by_samples = by_events + cpu_ns, by_samples + sampled_ns
        # The samples' clock includes the time that the hypervisor took from the CPUs.
        bound = 4 * sampling_sigma_ns(by_events)
        print(f"  {by_events / 1e6:.0f} ms by exits, {by_samples / 1e6:.0f} ms by samples, bound ±{bound / 1e6:.0f} ms, stolen {stolen / 1e6:.0f} ms; "
              f"at most {worst:.2f} sigma for one process")
        lib.check(-bound <= by_samples - by_events <= bound + stolen, "the sums of CPU time do not agree")
        s.finish(lives + others)


if __name__ == "__main__":
    lib.main(every_process, storm, killed_collector, killed_reducer, hostile, cpu_agrees)
