"""Code that the fault tests share.

It has a node with a collector that is killed and restarted, reducers behind a network that can go silent, busy
programs, and the check of the law.

`captured` comes only from the kernel side: the counters that a killed collector leaves pinned, read with bpftool, and
the number that a collector logs when it stops in order. TRIBUTARY_SEED repeats a run's moments. TRIBUTARY_LONG=1 makes
outages a minute long.
"""

import contextlib
import datetime
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import time

import lib

SEED = int(os.environ.get("TRIBUTARY_SEED", "1"))
OUTAGE_S = 60 if os.environ.get("TRIBUTARY_LONG") else 25
KILLS = 20
PINS = pathlib.Path("/sys/fs/bpf/tributary")


def moments(name):
    """Returns random moments, which are the same in every run with the same seed."""
    return random.Random(f"{name} {SEED}")


@contextlib.contextmanager
def world():
    """Yields a directory and the list of programs to end, on a busy machine."""
    lib.mount_bpffs()
    with lib.directory() as d, lib.programs() as programs, busy():
        yield d, programs


@contextlib.contextmanager
def busy():
    """Runs programs that keep the CPUs and the process table busy, with lower priority than the tested programs."""
    loads = [[lib.BIN / "truth", "3600", "2"],
             ["python3", "-c", "while True: sorted(str(i) for i in range(20000))"],
             ["sh", "-c", "while :; do ls /proc > /dev/null; done"]]
    running = [subprocess.Popen(["nice", "-n", "10", *load], stdout=subprocess.DEVNULL, start_new_session=True) for load in loads]
    try:
        yield
    finally:
        for load in running:
            os.killpg(load.pid, signal.SIGKILL)
            load.wait()


def bpftool(*args):
    return json.loads(subprocess.run([*lib.ROOT, "bpftool", "-j", *args], check=True, capture_output=True, text=True).stdout)


def pinned_captured(slots=(lib.CAPTURED_SLOT,)):
    """Returns {id: samples captured} of every pinned map of counters: the sum of these slots, below 256."""
    captured = {}
    for path in subprocess.run([*lib.ROOT, "find", PINS, "-type", "f"], capture_output=True, text=True, check=False).stdout.split():
        map_ = bpftool("map", "show", "pinned", path)
        if map_["name"] == "trib_counters":
            of_cpus = [cpu for slot in slots for cpu in bpftool("map", "lookup", "pinned", path, "key", str(slot), "0", "0", "0")["values"]]
            captured[map_["id"]] = sum(int.from_bytes(bytes(int(b, 16) for b in cpu["value"]), "little") for cpu in of_cpus)
    return captured


class Node:
    """One node's collector, through all its runs."""

    def __init__(self, directory, programs, intake, args=(), rate=999, name="collector"):
        self.directory, self.programs, self.intake, self.rate, self.name = directory, programs, intake, rate, name
        self.args = ["--node-id", f"faults-{name}", "--batch-interval", "200ms", *args]
        self.of_killed = {}  # by id of the map of counters
        self.of_stopped = 0
        self.lives = 0
        self.start()

    def start(self):
        self.lives += 1
        self.collector = lib.Collector(self.directory, self.intake[0].split(":")[1], rate=self.rate, name=self.name,
                                       args=[*self.args, "--intake-host", ",".join(self.intake) if len(self.intake) > 1 else self.intake[0].split(":")[0]])
        self.programs.append(self.collector)

    def text(self):
        return self.collector.text()

    def count(self, words):
        """Counts these words in the logs of all runs."""
        return self.text().count(words)

    def wait_for_more(self, words, than, timeout_s=60):
        lib.wait_for(f"the collector to say '{words}' once more than {than} times", lambda: self.count(words) > than, timeout_s, 0.02)

    def spool_overflows(self):
        """Returns whether this run's collector has lost samples because of a full disk or --spool-bytes-max."""
        lib.check(self.collector.running(), f"the collector ended: {self.text()}")
        self.collector.signal(signal.SIGUSR1)
        dropped = re.findall(r'tributary_spool_dropped_samples_total\{reason="spool_overflow"\} (\d+)', self.text())
        return "lost reason=spool_overflow" in self.text() or (bool(dropped) and int(dropped[-1]) > 0)

    def kill(self):
        self.collector.kill()
        self.programs.remove(self.collector)
        self.of_killed |= pinned_captured()

    def stop(self):
        lib.check(self.collector.stop(75) == 0, "the collector's exit code")
        self.programs.remove(self.collector)
        self.of_stopped += int(re.findall(r" stopped captured=(\d+)", self.text())[-1])

    def captured(self):
        return self.of_stopped + sum(self.of_killed.values())


