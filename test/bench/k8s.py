"""k8s-collector's cost with 10,000 pods, 100 replaced per second: dev/bench k8s [--pods N] [--replaced N] [--seconds N]

The API server is a program of this folder (churning_cluster.py). The reducer is real. The script watches the reducer
too, because the reducer keeps pods that are gone. When every pod has been replaced once, memory must not grow any more.
Limits: 60 MB resident at any time, 5% of a core. With --replaced 0 all pods stay, and --changed N pods a second change.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

import churning_cluster

BIN = pathlib.Path(os.environ.get("TRIBUTARY_BIN", ""))
RSS_MB_MAX, CORE_PERCENT_MAX, GROWTH_MB_MAX = 60, 5, 3
SHOWN_S = 10


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid, field="VmRSS"):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


class Watched:
    """A program that the script watches while pods are replaced."""

    def __init__(self, name, args, directory):
        self.name = name
        self.log = pathlib.Path(directory) / f"{name}.log"
        self.process = subprocess.Popen([BIN / name, *args], stderr=open(self.log, "w"))
        self.rss_mb = []

    def begin(self):
        self.began, self.cpu = time.monotonic(), cpu_seconds(self.process.pid)

    def look(self):
        self.rss_mb.append(resident_mb(self.process.pid))

    def report(self):
        seconds = time.monotonic() - self.began
        self.core_percent = (cpu_seconds(self.process.pid) - self.cpu) / seconds * 100
        self.peak_mb = resident_mb(self.process.pid, "VmHWM")
        self.growth_mb = max(self.rss_mb[len(self.rss_mb) * 9 // 10:]) - max(self.rss_mb[len(self.rss_mb) // 2:len(self.rss_mb) * 6 // 10])
        print(f"{self.name:<13} rss_mb={max(self.rss_mb):.1f} peak_mb={self.peak_mb:.1f} core_percent={self.core_percent:.2f} "
              f"growth_mb={self.growth_mb:.1f} every_{SHOWN_S}_s={' '.join(f'{mb:.1f}' for mb in self.rss_mb[::SHOWN_S])}")

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


def metric(port, name):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.split("{")[0].split(" ")[0] == name)


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--replaced", type=int, default=100, help="pods to delete per second; new pods replace them")
    parser.add_argument("--changed", type=int, default=100,
                        help="pods that get another label per second; only with --replaced 0")
    parser.add_argument("--seconds", type=float,
                        help="length of the run; default: until every pod was replaced twice, or 30 s")
    options = parser.parse_args(arguments)
    if options.seconds is None:
        options.seconds = max(30, 2 * options.pods / options.replaced) if options.replaced else 30
    return options


def measure(options, directory, programs):
    server = churning_cluster.serve(churning_cluster.Cluster(options.pods, options.replaced, options.changed))
    ports = pathlib.Path(directory) / "ports"
    reducer = Watched("reducer", ["--data-dir", directory + "/data", "--intake-listen=127.0.0.1:0", "--http-listen=127.0.0.1:0",
                                  "--ports-file", ports], directory)
    programs.append(reducer)
    while not ports.exists() or not ports.read_text():
        time.sleep(0.1)
    listening = json.loads(ports.read_text())
    collector = Watched("k8s-collector", [f"--api-server={server.url}", "--cluster-name=bench",
                                          f"--intake-host=127.0.0.1:{listening['intake']}"], directory)
    programs.append(collector)
    while "the cluster's objects were read pods=" not in collector.log.read_text():
        time.sleep(0.1)
    listed = cpu_seconds(collector.process.pid)
    time.sleep(3)
    server.start()
    for program in programs:
        program.begin()
    began = time.monotonic()
    while time.monotonic() - began < options.seconds:
        time.sleep(1)
        for program in programs:
            program.look()
    seconds = time.monotonic() - began
    print(f"pods={options.pods} added_per_s={server.sent['ADDED'] / seconds:.0f} deleted_per_s={server.sent['DELETED'] / seconds:.0f} "
          f"events_per_s={sum(server.sent.values()) / seconds:.0f} seconds={seconds:.0f} list_cpu_s={listed:.2f}")
    for program in programs:
        program.report()
    received, held = (metric(listening["http"], f"tributary_metadata_{suffix}") for suffix in ("entities_told_total", "entities"))
    print(f"              reducer: entities={held:.0f} told={received:.0f} metadata_mb={metric(listening['http'], 'tributary_metadata_bytes') / 1e6:.1f}")
    return collector, received


def main():
    options = parse()
    programs = []
    with tempfile.TemporaryDirectory() as directory:
        try:
            collector, received = measure(options, directory, programs)
        finally:
            for program in reversed(programs):
                program.stop()
    # For each new pod the reducer receives three entities: the pod and its two containers.
    if options.replaced and received < 3 * (options.pods + options.replaced * (options.seconds - 5)):
        sys.exit("the reducer did not receive all pods")
    if max(collector.rss_mb) > RSS_MB_MAX or collector.core_percent > CORE_PERCENT_MAX or collector.growth_mb > GROWTH_MB_MAX:
        sys.exit(f"over a limit: {RSS_MB_MAX} MB, {CORE_PERCENT_MAX}% of a core, {GROWTH_MB_MAX} MB more in the second half")


if __name__ == "__main__":
    main()
