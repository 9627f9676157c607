"""Tests rolling upgrades from an earlier release: its programs are replaced by today's, one by one, under load.

rolling_upgrade_test.py --old-binaries DIR [TEST…]: DIR has kernel-collector and reducer of the earlier release. dev/test
says how they are built. The time stamps of the steps divide the stored samples, so each part of
an upgrade is checked by itself.
"""

import argparse
import contextlib
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
import lib  # noqa: E402  (in the folder of the end-to-end tests)
import process_lives  # noqa: E402

TODAY = lib.BIN
OLD = None  # --old-binaries
RATE_HZ = 199
STACK = ["serve", "handle", "dispatch", "work"]  # of truth.c, above each of these functions
LEAVES = {"hash_blocks", "sort_rows", "parse_text"}
ARGS = ["--batch-interval", "300ms", *lib.PATIENT]
WAITS = " intake waits reducer="


@contextlib.contextmanager
def release(directory):
    """Programs that start in this context are of this release."""
    lib.BIN = directory
    try:
        yield
    finally:
        lib.BIN = TODAY


class Node:
    """A node with one collector at a time."""

    def __init__(self, world, name, spool):
        self.world, self.name = world, name
        self.args = ["--node-id", name, *ARGS, *(["--spool-dir", world.directory / f"spool-{name}"] if spool else [])]
        self.captured = self.events = 0  # as the collectors counted them
        self.starts = 0
        # The totals that a collector pins in /sys/fs/bpf are those of one node. All nodes of this test are one machine.
        self.bpffs = world.directory / f"bpffs-{name}"
        self.in_bpffs = ["unshare", "-m", "sh", "-c", f'mount --bind {self.bpffs} /sys/fs/bpf && exec "$@"', "sh"]
        self.collector = None

    def start(self, binaries, *args):
        with release(binaries):
            listen = ["--metrics-listen", "off"] if binaries == TODAY else []
            self.collector = lib.Collector(self.world.directory, self.world.reducer.intake_port, rate=RATE_HZ, args=[*self.args, *listen, *args],
                                           name=self.name, prefix=self.in_bpffs)
        self.world.programs.append(self.collector)
        self.starts += 1
        lib.wait_for(f"{self.name} to sample", lambda: self.text().count("sampling rate_hz") == self.starts or not self.collector.running(), 60)
        lib.check(self.collector.running(), f"{self.name} ended:\n{self.text()}")

    def text(self):
        return self.collector.text()

    def stop(self):
        lib.stop_patiently(self.collector)
        self.world.programs.remove(self.collector)
        totals = lib.last_totals(self.text())
        self.captured += totals["captured"]
        self.events += totals.get("events", 0)

    def upgrade(self, *args):
        self.stop()
        self.start(TODAY, *args)


class World:
    def __init__(self, directory, programs):
        self.directory, self.programs = directory, programs
        self.start_ms = lib.now_ms()
        self.reducer = None
        self.start_reducer(OLD)
        self.nodes = [Node(self, "node-memory", False), Node(self, "node-spool", True), Node(self, "node-third", True)]

    def start_reducer(self, binaries):
        port = self.reducer.intake_port if self.reducer else 0
        with release(binaries):
            self.reducer = lib.Reducer(self.directory, data=self.directory / "data", intake_port=port)
        self.programs.append(self.reducer)

    def upgrade_reducer(self):
        lib.check(self.reducer.stop(60) == 0, "the reducer's exit code")
        self.programs.remove(self.reducer)
        self.start_reducer(TODAY)

    def stored(self, name):
        return sum(node["stored"] for node in self.reducer.status()["nodes"] if node["id"] == name)

    def wait_for_more(self, node, more=100):
        before = self.stored(node.name)
        lib.wait_for(f"samples of {node.name}", lambda: self.stored(node.name) >= before + more, 90)

    def run_truth(self):
        """Runs the workload. Returns the time range in which it ran."""
        start = lib.now_ms()
        subprocess.run([TODAY / "truth", "3", "1"], check=True, capture_output=True)
        return start, lib.now_ms()

    def check_names(self, ranges):
        """Checks that each node has the workload's stacks with their functions' names, in each of these time ranges."""
        for start, end in ranges:
            for node in self.nodes:
                graph = self.reducer.flamegraph(f'{{process_executable_name="truth",node_id="{node.name}"}}', start, end + 1000)
                found = [i for i in range(len(graph)) if graph.is_user_function(i) and graph.self_count[i] > 0]
                right = sum(graph.self_count[i] for i in found if graph.name_of(i) in LEAVES and graph.path(i)[-5:-1] == STACK)
                everything = sum(graph.self_count[i] for i in found)
                lib.check(everything > 0 and right >= 0.9 * everything, f"{node.name}: only {right} of {everything} samples have their stack and names")

    def check_law(self, lost_events=()):
        """Checks that all that the collectors captured is stored, and can be read once."""
        status = self.reducer.status()
        lib.check_law(status, lost=0)
        for node in self.nodes:
            found = next(n for n in status["nodes"] if n["id"] == node.name)
            lib.check(found["captured"] == node.captured, f"{node.name}: the reducer knows {found['captured']} captured samples, the collectors {node.captured}")
            lib.check(found["stored"] == node.captured, f"{node.name}: {found['stored']} of {node.captured} samples are stored")
            read = self.reducer.flamegraph(f'{{node_id="{node.name}"}}', self.start_ms, lib.now_ms() + 1000).total_count[0]
            lib.check(read == found["stored"], f"{node.name}: {found['stored']} samples stored, {read} read back")
            events = found["process_events"]
            lost = {reason: n for reason, n in events["lost"].items() if n}
            lib.check(set(lost) <= set(lost_events), f"{node.name}: events were lost: {lost}")
            lib.check(events["captured"] == node.events == events["stored"] + sum(lost.values()), f"{node.name}: {node.events} events captured, {events}")
            print(f"  {node.name}: captured={node.captured} stored={found['stored']} read={read} lost={found['lost']} events={events}")
        process_lives.check_law(status, process_lives.events_of(self.reducer))

    def check_page(self):
        for path in ("/", "/readyz", "/api/v1/status", "/api/v1/types", "/metrics"):
            lib.check(self.reducer.get(path), f"{path} is empty")
        for command in (["status"], ["top", "--from", "-10m"], ["symbols"], ["events"]):
            printed = subprocess.run([TODAY / "tributary", *command, "--server", self.reducer.url], check=True, capture_output=True, text=True).stdout
            lib.check(printed, f"tributary {command[0]} prints nothing")


