"""Tests the names of Python processes that live shortly.

    short_processes_test.py [TEST…]     environment variable TRIBUTARY_LONG=1: 200 processes, otherwise 40
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import chains
import interpreters
import stacks

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import lib  # noqa: E402

LONG = os.environ.get("TRIBUTARY_LONG") == "1"
PROCESSES = 200 if LONG else 40
BUSY_S = 0.06
RATE = 999
NAMED_MIN = 0.95
GROWTH_MAX_KIB = 12 * 1024
LOOP = "_PyEval_EvalFrameDefault"


def rss_kib(program):
    status = pathlib.Path(f"/proc/{program.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1))


class Node:
    """A reducer and a collector that has taken a first sample."""

    def __init__(self, directory, programs, rate=RATE):
        self.reducer = lib.Reducer(directory)
        programs.append(self.reducer)
        self.start = lib.now_ms()
        self.collector = lib.Collector(directory, self.reducer.intake_port, rate=rate, args=["--batch-interval", "500ms"])
        programs.append(self.collector)
        lib.wait_for("a sample", lambda: self.reducer.status()["total"]["captured"] > 0 or not self.collector.running(), 30)
        lib.check(self.collector.running(), "the collector ended")

    def wait_for_name(self, pid, function):
        """Waits until the reducer has the symbols of the program: it asks for them after the first samples."""
        def is_there():
            return any(frame["function"] == function for stack, _ in self.stacks(pid, frames="all").counted for frame in stack)

        lib.wait_for(f"the name {function}", is_there, 60, 0.5)

    def stop(self):
        lib.check(self.collector.stop() == 0, "the collector's exit code")
        lib.check_law(self.reducer.status())

    def stacks(self, pid, start=None, **more):
        return stacks.Stacks(self.reducer, f'{{process_pid="{pid}"}}', start or self.start, lib.now_ms() + 1000, **more)


def start_processes(system, directory, first, count):
    """Runs processes, two at a time, half of them as forks of one process. Returns [(number, pid)]."""
    forks = system.run(directory, "short_python.py", "forks", first, count // 2, BUSY_S)
    printed = ""
    for number in range(first + count // 2, first + count):
        printed += system.run(directory, "short_python.py", "one", number, BUSY_S).communicate(timeout=60)[0]
    printed += forks.communicate(timeout=120)[0]
    lib.check(forks.returncode == 0, "the forks failed")
    return [tuple(map(int, line.split())) for line in printed.splitlines()]


def check_process(number, found, wrong):
    """Counts samples in the functions of the process. Adds samples in functions of others to `wrong`. Returns two counts."""
    busy = named = 0
    for stack, count in found.counted:
        own = [frame for frame in stack if chains.is_language(frame) and re.match(r"(work|outer)_", frame["function"])]
        if any(frame["function"].rsplit("_", 1)[1] != str(number) or frame["file"] != f"/made/short_{number}.py" for frame in own):
            wrong.append(f"{count} samples of process {number}: {chains.stack_text(stack)}")
        if any(frame["function"] == f"work_{number}" and frame["line"] in (2, 3) for frame in own):
            named += count
        if any(frame["function"] == LOOP for frame in stack):
            busy += count
    return busy, named


def churn():
    with lib.directory() as d, lib.programs() as programs:
        node, system = Node(d, programs), interpreters.find("system")
        start_processes(system, d, 1000, 16)  # everything that is made once
        time.sleep(2)
        before = rss_kib(node.collector), rss_kib(node.reducer)
        first = start_processes(system, d, 2000, PROCESSES // 2)
        middle = rss_kib(node.collector), rss_kib(node.reducer)
        second = start_processes(system, d, 3000, PROCESSES // 2)
        after = rss_kib(node.collector), rss_kib(node.reducer)
        time.sleep(2)
        node.stop()
        print(f"  RSS of collector and reducer in KiB: {before}, {middle}, {after}")
        wrong, busy, named = [], 0, 0
        for number, pid in first + second:
            of_process = check_process(number, node.stacks(pid, frames="all"), wrong)
            busy, named = busy + of_process[0], named + of_process[1]
        print(f"  {len(first + second)} processes, {busy} samples in the loop, {named} in their own functions")
        lib.check(not wrong, "wrong names: " + "; ".join(wrong[:3]))
        expected = len(first + second) * BUSY_S * RATE
        lib.check(named >= 0.9 * expected, f"{named} samples with names of {expected:.0f}")
        for name, old, new in zip(("collector", "reducer"), middle, after):
            lib.check(new - old <= GROWTH_MAX_KIB, f"the {name} grew from {old} to {new} KiB")


def named_share(found):
    """Returns (the share of samples in the interpreter's loop that have a named frame of the program, such samples)."""
    loop = [(stack, count) for stack, count in found.counted if any(frame["function"] == LOOP for frame in stack)]
    total = sum(count for _, count in loop)
    named = sum(count for stack, count in loop
                if any(chains.is_language(frame) for frame in stack) and not any(stacks.is_unnamed(frame) for frame in stack))
    return named / total if total else 0, total


def first_samples():
    """Tests a program of 300 ms whose interpreter the node has seen, and a longer one whose interpreter is new."""
    with lib.directory() as d, lib.programs() as programs:
        node = Node(d, programs)
        program = d / "python-copy"
        shutil.copy("/usr/bin/python3.11", program)
        system = interpreters.Interpreter("copy", ["/usr/bin/env", "PYTHONHOME=/usr", program])

        def run(seconds):
            process = system.run(d, "short_python.py", "steady", seconds)
            answer = json.loads(process.communicate(timeout=60)[0])
            lib.check(process.returncode == 0, "the program failed")
            return answer

        new, again = run(1.5), run(0.3)
        node.wait_for_name(again["pid"], LOOP)
        node.stop()
        share, samples = named_share(node.stacks(new["pid"], start=int(new["start_ms"] + 300), frames="all"))
        print(f"  new interpreter: {share:.4f} of {samples} samples from 300 ms on are named")
        lib.check(samples >= 900 and share >= NAMED_MIN, f"new interpreter: {share:.4f} of {samples}")
        share, samples = named_share(node.stacks(again["pid"], frames="all"))
        print(f"  known interpreter: {share:.4f} of {samples} samples are named")
        lib.check(samples >= 250 and share >= NAMED_MIN, f"known interpreter: {share:.4f} of {samples}")


if __name__ == "__main__":
    lib.main(churn, first_samples)
