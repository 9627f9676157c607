"""Tests capabilities. kernel-collector keeps six, and each has a purpose.

Without one capability, exactly the features that need it are missing, and the log says so. The programs keep no other
capabilities: the test checks every thread of the three programs and every process that they start.
"""

import contextlib
import pathlib
import subprocess
import time

import lib

NUMBERS = {"dac_read_search": 2, "sys_ptrace": 19, "sys_admin": 21, "syslog": 34, "perfmon": 38, "bpf": 39, "checkpoint_restore": 40}
SIX = ["bpf", "perfmon", "sys_ptrace", "dac_read_search", "checkpoint_restore", "syslog"]
DOCKER_20 = ["sys_admin", "sys_ptrace", "dac_read_search", "syslog"]  # Docker 20 does not know the other three
NOBODY = 65534
KERNEL = 2

# The features that the test looks for, and the features that are missing without a capability.
EVERYTHING = {"earlier", "deleted", "private", "environment", "kernel"}
MISSING = {"sys_ptrace": {"earlier", "deleted", "private", "environment"}, "dac_read_search": {"private", "environment"},
           "checkpoint_restore": {"deleted"}, "syslog": {"kernel"}}
# Newer kernels (6.18) show environ to a holder of CAP_PERFMON.
EITHER = {"sys_ptrace": {"environment"}}
WORDS = {"sys_ptrace": "without their executable", "dac_read_search": "only other users may read", "checkpoint_restore": "deleted or replaced",
         "syslog": "kernel frames"}


def bits(capabilities):
    return sum(1 << NUMBERS[name] for name in capabilities)


def holding(capabilities):
    """Returns a prefix that starts a program with only these capabilities: root gets those in the bounding set."""
    return ["setpriv", "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=" + ",".join(["-all", *(f"+{c}" for c in capabilities)])]


@contextlib.contextmanager
def sysctl(name, is_good, wanted):
    """Sets a sysctl to `wanted` unless its value is good already. Restores the old value at the end."""
    path = pathlib.Path("/proc/sys/kernel") / name
    before = path.read_text().strip()
    if is_good(int(before)):
        yield
        return

    def put(value):
        subprocess.run([*lib.ROOT, "sh", "-c", f"echo {value} > {path}"], check=True)

    put(wanted)
    try:
        yield
    finally:
        put(before)


@contextlib.contextmanager
def plain_sysctls():
    """Sets the sysctl values for which CAP_SYSLOG and CAP_PERFMON matter.

    Below these values the kernel requires neither capability. Above them neither helps.
    """
    with sysctl("perf_event_paranoid", lambda value: value == 2, 2), sysctl("kptr_restrict", lambda value: value in (0, 1), 1):
        yield


class Status:
    """/proc/PID/status of one thread."""

    def __init__(self, path):
        fields = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
        self.name, self.parent = fields["Name"].strip(), int(fields["PPid"])
        self.sets = {kind: int(fields[f"Cap{kind}"], 16) for kind in ("Eff", "Prm", "Inh", "Amb", "Bnd")}
        self.no_new_privileges, self.filtered = fields["NoNewPrivs"].strip() == "1", fields["Seccomp"].strip() == "2"

    def check(self, label, kept, bounding):
        """`kept`: the effective and permitted sets. `bounding`: the capabilities that the bounding set may have."""
        expected = {"Eff": kept, "Prm": kept, "Inh": 0, "Amb": 0, "Bnd": self.sets["Bnd"] & bounding}
        lib.check(self.sets == expected, f"{label}: {self.name} has {self.sets}, expected {expected}")
        lib.check(self.no_new_privileges, f"{label}: {self.name} lacks no_new_privs")


def statuses(folders):
    for folder in folders:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            yield Status(folder / "status")


def check_threads(program, kept=(), bounding=()):
    threads = list(statuses(pathlib.Path(f"/proc/{program.pid}/task").iterdir()))
    if lib.is_instrumented(program.binary):
        threads = threads[:1]  # a sanitizer starts its own thread before main
    lib.check(threads, f"{program.name} has no threads")
    for thread in threads:
        thread.check(program.name, bits(kept), bits(bounding))
    return len(threads)


