"""What the fault tests share: a node whose collector is killed and started again, reducers behind a network that can go silent,
busy programs, and the law over all of it.

`captured` is known here from the kernel side alone: the counters that a killed collector leaves pinned, read by bpftool, and what one
that stopped in order says at its end. TRIBUTARY_SEED repeats a run's moments; TRIBUTARY_LONG=1 makes outages a minute long.
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
CAPTURED = [str(lib.CAPTURED_SLOT), "0", "0", "0"]  # its key in the map of counters


def moments(name):
    """Random, and the same in every run of one seed."""
    return random.Random(f"{name} {SEED}")


@contextlib.contextmanager
def world():
    """A directory, the list of programs to end, and a busy machine."""
    lib.mount_bpffs()
    with lib.directory() as d, lib.programs() as programs, busy():
        yield d, programs


@contextlib.contextmanager
def busy():
    """Programs that keep both the CPUs and the process table busy, with priority left for what is tested."""
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


def pinned_captured():
    """Of every map of counters that is pinned: its id, and the samples captured."""
    captured = {}
    for path in subprocess.run([*lib.ROOT, "find", PINS, "-type", "f"], capture_output=True, text=True, check=False).stdout.split():
        map_ = bpftool("map", "show", "pinned", path)
        if map_["name"] == "trib_counters":
            of_cpus = bpftool("map", "lookup", "pinned", path, "key", *CAPTURED)["values"]
            captured[map_["id"]] = sum(int.from_bytes(bytes(int(b, 16) for b in cpu["value"]), "little") for cpu in of_cpus)
    return captured


class Node:
    """One node's collector, through all its lives."""

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
        """Log lines of all lives with these words."""
        return self.text().count(words)

    def wait_for_more(self, words, than, timeout_s=60):
        lib.wait_for(f"the collector to say '{words}' once more than {than} times", lambda: self.count(words) > than, timeout_s, 0.02)

    def spool_overflows(self):
        """Whether this life's collector has lost samples for want of room: the disk's, or that of --spool-bytes-max."""
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
    """One that nobody listens on, for a reducer that comes later."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def connected_at(text, peer):
    """When the collector was last connected to `peer` ("host:port"), as unix time."""
    stamps = re.findall(rf"^(\S+) \S+ intake connected reducer={re.escape(peer)} ", text, re.MULTILINE)
    return datetime.datetime.fromisoformat(stamps[-1]).timestamp() if stamps else None


class Totals:
    """What several reducers say together."""

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
    """captured, as the kernel side counted = stored + lost; lost for the reasons named at most; and the samples stored are there
    to be read, once each. Prints the numbers."""
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
    """Reducers in a network namespace behind a router, which can drop all that goes to one address: silently, as a broken switch
    does. Every other address stays reachable."""

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
        """Starts a program there, as the user who runs this."""
        return ["ip", "netns", "exec", self.servers, "setpriv", f"--reuid={os.geteuid()}", f"--regid={os.getegid()}", "--clear-groups"]

    def drop(self, host):
        self.ip("-n", self.router, "route", "add", "blackhole", f"{host}/32")

    def heal(self, host):
        self.ip("-n", self.router, "route", "del", "blackhole", f"{host}/32")


def sleep_until(then):
    """A moment of the plan, not a wait for something to happen."""
    time.sleep(max(0, then - time.monotonic()))