@contextlib.contextmanager
def world():
    lib.mount_bpffs()
    with lib.directory() as d, lib.programs() as programs:
        programs.append(lib.Program("load", ["nice", "-n", "19", TODAY / "truth", "3600", "2"], d))
        programs.append(lib.Program("processes", ["nice", "-n", "19", "sh", "-c", "while :; do ls /proc > /dev/null; done"], d))
        w = World(d, programs)
        with contextlib.ExitStack() as mounts:
            for node in w.nodes:
                node.bpffs.mkdir()
                subprocess.run([*lib.ROOT, "mount", "-t", "bpf", "bpf", node.bpffs], check=True)
                mounts.callback(subprocess.run, [*lib.ROOT, "umount", "-l", node.bpffs], check=True)
            yield w


def reducer_first():
    """The documented order. The reducer is replaced, then each collector."""
    with world() as w:
        for node in w.nodes:
            node.start(OLD)
        for node in w.nodes:
            w.wait_for_more(node)
        ranges = [w.run_truth()]
        before = {node.name: w.stored(node.name) for node in w.nodes}
        w.upgrade_reducer()
        for node in w.nodes:
            lib.check(w.stored(node.name) >= before[node.name], "samples are missing after the upgrade")
            w.wait_for_more(node)
        ranges.append(w.run_truth())
        for node in w.nodes:
            node.upgrade()
            w.wait_for_more(node)
        ranges.append(w.run_truth())
        for node in w.nodes:
            node.stop()
        w.check_law()
        w.check_names(ranges)
        w.check_page()
        lib.check(not any(WAITS in node.text() for node in w.nodes), "a collector waited for an upgrade")


def collectors_first():
    """The wrong order. New collectors keep their batches, in memory or in the spool, until the reducer is upgraded."""
    with world() as w:
        for node in w.nodes:
            node.start(OLD)
        for node in w.nodes:
            w.wait_for_more(node)
        for node in w.nodes:
            node.upgrade()
        for node in w.nodes:
            lib.wait_for(f"{node.name} to wait", lambda text=node.text: WAITS in text(), 60)
        held = {node.name: w.stored(node.name) for node in w.nodes}
        ranges = [w.run_truth()]
        time.sleep(3)  # a collector that sends would have sent 10 batches
        w.nodes[2].stop()  # undelivered batches stay in its spool
        w.nodes[2].start(TODAY)
        lib.wait_for("the restarted collector to wait", lambda: w.nodes[2].text().count(WAITS) == 2, 60)
        lib.check({node.name: w.stored(node.name) for node in w.nodes} == held, "the reducer of the earlier release got samples")
        w.upgrade_reducer()
        for node in w.nodes:
            w.wait_for_more(node)
        ranges.append(w.run_truth())
        for node in w.nodes:
            node.stop()
            starts = 2 if node is w.nodes[2] else 1
            lines = [line for line in node.text().splitlines() if WAITS in line]
            lib.check(len(lines) == starts and re.search(r'needs="reducer \d+\.\d+\.\d+ \(commit \w', lines[0]), f"{node.name} logged {lines}")
        print(f"  {lines[0]}")
        w.check_law()
        w.check_names(ranges)
        w.check_page()


def wait_is_over():
    """With --upgrade-wait 1s, samples go to the earlier release, and only process events are lost, and counted."""
    with world() as w:
        for node in w.nodes:
            node.start(TODAY, "--upgrade-wait", "1s")
        for node in w.nodes:
            w.wait_for_more(node)
        ranges = [w.run_truth()]
        w.upgrade_reducer()
        for node in w.nodes:
            w.wait_for_more(node)
        for node in w.nodes:
            node.stop()
        w.check_law(lost_events=["not_taken"])
        w.check_names(ranges)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old-binaries", type=pathlib.Path, required=True)
    parser.add_argument("tests", nargs="*")
    arguments = parser.parse_args()
    OLD = arguments.old_binaries.resolve()
    sys.argv[1:] = arguments.tests
    lib.main(reducer_first, collectors_first, wait_is_over)