class Children:
    """The sandboxed processes that a program starts. They may end at any time."""

    def __init__(self):
        self.seen = set()

    def look(self, program, bounding=()):
        pid = program.pid
        for child in statuses(p for p in pathlib.Path("/proc").iterdir() if p.name.isdigit()):
            if child.parent != pid or not child.filtered:
                continue  # the child has just started and has no seccomp filter yet
            child.check(f"a child of {program.name}", 0, bits(bounding))
            self.seen.add(child.name)


@contextlib.contextmanager
def workloads(d):
    """Runs programs that start before any collector.

    One stays as it is. One has a deleted file. One belongs to another user, and only that user may read it. One makes
    system calls. The files are on a separate disk: a file is found by path only if stat and the mappings have the same
    device.
    """
    with lib.small_disk(d / "disk", "16m") as disk, contextlib.ExitStack() as running:
        subprocess.run([*lib.ROOT, "chmod", "711", d, disk], check=True)
        subprocess.run([*lib.ROOT, "install", "-d", "-m", "700", "-o", str(NOBODY), disk / "home"], check=True)
        files = {"earlier": disk / "cap_earlier", "deleted": disk / "cap_deleted", "private": disk / "home/cap_private"}
        for name, path in files.items():
            owner = NOBODY if name == "private" else 0
            subprocess.run([*lib.ROOT, "install", "-m", "700", "-o", str(owner), lib.BIN / "truth", path], check=True)

        def start(name, args):
            program = lib.Program(name, args, d, as_root=True)
            running.callback(program.kill)

        start("cap_earlier", [files["earlier"], 300])
        start("cap_deleted", [files["deleted"], 300])
        start("cap_private", ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all",
                              "env", "OTEL_SERVICE_NAME=cap-shop", files["private"], 300])
        start("cap_kernel", ["dd", "if=/dev/urandom", "of=/dev/null", "bs=64k"])
        time.sleep(0.3)
        subprocess.run([*lib.ROOT, "rm", files["deleted"]], check=True)
        yield


class Case:
    """A collector with these capabilities, and its own reducer: collectors would share the names in a shared one."""

    def __init__(self, d, name, capabilities, prefix, without=None):
        self.name, self.capabilities = name, capabilities
        self.expected, self.either = EVERYTHING - MISSING.get(without, set()), EITHER.get(without, set())
        folder = d / name
        folder.mkdir()
        self.bounding = capabilities if prefix else ()
        self.start_ms = lib.now_ms()
        self.reducer = lib.Reducer(folder)
        self.collector = lib.Collector(folder, self.reducer.intake_port, rate=99, args=["--batch-interval", "500ms"], prefix=prefix)
        self.collector.binary = "kernel-collector"

    def graph(self, selector):
        return self.reducer.flamegraph(selector, self.start_ms, lib.now_ms() + 1000)

    def seen(self):
        seen = {name for name in ("earlier", "deleted", "private")
                if self.graph(f'{{process_executable_name="cap_{name}"}}').count_of("hash_blocks")}
        if self.graph('{service_name="cap-shop"}').total_count[0]:
            seen.add("environment")
        kernel = self.graph("{}")
        names = {kernel.name_of(node) for node in range(1, len(kernel)) if kernel.kind[node] == KERNEL}
        if any(not name.startswith("[") and "+0x" not in name for name in names):
            seen.add("kernel")
        return seen

    def finish(self):
        """Checks the case. Call it when all cases have seen their features: a missing feature is then not late."""
        threads = check_threads(self.collector, self.capabilities, self.bounding)
        lib.check(self.collector.stop() == 0, "the collector's exit code")
        seen, log = self.seen(), self.collector.text()
        lib.check(seen - self.either == self.expected, f"{self.name}: {sorted(seen)} work, expected {sorted(self.expected)}")
        missing = [name for name in SIX if f"CAP_{name.upper()} is missing" in log]
        expected = [name for name in SIX if name not in self.capabilities and "sys_admin" not in self.capabilities]
        lib.check(missing == expected, f"{self.name}: the log names {missing}, expected {expected}:\n{log}")
        for name in missing:
            lib.check(WORDS[name] in log and f"--cap-add {name.upper()}" in log, f"{self.name}: no word of the loss, or of what to do:\n{log}")
        lib.check_law(self.reducer.status())
        print(f"  {self.name}: {threads} threads; works: {', '.join(sorted(seen))}", flush=True)


