"""Starts the real programs for end-to-end tests: reducer, kernel-collector, the truth workload.

It also queries the API and checks the law. Every process gets free ports and its own directory, and is stopped at the
end. A failure message contains the process's log.
"""

import contextlib
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

BIN = pathlib.Path(os.environ["TRIBUTARY_BIN"])
SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
ROOT = [] if os.geteuid() == 0 else ["sudo", "-n", "-E"]


class Failure(Exception):
    pass


def check(condition, message):
    if not condition:
        raise Failure(message)


def wait_for(description, condition, timeout_s=30.0, step_s=0.1):
    """Polls until condition() is true. Returns its last value."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure(f"waited {timeout_s} s in vain for {description}")
        time.sleep(step_s)


class Program:
    """One process that the test starts. Its output goes to a log file."""

    def __init__(self, name, args, directory, as_root=False, env=None):
        self.name = name
        self.log_path = pathlib.Path(directory) / f"{name}.log"
        self.log = open(self.log_path, "ab")
        self.process = subprocess.Popen((ROOT if as_root else []) + [str(a) for a in args], stdout=self.log,
                                        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=env)

    @property
    def pid(self):
        """Returns the pid of the program, not of a sudo that started it: sudo cannot pass on SIGKILL and SIGSTOP."""
        pid = self.process.pid
        while self.running() and pathlib.Path(f"/proc/{pid}/comm").read_text() == "sudo\n":
            child = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split()
            if not child:
                break
            pid = int(child[0])
        return pid

    def running(self):
        return self.process.poll() is None

    def text(self):
        return self.log_path.read_text(errors="replace")

    def signal(self, number):
        if not self.running():
            return
        if ROOT:
            subprocess.run(ROOT + ["kill", f"-{int(number)}", str(self.pid)], check=False)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def stop(self, timeout_s=10):
        """Sends SIGTERM and returns the exit code. A program that does not end in time is killed: that is a failure."""
        self.signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired as e:
            self.signal(signal.SIGKILL)
            self.process.wait()
            raise Failure(f"{self.name} did not end within {timeout_s} s of SIGTERM:\n{self.text()}") from e

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()


class Reducer(Program):
    """`prefix` starts the reducer in another environment, for example `ip netns exec`. It then runs as root."""

    def __init__(self, directory, args=(), data=None, intake_port=0, http_port=0, name="reducer", intake_host="127.0.0.1",
                 http_host="127.0.0.1", prefix=(), env=None):
        self.directory = pathlib.Path(directory)
        self.data = pathlib.Path(data or self.directory / "data")
        self.data.mkdir(exist_ok=True)
        ports_file = self.directory / f"{name}.ports"
        ports_file.unlink(missing_ok=True)
        super().__init__(name, [*prefix, BIN / "reducer", "--data-dir", self.data, "--intake-listen", f"{intake_host}:{intake_port}",
                                "--http-listen", f"{http_host}:{http_port}", "--ports-file", ports_file, *args], directory,
                         as_root=bool(prefix), env=env)

        def ready():
            if not self.running():
                raise Failure(f"the reducer ended:\n{self.text()}")
            return ports_file.exists()

        wait_for("the reducer's ports", ready)
        ports = json.loads(ports_file.read_text())
        self.intake_port, self.http_port = ports["intake"], ports["http"]
        self.intake = f"{intake_host}:{self.intake_port}"
        self.url = f"http://{http_host}:{self.http_port}"

    def get(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(f"{self.url}{path}{'?' + query if query else ''}", timeout=30) as answer:
                return answer.read()
        except urllib.error.HTTPError as e:
            raise Failure(f"GET {path} {parameters}: {e.code} {e.read().decode(errors='replace')}") from e

    def json(self, path, **parameters):
        return json.loads(self.get(path, **parameters))

    def status(self):
        return self.json("/api/v1/status")

    def metric(self, name):
        """Returns a metric of /metrics, summed over its labels."""
        lines = self.get("/metrics").decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.split("{")[0].split(" ")[0] == name)

    def flamegraph(self, selector, start_ms, end_ms, **more):
        return FlameGraph(self.json("/api/v1/flamegraph", query=selector, **{"from": start_ms, "to": end_ms}, **more))


class Collector(Program):
    """By default it has no CPU budget: instrumented builds and 999 Hz cost more than the default budget allows.

    `prefix` starts it in another environment, for example `unshare -m`.
    """

    def __init__(self, directory, intake_port, rate=999, args=(), name="collector", cpu_budget="off", prefix=(), env=None):
        super().__init__(name, [*prefix, BIN / "kernel-collector", "--intake-port", intake_port, "--sample-rate", rate, "--cpu-budget",
                                cpu_budget, *args],
                         directory, as_root=True, env=env)


# Options of a kernel-collector whose last requests must arrive: on a busy machine, they take longer than the default
# time. Later options win. stop_patiently() waits longer than this.
PATIENT = ["--shutdown-timeout", "50s"]


def stop_patiently(collector):
    """Stops a collector that was started with PATIENT."""
    check(collector.stop(60) == 0, f"{collector.name}'s exit code")


def metrics_port(program):
    """Returns the port of /metrics that a collector chose, from its log: with --metrics-listen 127.0.0.1:0."""
    found = wait_for(f"{program.name}'s port", lambda: re.search(r"metrics url=http://127\.0\.0\.1:(\d+)/metrics", program.text())
                     or not program.running(), 90)
    check(program.running(), f"{program.name} ended:\n{program.text()}")
    return int(found.group(1))


def last_totals(log):
    """Returns the numbers of the last line of totals in a collector's log."""
    line = re.findall(r" stopped captured=.*", log)[-1]
    return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line)}


