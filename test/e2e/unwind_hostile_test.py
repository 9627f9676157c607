"""Tests bad input for the unwinder.

The input is wrong unwind information, files that change while they are read, programs that often change their mappings,
too little memory for the rows, and a parser that is killed. The collector must stay within its limits, count the bad
input, and name the right files. A normal program's stacks must stay complete meanwhile. The programs are in
test/workloads/hostile.c.
"""

import os
import re
import signal
import socket
import subprocess
import threading
import time

import lib
from hostile_elf import CORRUPTIONS, Elf, sparse_file, sparse_text

RATE = 999
MS = 700  # CPU time of each load
MIB = 1 << 20
COLLECTOR_KIB_MAX = 256 << 10  # mostly symbols of other programs on the machine
PARSER_KIB_MAX = 64 << 10
PARSER_SOCKET = 3
STARTS = {"_start", "clone", "__clone3", "clone3", "_dl_start_user"}
LAST_LINE = re.compile(r"metric (tributary_[a-z0-9_]+)(?:\{[^}]*\})? ([0-9.e+-]+)")
INSTRUMENTED = lib.is_instrumented("kernel-collector")


class Watch:
    """Memory peaks of the collector and its parser while a scenario runs, and the parser's privileges."""

    def __init__(self, collector):
        self.collector, self.peak_kib = collector, {"collector": 0, "parser": 0}
        self.parsers, self.privileges, self._end = [], set(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def status(self, pid):
        try:
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
                return dict(line.split(":\t", 1) for line in file if ":\t" in line)
        except OSError:
            return {}

    def parser(self):
        """Returns the pid of the running parser, or None."""
        try:
            children = subprocess.run(["pgrep", "-P", str(self.collector.pid), "-f", "unwind-parser"], capture_output=True, text=True)
        except OSError:
            return None
        pids = [int(pid) for pid in children.stdout.split() if "VmRSS" in self.status(pid)]
        return pids[0] if pids else None

    def _run(self):
        while not self._end.wait(0.2):
            parser = self.parser()
            for name, pid in (("collector", self.collector.pid), ("parser", parser)):
                status = self.status(pid) if pid else {}
                self.peak_kib[name] = max(self.peak_kib[name], int(status.get("VmHWM", "0").split()[0]))
                if name == "parser" and status:
                    self.privileges.add((status["Seccomp"].strip(), int(status["CapPrm"], 16), status["NoNewPrivs"].strip()))
            if parser and parser not in self.parsers:
                self.parsers.append(parser)

    def stop(self):
        self._end.set()
        self._thread.join()


class Scene:
    def __init__(self, directory, programs, args=()):
        self.directory = directory
        self.reducer = lib.Reducer(directory)
        programs.append(self.reducer)
        self.start = lib.now_ms()
        self.collector = lib.Collector(directory, self.reducer.intake_port, rate=RATE, args=["--batch-interval", "500ms", *args])
        programs.append(self.collector)
        lib.wait_for("stored samples", lambda: self.reducer.status()["total"]["stored"] > 0, 30)
        self.watch = Watch(self.collector)

    def metrics(self):
        """Returns the collector's own metrics, summed over labels."""
        size = self.collector.log_path.stat().st_size
        self.collector.signal(signal.SIGUSR1.value)
        text = lib.wait_for("metrics in the log", lambda: self._logged(size))
        out = {}
        for name, value in LAST_LINE.findall(text):
            out[name.removeprefix("tributary_collector_")] = out.get(name.removeprefix("tributary_collector_"), 0) + float(value)
        return out

    def _logged(self, since):
        time.sleep(0.2)
        with open(self.collector.log_path, "rb") as file:
            file.seek(since)
            text = file.read().decode()
        return text if "metric tributary_" in text else None

    @staticmethod
    def selector(names):
        """Returns a selector of programs by a regular expression of their names."""
        return f'{{process_executable_name=~"{names}"}}'

    def graph(self, name):
        return self.reducer.flamegraph(self.selector(name), self.start, lib.now_ms() + 1000)

    def health(self, name):
        return self.reducer.json("/api/v1/stack-health", query=self.selector(name), **{"from": self.start, "to": lib.now_ms() + 1000})

    def settle(self):
        """Waits until all samples so far are stored. A sample waits for missing data for up to 1 s before it is sent."""
        time.sleep(1.2)
        captured = self.reducer.status()["total"]["captured"]
        lib.wait_for("the last samples", lambda: self.reducer.status()["total"]["stored"] > captured + RATE // 2)

    def burnt_in(self, name, function, executable=None):
        """Returns the samples of program `name` in `function` of the right file. A sample in a wrong file fails."""
        graph, right, wrong = self.graph(name), 0, []
        for node in range(1, len(graph)):
            if graph.kind[node] != 1 or graph.name_of(node) != function:
                continue
            if graph.executable_of(node) == (executable or name):
                right += graph.total_count[node]
            else:
                wrong.append((graph.executable_of(node), graph.path(node)))
        lib.check(not wrong, f"{name}: {function} in a wrong file: {wrong[:5]}")
        return right

    def report(self, name):
        health = self.health(name)
        lib.check(health["samples"] > 0, f"no samples of {name}")
        print(f"  {name}: {health['samples']} samples, {health['complete_share']:.4f} complete: {health['endings']}")
        return health

    def end(self):
        self.watch.stop()
        lib.check(self.collector.stop() == 0, "the collector's exit code")
        status = self.reducer.status()
        lib.check_law(status)
        print(f"  {status['total']}; peaks {self.watch.peak_kib} KiB")


def bad_input():
    with lib.directory() as d, lib.programs() as programs:
        scene = Scene(d, programs)
        idle, connection = idle_parser()
        loads = {}

        def load(name, mode, *args, program=None, ms=MS):
            path = program or Elf(lib.BIN / "hostile").write(d / name)
            loads[name] = subprocess.Popen([path, mode, str(ms), *map(str, args)])

        def library(name):
            return Elf(lib.BIN / "libhostile.so").write(d / name)

        for corrupt in CORRUPTIONS:
            elf = Elf(lib.BIN / "hostile")
            corrupt(elf)
            load(corrupt.__name__, "burn", program=elf.write(d / corrupt.__name__))
        frames = Elf(lib.BIN / "libhostile.so").section(".eh_frame_hdr")[0] // 4096 * 4096
        load("cut_before", "cut", library("cut_before.so"), frames)
        load("cut_after", "cut", library("cut_after.so"), frames, 300)
        load("garble_before", "garble", library("garble_before.so"), frames)
        load("garble_after", "garble", library("garble_after.so"), frames, 300)
        load("sparse_text", "far", program=sparse_text(d / "sparse_text"))
        load("sparse_file", "burn", program=sparse_file(d / "sparse_file"))
        load("many", "many", lib.BIN / "liblife_a.so", 10000, ms=3 * MS)
        innocent = subprocess.Popen([lib.BIN / "truth_nofp", "6"], stdout=subprocess.DEVNULL)
        for name, process in loads.items():
            lib.check(process.wait() == 0, f"{name}'s exit code: {process.returncode}")
        lib.check(innocent.wait() == 0, "the innocent program's exit code")
        scene.settle()
        check_bad_input(scene, loads)
        metrics = scene.metrics()
        for name in ("unwind_units_failed_total", "unwind_executables_refused_total", "unwind_unsupported_rows_total"):
            print(f"  {name} {metrics[name]:.0f}")
            lib.check(metrics[name] >= 1, "bad input is not counted")
        cpu, compiling = metrics["process_cpu_seconds_total"], metrics["unwind_compile_seconds_total"]
        print(f"  {cpu:.2f} s of CPU, {compiling:.2f} of it compiling")
        always_remapping(scene)
        parser_dies(scene, d)
        check_memory(scene)
        lib.check(idle.wait(30) == 0, f"exit code of a parser without work: {idle.returncode}")
        connection.close()
        scene.end()


def complete_without_start(graph):
    """Returns the number of samples with an outermost frame that is not the start of a process or thread.

    The start of the dynamic linker may have no name.
    """
    return sum(graph.total_count[n] for n in range(1, len(graph))
               if graph.parent[n] == 0 and graph.kind[n] == 1 and graph.name_of(n) not in STARTS
               and not (graph.executable_of(n) or "").startswith("ld-"))


def check_bad_input(scene, loads):
    # Where each program must have burnt its time: (function, file, minimum share of its samples).
    where = {corrupt.__name__: ("burn_here", corrupt.__name__, 0.9) for corrupt in CORRUPTIONS}
    where |= {"sparse_file": ("burn_here", "sparse_file", 0.9), "sparse_text": ("burn_here", "sparse_text", 0.45),
              "many": ("library_work_a", "liblife_a.so", 0.7)}
    for name in loads:
        health = scene.report(name)
        graph = scene.graph(name)
        lib.check(graph.total_count[0] >= 0.9 * MS * RATE / 1000, f"{name}: only {graph.total_count[0]} samples")
        broken = complete_without_start(graph)
        incomplete = health["samples"] - health["endings"].get("complete", 0)
        lib.check(broken <= incomplete, f"{name}: {broken} stacks begin at no start, only {incomplete} are called incomplete")
        if name in where:
            function, file, share = where[name]
            seen = scene.burnt_in(name, function, file)
            lib.check(seen >= share * graph.total_count[0], f"{name}: {seen} of {graph.total_count[0]} samples in {function}")
        elif name != "cut_before":  # that file lost its identity when it was cut: its samples are unattributed
            files = sum(graph.total_count[n] for n in range(1, len(graph)) if graph.executable_of(n) == f"{name}.so")
            lib.check(files >= 0.9 * MS * RATE / 1000, f"{name}: {files} of {graph.total_count[0]} samples in {name}.so")
    for name, share in {"sparse_file": 0.8, "many": 0.7, "truth_nofp": 0.98 if INSTRUMENTED else 0.99}.items():
        complete = scene.report(name)["complete_share"]
        lib.check(complete >= share, f"{name}: only {complete:.4f} complete")


def always_remapping(scene):
    """Maps two libraries in turn at one address, thousands of times a second. The caller's name shows which one."""
    before = scene.metrics()
    subprocess.run([Elf(lib.BIN / "hostile").write(scene.directory / "switch"), "switch", str(3 * MS), lib.BIN / "liblife_a.so",
                    lib.BIN / "liblife_b.so"], check=True)
    scene.settle()
    after = scene.metrics()
    lost = after["sideband_lost_events_total"] - before["sideband_lost_events_total"]
    cpu_ms = (after["process_cpu_seconds_total"] - before["process_cpu_seconds_total"]) * 1000
    scene.report("switch")
    graph, right, wrong = scene.graph("switch"), 0, 0
    for node in range(1, len(graph)):
        path, name = graph.path(node), graph.name_of(node)
        if graph.kind[node] != 1 or len(path) < 2 or not name.startswith("library_work") or not path[-2].startswith("during_"):
            continue
        right += graph.total_count[node] if name[-1] == path[-2][-1] else 0
        wrong += graph.total_count[node] if name[-1] != path[-2][-1] else 0
    print(f"  switch: {right} samples in the right library, {wrong} in the wrong one, {lost:.0f} events lost; "
          f"{cpu_ms / 3 / MS:.1%} of a core in the collector")
    lib.check(graph.total_count[0] >= 2.7 * MS * RATE / 1000, f"only {graph.total_count[0]} samples")
    # If the kernel had to drop events, the collector cannot know which library was mapped.
    lib.check(lost > 0 or (wrong == 0 and right > 1.5 * MS * RATE / 1000), "samples in the wrong library")


def parser_dies(scene, directory):
    """Kills the parser: the collector starts another one for the next file and counts the death."""
    def burn(name):
        subprocess.run([Elf(lib.BIN / "hostile").write(directory / name), "burn", str(MS)], check=True)

    burn("before_kill")
    victim = lib.wait_for("a parser", scene.watch.parser)
    lib.check(scene.metrics()["unwind_parser_deaths_total"] == 0, "a parser died of bad input")
    lib.check(scene.watch.privileges == {("2", 0, "1")}, f"parser's seccomp, capabilities, no_new_privs: {scene.watch.privileges}")
    os.kill(victim, signal.SIGKILL)
    burn("after_kill")
    scene.settle()
    heir = lib.wait_for("another parser", scene.watch.parser)
    lib.check(heir != victim, "the killed parser is alive")
    lib.check(scene.metrics()["unwind_parser_deaths_total"] == 1, "the parser's death is not counted")
    share = scene.report("after_kill")["complete_share"]
    lib.check(share >= 0.95, f"after the parser's death only {share:.4f} complete")


def idle_parser():
    """Starts a parser without work.

    On a machine with other users, the collector's own parser is rarely without work.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen([lib.BIN / "kernel-collector", "unwind-parser"], close_fds=False,
                                   preexec_fn=lambda: os.dup2(theirs.fileno(), PARSER_SOCKET))
    return process, ours


def check_memory(scene):
    peak = scene.watch.peak_kib
    if not INSTRUMENTED:
        lib.check(peak["collector"] <= COLLECTOR_KIB_MAX and peak["parser"] <= PARSER_KIB_MAX, f"memory: {peak} KiB")


def big_programs(directory):
    """Returns commands that execute tens of MB of code. Together it is more code than the rows of one chunk cover."""
    source = directory / "big.cc"
    source.write_text("#include <functional>\n#include <iostream>\n#include <map>\n#include <regex>\n#include <string>\n"
                      "int main(int, char** argv) { std::map<std::string, std::function<int(int)>> m; std::regex r(argv[0]);\n"
                      "std::cout << std::regex_replace(std::string(argv[0]), r, \"x\") << m.size(); }\n")
    script = directory / "big.js"
    script.write_text("const zlib = require('zlib'), end = Date.now() + 2000; let o = {};\n"
                      "for (let i = 0; i < 3e4; i++) o['k' + i] = [i, '' + i];\n"
                      "while (Date.now() < end) { zlib.brotliCompressSync(Buffer.from(JSON.stringify(o)), {params: {1: 4}});\n"
                      "new Intl.DateTimeFormat('de').format(); require('crypto').scryptSync('a', 'b', 8); }\n")
    compile_big = ["-O2", "-S", "-o", "/dev/null", source]
    return [["clang++-19", *compile_big], ["g++", *compile_big], ["node", script], ["clang++-14", *compile_big], ["clang++-19", *compile_big]]


def little_memory():
    """Tests one chunk of rows for programs that need several, one after the other.

    Units are evicted and loaded again, and stacks stay complete.
    """
    with lib.directory() as d, lib.programs() as programs:
        scene = Scene(d, programs, ["--unwind-memory", "8MiB"])
        innocent = subprocess.Popen([lib.BIN / "truth_nofp", "6"], stdout=subprocess.DEVNULL)
        for command in big_programs(d):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        lib.check(innocent.wait() == 0, "the innocent program's exit code")
        scene.settle()
        metrics = scene.metrics()
        keys = ("units_loaded_total", "units_evicted_total", "chunk_bytes", "rows", "requests_refused_total")
        print("  " + ", ".join(f"{key} {metrics['unwind_' + key]:.0f}" for key in keys))
        lib.check(metrics["unwind_units_evicted_total"] > 0, "nothing was evicted: the programs are too small for this test")
        lib.check(metrics["unwind_chunk_bytes"] <= 8 * MIB, f"{metrics['unwind_chunk_bytes']} bytes of chunks")
        for name in ("cc1plus|clang.*|node", "truth_nofp"):
            share = scene.report(name)["complete_share"]
            lib.check(share >= 0.95, f"{name}: only {share:.4f} complete")
        seen, count = scene.burnt_in("truth_nofp", "hash_blocks"), scene.graph("truth_nofp").total_count[0]
        lib.check(abs(seen / count - 0.6) <= 0.03, f"{seen} of {count} samples in hash_blocks, 60% true")
        scene.end()


if __name__ == "__main__":
    lib.main(bad_input, little_memory)