def free_port():
    """Returns a port on which no program listens, for a reducer that starts later."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def connected_at(text, peer):
    """Returns the Unix time of the collector's last connection to `peer` ("host:port"), or None."""
    stamps = re.findall(rf"^(\S+) \S+ intake connected reducer={re.escape(peer)} ", text, re.MULTILINE)
    return datetime.datetime.fromisoformat(stamps[-1]).timestamp() if stamps else None


class Totals:
    """The totals of several reducers together."""

    def __init__(self, reducers):
        totals = [reducer.status()["total"] for reducer in reducers]
        self.captured = sum(t["captured"] for t in totals)
        self.stored = sum(t["stored"] for t in totals)
        self.lost = {}
        for t in totals:
            for reason, samples in t["lost"].items():
                if samples:
                    self.lost[reason] = self.lost.get(reason, 0) + samples


def check_law(node, reducers, start_ms, lost=(), more=""):
    """Checks the law and prints the numbers.

    captured, as counted on the kernel side, must be stored + lost. Samples may be lost only for the reasons in `lost`.
    Each stored sample must be readable exactly once.
    """
    totals = Totals(reducers)
    read = sum(reducer.flamegraph("{}", start_ms, lib.now_ms() + 1000).total_count[0] for reducer in reducers)
    print(f"  lives={node.lives} captured={node.captured()} told={totals.captured} stored={totals.stored} read={read} lost={totals.lost}"
          f"{' ' if more else ''}{more} seed={SEED}", flush=True)
    lib.check(totals.captured == totals.stored + sum(totals.lost.values()),
              f"the law is broken: captured {totals.captured} != stored {totals.stored} + lost {totals.lost}")
    lib.check(totals.captured == node.captured(), f"the reducers were told of {totals.captured} captured, the kernel counted {node.captured()}")
    lib.check(read == totals.stored, f"{totals.stored} stored, {read} read back")
    lib.check(set(totals.lost) <= set(lost), f"lost {totals.lost}, allowed {sorted(lost)}")
    return totals


class Network:
    """Reducers in a network namespace behind a router.

    The router can silently drop all packets to one address, like a broken switch. Every other address stays reachable.
    """

    def __init__(self, name="tributary-faults"):
        self.router, self.servers = f"{name}-router", f"{name}-servers"
        self.links = ["tribf0", "tribf1", "tribf2", "tribf3"]

    def ip(self, *args, check=True):
        subprocess.run([*lib.ROOT, "ip", *args], check=check, capture_output=not check)

    def __enter__(self):
        self.__exit__()
        up, down, near, far = self.links
        self.ip("netns", "add", self.router)
        self.ip("netns", "add", self.servers)
        self.ip("link", "add", up, "type", "veth", "peer", "name", down, "netns", self.router)
        self.ip("-n", self.router, "link", "add", near, "type", "veth", "peer", "name", far, "netns", self.servers)
        self.ip("addr", "add", "198.18.1.1/24", "dev", up)
        self.ip("-n", self.router, "addr", "add", "198.18.1.2/24", "dev", down)
        self.ip("-n", self.router, "addr", "add", "198.18.2.1/24", "dev", near)
        for last in range(2, 5):
            self.ip("-n", self.servers, "addr", "add", f"198.18.2.{last}/24", "dev", far)
        for namespace, link in ((None, up), (self.router, down), (self.router, near), (self.servers, far), (self.servers, "lo")):
            self.ip(*(["-n", namespace] if namespace else []), "link", "set", link, "up")
        self.ip("netns", "exec", self.router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        self.ip("route", "add", "198.18.2.0/24", "via", "198.18.1.2")
        self.ip("-n", self.servers, "route", "add", "default", "via", "198.18.2.1")
        return self

    def __exit__(self, *_):
        self.ip("netns", "del", self.router, check=False)
        self.ip("netns", "del", self.servers, check=False)
        self.ip("link", "del", self.links[0], check=False)

    def inside(self):
        """Returns a prefix that starts a program in the servers' namespace, as the user who runs the test."""
        return ["ip", "netns", "exec", self.servers, "setpriv", f"--reuid={os.geteuid()}", f"--regid={os.getegid()}", "--clear-groups"]

    def drop(self, host):
        self.ip("-n", self.router, "route", "add", "blackhole", f"{host}/32")

    def heal(self, host):
        self.ip("-n", self.router, "route", "del", "blackhole", f"{host}/32")


def sleep_until(then):
    """Sleeps until a planned moment. It does not wait for an event."""
    time.sleep(max(0, then - time.monotonic()))