class FlameGraph:
    """The columns of the API's answer, with a few queries."""

    def __init__(self, answer):
        self.answer = answer
        self.names = answer["names"]
        nodes = answer["nodes"]
        self.parent, self.name, self.kind = nodes["parent"], nodes["name"], nodes["kind"]
        self.total_ns, self.self_ns = nodes["total_ns"], nodes["self_ns"]
        self.total_count, self.self_count = nodes["total_count"], nodes["self_count"]
        self.executable = nodes["executable"]

    def __len__(self):
        return len(self.parent)

    def name_of(self, node):
        return self.names[self.name[node]]

    def path(self, node):
        out = []
        while node > 0:
            out.append(self.name_of(node))
            node = self.parent[node]
        return out[::-1]

    def count_of(self, function):
        """Returns the samples with `function` as their leaf user function, with or without kernel frames on top."""
        return sum(self.total_count[i] for i in range(len(self)) if self.is_user_function(i) and self.name_of(i) == function)

    def ns_of(self, function):
        """Returns the same as count_of(), in ns."""
        return sum(self.total_ns[i] for i in range(len(self)) if self.is_user_function(i) and self.name_of(i) == function)

    def kind_of(self, node):
        return self.answer["kinds"][self.kind[node]]["name"]

    def is_user_function(self, node):
        return self.kind_of(node) not in ("root", "kernel", "inlined", "unknown")

    def kinds_by_name(self):
        """Returns {function: the names of its frames' kinds}."""
        kinds = {}
        for i in range(len(self)):
            kinds.setdefault(self.name_of(i), set()).add(self.kind_of(i))
        return kinds

    def executable_of(self, node):
        index = self.executable[node]
        return self.answer["executables"][index] if index >= 0 else None


def is_instrumented(program):
    """Returns whether the program was built with a sanitizer, which needs additional memory and time."""
    binary = (BIN / program).read_bytes()
    return b"__asan_init" in binary or b"__tsan_init" in binary


def now_ms():
    return int(time.time() * 1000)