def each_capability_is_for_something():
    with plain_sysctls(), lib.directory() as d, workloads(d), lib.programs() as started:
        cases = [Case(d, "root", SIX, ()), Case(d, "six", SIX, holding(SIX)), Case(d, "docker-20.10", DOCKER_20, holding(DOCKER_20))]
        for name in MISSING:
            left = [c for c in SIX if c != name]
            cases.append(Case(d, f"without-{name}", left, holding(left), name))
        for case in cases:
            started += [case.reducer, case.collector]
        children = Children()

        def ready(case):
            lib.check(case.collector.running(), f"{case.name} ended:\n{case.collector.text()}")
            children.look(case.collector, case.bounding)
            return case.seen() >= case.expected

        for case in cases:
            lib.wait_for(f"all of {case.name}", lambda case=case: ready(case), 120)
        time.sleep(1)
        for case in cases:
            case.finish()
        lib.check(children.seen == {"unwind-parser", "symbol-maker"}, f"children: {children.seen}")


def without_bpf_or_perfmon():
    """Tests that the start fails without one of these two, and that the error names it."""
    for name in ("bpf", "perfmon"):
        left = [c for c in SIX if c != name]
        result = subprocess.run([*lib.ROOT, *holding(left), lib.BIN / "kernel-collector"], capture_output=True, text=True, timeout=60, check=False)
        output = (result.stdout + result.stderr).strip()
        lib.check(result.returncode == 1, f"exit code {result.returncode}: {output}")
        lib.check(f"CAP_{name.upper()} missing" in output and len(output.splitlines()) == 1, f"the message: {output}")
        print(f"  {output}")


def reducer_keeps_none():
    with lib.directory() as d, lib.programs() as started:
        reducer = lib.Reducer(d, prefix=["env"])  # as root
        reducer.binary = "reducer"
        started.append(reducer)
        threads = check_threads(reducer)
        # Push a file with a debug build's debug information, which takes a while to read.
        push = lib.Program("push", [lib.BIN / "tributary", "symbols", "push", "--whole", "--server", reducer.url,
                                    lib.BIN / "reducer"], d)
        started.append(push)
        children = Children()

        def pushed():
            children.look(reducer)
            return not push.running()

        lib.wait_for("the upload", pushed, 120, 0.01)
        lib.check(push.process.returncode == 0, f"the upload failed:\n{push.text()}")
        lib.check(children.seen == {"symbol-reader"}, f"children: {children.seen}")
        check_threads(reducer)
        lib.check(reducer.stop() == 0, "the reducer's exit code")
        # Ports below 1024 need CAP_NET_BIND_SERVICE, at least in a separate network namespace. The reducer opens its
        # ports before it drops its capabilities.
        low = lib.Reducer(d, name="low", data=d / "low-data", args=["--allow-anonymous"], http_host="0.0.0.0", http_port=80,
                          prefix=["unshare", "--net"])
        low.binary = "reducer"
        started.append(low)
        check_threads(low)
        lib.check(low.http_port == 80 and low.stop() == 0, "a reducer on port 80")
        print(f"  {threads} threads, and symbol-reader, have none")


def cluster_collector_keeps_none():
    with lib.directory() as d, lib.programs() as started:
        program = lib.Program("k8s-collector", [lib.BIN / "k8s-collector", "--api-server", "http://127.0.0.1:1", "--cluster-name", "c",
                                                "--intake-port", 1], d, as_root=True)
        program.binary = "k8s-collector"
        started.append(program)
        lib.wait_for("its start", lambda: "watching" in program.text(), 30)
        time.sleep(0.5)  # connections may start threads
        lib.check(program.running(), f"it ended:\n{program.text()}")
        print(f"  {check_threads(program)} threads have none")
        lib.check(program.stop() == 0, "the exit code")


if __name__ == "__main__":
    lib.main(each_capability_is_for_something, without_bpf_or_perfmon, reducer_keeps_none, cluster_collector_keeps_none)
