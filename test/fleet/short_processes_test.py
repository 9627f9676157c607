"""Asks about a day of short processes: each question takes at most 256 MiB of memory, or is refused with advice.

A tool (short_processes.cc) writes the store and asks, without a reducer. A question is one process that opens the store.
It may take 256 MiB more than the process at rest if there are 50 million processes. A store with a 25th of the processes
may take a 25th of that, and CACHES_MIB for memory that does not depend on the number of processes. Its queries have a
25th of the limits, too. Then the test asks with all limits, and with 256 MiB. It does the same for processes whose
names, containers and attributes are their own: a query keeps something for each of these.

    short_processes_test.py [--long]      --long: 50 million processes; takes 20 minutes and a gigabyte of disk
"""

import json
import subprocess
import sys

import fleet
from fleet import lib

LONG = "--long" in sys.argv
FULL_PROCESSES, FULL_MIB = 50_000_000, 256
CACHES_MIB = 24
# Series without a selector are refused after the first million processes; with one, after the selector has read the ids
# of all processes.
REFUSED_CPU_MS_MAX, REFUSED_BY_SELECTOR_CPU_MS_MAX = 10_000, 120_000
GAP_MS_MAX = 2_000  # of CPU time, from one look at a question's cancellation to the next
TOOL = fleet.NODES.parent / "short_processes"
QUESTIONS = [
    ("labels", "{}"),
    ("series", "{}"),
    ("series", '{node_id="node-3"}'),
    ("series", '{process_executable_name="program-7"}'),
    ("series", '{service_name="service-7"}'),
    ("flamegraph", "{}"),
    ("flamegraph", '{node_id="node-3"}'),
    ("flamegraph", '{process_executable_name="program-7"}'),
    ("flamegraph", '{process_command!~"program-1.*"}'),
    ("flamegraph", '{process_pid="1234"}'),
    ("flamegraph", '{service_name="service-7"}'),
    ("flamegraph", '{thread_name="program-7"}'),
    ("timeline", '{service_name="service-7"}'),
]
OWN_QUESTIONS = [
    ("labels", "{}"),
    ("series", "{}"),
    ("series", '{service_name=~"service-.*"}'),
    ("flamegraph", '{service_name=~"service-.*"}'),
]


def fill(directory, shards, nodes, processes, names):
    command = [TOOL, "fill", directory, str(shards), str(nodes), str(processes), names]
    made = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    print(f"{shards} shards, {processes} processes with {names} names: {made['disk_bytes'] / 1e6:.0f} MB")


def ask(directory, shards, share, mib, question, selector):
    """Checks one question. Returns the answer."""
    command = [TOOL, "ask", directory, str(shards), str(share), question, selector]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    answer, message = json.loads(lines[0]), lines[1]
    name = f"{question} {selector}"
    peak = answer["peak_kib"] / 1024
    print(f"{peak:8.1f} of {mib:.0f} MiB {answer['cpu_ms']:>8} ms of CPU, {answer['gap_ms']:>5} ms uncancelled  {name}: {answer['code']} {message or answer['answer']}")
    lib.check(peak <= mib, f"{name} took {peak:.1f} MiB above rest, more than {mib:.1f}")
    lib.check(answer["gap_ms"] <= GAP_MS_MAX, f"{name} did not look at its cancellation for {answer['gap_ms']} ms of CPU time")
    if answer["code"] == "OK":
        lib.check(answer["cancelled"] == "DEADLINE_EXCEEDED", f"{name} was cancelled in the middle, and ended with {answer['cancelled']}")
        return answer["answer"]
    lib.check(answer["code"] == "RESOURCE_EXHAUSTED", f"{name} ended with {answer['code']}: {message}")
    lib.check("ask for a shorter time range" in message, f"{name} is refused without advice: {message}")
    most = REFUSED_CPU_MS_MAX if selector == "{}" else REFUSED_BY_SELECTOR_CPU_MS_MAX
    lib.check(answer["cpu_ms"] <= most, f"{name} was refused after {answer['cpu_ms']} ms of CPU time")
    return None


def check_day(shards, nodes, processes):
    """Each process is one of a few programs, in one of a few containers of its node."""
    with fleet.directory() as directory:
        fill(directory, shards, nodes, processes, "few")
        share = FULL_PROCESSES // processes
        mib = FULL_MIB if share == 1 else FULL_MIB / share + CACHES_MIB
        for question, selector in QUESTIONS:
            answer = ask(directory, shards, share, mib, question, selector)
            lib.check(question == "series" or answer is not None, f"{question} {selector} was refused")
            lib.check(answer is None or answer > 0, f"{question} {selector} found nothing")
            if (question, selector) == ("flamegraph", "{}"):
                lib.check(answer == processes, f"the flame graph has {answer} samples of {processes}")
        # Nearly all processes that series may weigh.
        for selector in ("{}", '{process_executable_name=~"program-.[0-8]?"}') if share > 1 else ():
            ask(directory, shards, 1, FULL_MIB, "series", selector)


def check_own(shards, nodes, processes):
    """Each process has a name, a container and attributes of its own. With more shards, more threads keep them."""
    with fleet.directory() as directory:
        fill(directory, shards, nodes, processes, "own")
        for question, selector in OWN_QUESTIONS:
            ask(directory, shards, 1, FULL_MIB, question, selector)


def main():
    if LONG:
        check_day(1, 300, FULL_PROCESSES)
        check_day(2, 300, FULL_PROCESSES)
        check_own(2, 20, 2_000_000)
        check_own(8, 20, 195_000)
    else:
        check_day(1, 5, 200_000)
        check_day(2, 20, 2_000_000)
        check_own(8, 20, 100_000)


if __name__ == "__main__":
    try:
        main()
    except lib.Failure as failure:
        sys.exit(f"FAILED: {failure}")