def stolen_ns():
    """Returns the time that the hypervisor took from all CPUs. perf's clock includes it, schedstat does not."""
    with open("/proc/stat", encoding="ascii") as file:
        return int(file.readline().split()[8]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def run_truth(seconds, threads=1):
    """Runs the workload to its end. Returns the workload's own measurements."""
    result = subprocess.run([BIN / "truth", str(seconds), str(threads)], check=True, capture_output=True, text=True)
    return json.loads(result.stdout)


def four_sigma(share, count):
    """Returns the bound on |observed − true| share of a binomial draw of `count`."""
    return 4 * math.sqrt(share * (1 - share) / count)


def mount_bpffs():
    """Mounts a bpffs at /sys/fs/bpf unless there is one. A bare machine may lack it."""
    mounts = pathlib.Path("/proc/mounts").read_text()
    if " /sys/fs/bpf bpf" not in mounts:
        subprocess.run(ROOT + ["mount", "-t", "bpf", "bpf", "/sys/fs/bpf"], check=True)


@contextlib.contextmanager
def small_disk(path, size):
    """Mounts a separate file system at `path`, which a test can fill."""
    path.mkdir()
    subprocess.run(ROOT + ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700,uid={os.geteuid()}", "tmpfs", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(ROOT + ["umount", "-l", path], check=True)


def fill_disk(path):
    """Fills all free space. Remove the returned file to free the space again."""
    filler = path / "filler"
    with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as f:
        while f.write(b"x" * 4096):
            pass
    return filler


def check_law(status, lost=None):
    """Checks that captured = stored + lost, exactly."""
    total = status["total"]
    sum_lost = sum(total["lost"].values())
    check(total["captured"] == total["stored"] + sum_lost,
          f"the law is broken: captured {total['captured']} != stored {total['stored']} + lost {total['lost']}")
    if lost is not None:
        check(sum_lost == lost, f"lost {total['lost']}, expected {lost} in all")


# The counter of captured CPU samples in the map of counters: TRIB_COUNTER_SLOT(TRIB_CONTEXT_TICK, TRIB_TYPE_CPU, TRIB_CAPTURED) of
# bpf/include/records.h. probes_live_test asserts the number.
CAPTURED_SLOT = 8
EVENT_SLOTS = (0, 1)  # captured process events, and process events that the collector made: bpf/include/process_events.h


def forget_collectors():
    """Removes the maps that earlier collectors left pinned.

    Otherwise the next collector would report their losses, which belong to another test.
    """
    for name in ("session", "counters"):
        subprocess.run(ROOT + ["rm", "-f", f"/sys/fs/bpf/tributary/{name}"], check=True)


@contextlib.contextmanager
def directory():
    forget_collectors()
    path = tempfile.mkdtemp(prefix="tributary-e2e-")
    try:
        yield pathlib.Path(path)
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def programs():
    """Collects programs. At the end it kills programs that still run. If a test failed, it prints their logs."""
    started = []
    try:
        yield started
    except BaseException:
        for program in started:
            print(f"--- {program.name} (last lines)\n" + "\n".join(program.text().splitlines()[-40:]), file=sys.stderr)
        raise
    finally:
        for program in reversed(started):
            if program.running():
                program.kill()


def main(*tests):
    """Runs the given functions, or only those named on the command line. One failure makes the whole run fail."""
    wanted = sys.argv[1:]
    failed = 0
    for test in tests:
        if wanted and test.__name__ not in wanted:
            continue
        started = time.monotonic()
        try:
            test()
            print(f"ok     {test.__name__} ({time.monotonic() - started:.1f} s)", flush=True)
        except (Failure, subprocess.CalledProcessError, subprocess.TimeoutExpired, RuntimeError) as e:
            failed += 1
            print(f"FAILED {test.__name__}: {e}", flush=True)
            if isinstance(e, subprocess.CalledProcessError):
                print(e.stderr if isinstance(e.stderr, str) else (e.stderr or b"").decode(errors="replace"))
    sys.exit(1 if failed else 0)
