"""Measures a running process: CPU, memory, BPF programs and maps. The sources are /proc and bpftool."""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
import lib  # noqa: E402  (in the folder of the end-to-end tests)


def tree(pid):
    """Returns the process and all its descendants: the helpers that it starts count as its cost too."""
    pids = [pid]
    for parent in pids:
        for task in _each(f"/proc/{parent}/task"):
            pids += [int(child) for child in _text(task / "children").split()]
    return pids


def _each(directory):
    """Returns an empty list if the process has just ended, or if even root may not read its directory."""
    try:
        return list(pathlib.Path(directory).iterdir())
    except OSError:
        return []


def _text(path):
    try:
        return path.read_text()
    except OSError:
        return ""


def cpu_ns(pid):
    """Returns user and system time of the whole tree.

    The time of live threads comes from schedstat, which is finer than the clock ticks of stat. The time of children
    that have ended comes from stat.
    """
    total = 0
    for each in tree(pid):
        for task in _each(f"/proc/{each}/task"):
            total += int((_text(task / "schedstat") or "0").split()[0])
        ended = _text(pathlib.Path(f"/proc/{each}/stat")).rpartition(")")[2].split()[13:15]  # cutime, cstime
        total += sum(map(int, ended)) * 10**9 // os.sysconf("SC_CLK_TCK")
    return total


def memory_kib(pid):
    """Returns VmRSS, VmHWM and RssAnon, each summed over the tree."""
    out = collections.Counter()
    for each in tree(pid):
        for line in _text(pathlib.Path(f"/proc/{each}/status")).splitlines():
            if line.startswith(("VmRSS", "RssAnon", "VmHWM")):
                out[line.split(":")[0]] += int(line.split()[1])
    return out


def mapped_maps_kib(pid):
    """Returns the resident pages of BPF maps that the tree has mapped. map_bytes already counts this kernel memory."""
    total = 0
    for each in tree(pid):
        inside = False
        for line in _text(pathlib.Path(f"/proc/{each}/smaps")).splitlines():
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                inside = line.endswith("anon_inode:bpf-map")
            elif inside and line.startswith("Rss:"):
                total += int(line.split()[1])
    return total


def _descriptors(pid, key):
    """Yields the fdinfo fields of each descriptor that has this key."""
    for entry in _each(f"/proc/{pid}/fdinfo"):
        fields = dict(line.split(":\t", 1) for line in _text(entry).splitlines() if ":\t" in line)
        if key in fields:
            yield fields


def program_run_time(pid):
    """Returns (ns, runs), summed over the BPF programs that the process holds. kernel.bpf_stats_enabled must be on."""
    seen = {f["prog_id"]: (int(f["run_time_ns"]), int(f["run_cnt"])) for f in _descriptors(pid, "run_time_ns")}
    return sum(ns for ns, _ in seen.values()), sum(runs for _, runs in seen.values())


def held_maps(pid):
    return {int(f["map_id"]) for f in _descriptors(pid, "map_id")}


def _bpftool(*args):
    done = subprocess.run(lib.ROOT + ["bpftool", "-j", *args], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def map_ids():
    return {m["id"] for m in _bpftool("map", "show")}


def map_bytes(pid, before):
    """Returns the kernel memory of the maps that the process holds and that are not in `before`.

    A map inside a map needs no descriptor. So if the process has maps of maps, a new map that no process holds counts
    as a map of this process.
    """
    new = {m["id"]: m for m in _bpftool("map", "show") if m["id"] not in before}
    mine = held_maps(pid) & set(new)
    if any(new[m]["type"].endswith("_of_maps") for m in mine):
        held = set()
        for process in _each("/proc"):
            if process.name.isdigit():
                held |= held_maps(process.name)
        mine |= set(new) - held
    return sum(new[m].get("bytes_memlock", 0) for m in mine)


class BpfStats:
    """with BpfStats(): the kernel measures the run time of every BPF program. This costs about 20 ns per run."""

    path = "/proc/sys/kernel/bpf_stats_enabled"

    def __enter__(self):
        subprocess.run(lib.ROOT + ["sh", "-c", f"echo 1 > {self.path}"], check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(lib.ROOT + ["sh", "-c", f"echo 0 > {self.path}"], check=True)


def reference_ns():
    """Returns the time of one round of a fixed interpreter loop, best of three: this machine's current speed."""
    best = None
    for _ in range(3):
        started = time.perf_counter_ns()
        x = 1
        for i in range(2_000_000):
            x = (x * 6364136223846793005 + i) & 0xFFFFFFFFFFFFFFFF
        elapsed = (time.perf_counter_ns() - started) / 2_000_000
        best = elapsed if best is None else min(best, elapsed)
    return best
