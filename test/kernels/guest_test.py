"""Boots another kernel (qemu, software emulation) with our collector.

The collector profiles two workloads in the guest and sends to a reducer on the host. The test checks the loaded
programs, the stacks, names and shares, also for a module and for BPF programs, the process events, and the law.

    guest_test.py VERSION [amd64|arm64]      a version that fetch.sh knows
    guest_test.py VERSION ARCH IMAGE.tar     with the collector of a container image
"""

import contextlib
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))

import guest  # noqa: E402
import lib  # noqa: E402
import process_lives  # noqa: E402

CHAIN = ["main", "serve", "handle", "dispatch", "work"]
SHARES = {"hash_blocks": 0.6, "sort_rows": 0.3, "parse_text": 0.1}
WORKLOADS = ["truth", "truth_nofp"]
# Emulated timers are coarse, and starting a program takes long. So the bounds on shares are wider than elsewhere.
# The bounds on stacks and names are the same.
SHARE_BOUND = 0.1
LEAVES_MIN = 0.85
CHAINED_MIN = 0.95  # an emulated CPU takes many samples' time to read an executable's unwind information
SAMPLES_MIN = 300
KERNEL_NAMED_MIN = 0.98  # before the workloads begin
MODULE_SAMPLES_MIN = 20  # with a frame of the network card's modules: every kernel has them, and they are easy to load
SINK_S = 4
BPF_SAMPLES_MIN = 100  # of 3 s at 199 Hz
LIVES_MIN = 200
HOTPLUG_SAMPLES_MIN = 100  # of 2 s at 199 Hz
# CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_SYSLOG, CAP_PERFMON, CAP_BPF, CAP_CHECKPOINT_RESTORE
KEPT = 1 << 2 | 1 << 19 | 1 << 34 | 1 << 38 | 1 << 39 | 1 << 40
SYS_ADMIN = 1 << 21  # Debian's kernels require it: their default of kernel.perf_event_paranoid is 3
PARANOID = {"5.10": 2}  # test one kernel without that requirement
USER, KERNEL = 1, 2  # kinds of frames


def fetch(version, machine):
    """Returns the folder of a kernel, and its release."""
    out = subprocess.run([HERE / "fetch.sh", version, machine.arch], check=True, stdout=subprocess.PIPE, text=True).stdout
    folder = pathlib.Path(out.strip())
    return folder, (folder / "release").read_text().strip()


def count_programs(machine, release):
    """Counts the programs that the collector loads: the BPF object's functions outside .text. Programs share those in .text.

    The further copies of the programs for process events are loaded from Linux 7.0 on.
    """
    out = subprocess.run(["readelf", "-SsW", guest.build_folder(machine) / "bpf/sampler.bpf.o"], check=True, capture_output=True,
                         text=True).stdout
    text = re.search(r"\[ *(\d+)\] \.text ", out)
    functions = re.findall(r"\bFUNC +GLOBAL +\S+ +(\d+) (\w+)", out)
    has_copies = int(release.split(".")[0]) >= 7
    return sum(section != (text and text.group(1)) and (has_copies or not name.endswith(("_second", "_last"))) for section, name in functions)


def check_console(text, release, programs):
    lib.check(f"release {release}\n" in text, f"the guest is not {release}")
    lib.check(f"programs {programs}\n" in text, f"the collector does not hold {programs} programs")
    lib.check("collector exit 0\n" in text, "the collector's exit code is not 0")


def check_workload(graph, name):
    """Checks the shares by leaf, and how many samples of the three functions have the whole chain."""
    count = graph.total_count[0]
    lib.check(count > SAMPLES_MIN, f"{count} samples of {name}")
    chained = sum(graph.total_count[node] for node in range(len(graph))
                  if graph.kind[node] == USER and graph.name_of(node) in SHARES and graph.path(node)[-6:-1] == CHAIN)
    leaves = {leaf: graph.count_of(leaf) for leaf in SHARES}
    inside = sum(leaves.values())
    print(f"{name}: {count} samples, {inside} in the three functions, {chained} of them with the whole chain, "
          + ", ".join(f"{leaf} {n / count:.3f}" for leaf, n in leaves.items()), flush=True)
    lib.check(inside / count > LEAVES_MIN, f"too many samples of {name} are elsewhere")
    lib.check(chained / inside > CHAINED_MIN,
              f"the chain {' → '.join(CHAIN)} is missing from too many stacks of {name}")
    for leaf, share in SHARES.items():
        lib.check(abs(leaves[leaf] / count - share) < SHARE_BOUND, f"{name}: {leaf} {leaves[leaf] / count:.3f}, true {share}")


def kernel_named(graph):
    """Returns the share of the kernel's frames that have names, by samples, or 0 if there is no frame."""
    frames = [node for node in range(len(graph)) if graph.kind[node] == KERNEL]
    named = sum(graph.total_count[node] for node in frames if "+0x" not in graph.name_of(node))
    return named / max(1, sum(graph.total_count[node] for node in frames))


def unnamed(graph):
    """Yields (name, samples, path of callers) of the kernel's frames without a name."""
    for node in range(len(graph)):
        if graph.kind[node] == KERNEL and "+0x" in graph.name_of(node):
            path, caller = [], graph.parent[node]
            while caller > 0 and len(path) < 6:
                path.append(graph.name_of(caller))
                caller = graph.parent[caller]
            yield graph.name_of(node), graph.total_count[node], " < ".join(path)


@contextlib.contextmanager
def sink():
    """Yields the port of a listener on the host that receives one guest's data for SINK_S seconds."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def take():
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                until = time.monotonic() + SINK_S
                while time.monotonic() < until and connection.recv(1 << 20):
                    pass
                connection.close()

        threading.Thread(target=take, daemon=True).start()
        yield listener.getsockname()[1]


def check_kernel(graph, text):
    """Checks that every kernel frame has a name, a module's frames the names of kallsyms.

    Also checks the samples of BPF programs that were loaded before and after the collector's start.
    """
    lib.check(kernel_named(graph) == 1, f"frames of the kernel without a name: {sorted(unnamed(graph))[:20]}")
    listed = re.search(r"BEGIN-KALLSYMS\n(.*?)END-KALLSYMS", text, re.DOTALL).group(1)
    known = {(f"[{module}]", name) for name, module in re.findall(r"^[0-9a-f]+ \w (?!\$[xd]\b)(\S+)\t\[(virtio_\w+)\]$", listed, re.MULTILINE)}
    modules = {module for module, _ in known}
    lib.check("[virtio_net]" in modules, "virtio_net is no module")
    frames = [node for node in range(len(graph)) if graph.kind[node] == KERNEL]
    of_modules = {node for node in frames if graph.executable_of(node) in modules}
    shown = {(graph.executable_of(node), graph.name_of(node)) for node in of_modules}
    lib.check(shown <= known, f"kallsyms has none of these: {shown - known}")
    lib.check("[virtio_net]" in {module for module, _ in shown}, "no frame of virtio_net")
    samples = sum(graph.total_count[node] for node in of_modules if graph.parent[node] not in of_modules)
    programs = {}
    for name in ("early", "late"):
        symbol = re.search(rf"^bpf_prog_[0-9a-f]{{16}}_{name}$", text, re.MULTILINE).group(0)
        programs[symbol] = sum(graph.self_count[node] for node in frames if graph.name_of(node) == symbol)
    print(f"{samples} samples with frames of modules: {sorted(shown)}; of BPF programs: {programs}", flush=True)
    lib.check(samples > MODULE_SAMPLES_MIN, f"only {samples} samples with frames of modules")
    lib.check(min(programs.values()) > BPF_SAMPLES_MIN, "samples of BPF programs are missing")


def check_hotplug(graph, text):
    """Checks that a CPU is sampled again after it went offline and came back.

    The collector has only the capabilities that it keeps after the start. The workload ran only on that CPU.
    """
    kept, paranoid = re.search(r"^kept CapEff:\s*([0-9a-f]+) paranoid (\d+)$", text, re.MULTILINE).groups()
    log = re.search(r"BEGIN-LOG\n(.*?)END-LOG", text, re.DOTALL).group(1)
    for words in ("CPU went offline cpu=1", "CPU came online cpu=1"):
        lib.check(words in log, f"the collector's log lacks '{words}':\n{log}")
    print(f"{graph.total_count[0]} samples on the CPU that came back; capabilities {kept}, perf_event_paranoid {paranoid}", flush=True)
    lib.check(int(kept, 16) == KEPT | (SYS_ADMIN if int(paranoid) > 2 else 0), f"the collector has the capabilities {kept}")
    lib.check(graph.total_count[0] > HOTPLUG_SAMPLES_MIN, f"only {graph.total_count[0]} samples on the CPU that came back")


def check_process_events(reducer, text):
    """Compares the process events with what the guest's processes did."""
    lines = re.search(r"BEGIN-LIVES\n(.*?)END-LIVES", text, re.DOTALL).group(1)
    lives = process_lives.parse("\n".join(line for line in lines.splitlines() if line.startswith("{")))
    lib.check(len(lives) > LIVES_MIN and "lives failed" not in text, f"the guest printed {len(lives)} lives")
    events = process_lives.events_of(reducer)
    lost = process_lives.check_law(reducer.status(), events)
    process_lives.compare(lives, events, lost=sum(lost.values()))
    lib.check(not lost, f"process events were lost: {lost}")


def bpf_programs(graph):
    return {found.group(1) for name in graph.names if (found := re.fullmatch(r"bpf_prog_[0-9a-f]{16}_(early|late)", name))}


def selector(name):
    return f'{{process_executable_name="{name}"}}'


def wait_for(booted, description, condition):
    """Works like lib.wait_for, with a time limit for emulation on a busy host. Fails when the guest ends."""

    def state():
        lib.check(booted.running(), f"the guest ended before {description}")
        return condition()

    return lib.wait_for(description, state, timeout_s=120)


def drive(booted, reducer, graph_of):
    """Lets the guest run the workloads when the kernel has names, and stops the guest when the workloads have names."""
    wait_for(booted, "names of the kernel", lambda: kernel_named(graph_of("{}")) > KERNEL_NAMED_MIN)
    booted.send("run")
    wait_for(booted, "the end of the workloads", lambda: "workloads done\n" in booted.text())
    for name in WORKLOADS:
        wait_for(booted, f"names of {name}", lambda name=name: graph_of(selector(name)).count_of("hash_blocks") > 0)
    wait_for(booted, "names of BPF programs", lambda: bpf_programs(graph_of("{}")) == {"early", "late"})
    booted.send("hotplug")
    wait_for(booted, "a CPU to go and come back", lambda: "hotplug done\n" in booted.text())
    # Code that runs for the first time when a CPU goes offline may get its names only now.
    with contextlib.suppress(lib.Failure):  # check_kernel reports frames without a name
        wait_for(booted, "names of the kernel's frames", lambda: kernel_named(graph_of("{}")) == 1)
    booted.send("stop")
    lib.wait_for("the guest's end", lambda: not booted.running(), timeout_s=60)


def run(version, machine, container, directory, reducer, started, sink_port):
    kernel, release = fetch(version, machine)
    image = guest.build_initramfs(machine, kernel, directory, container)
    start_s, start_ms = time.monotonic(), lib.now_ms()
    booted = guest.Guest(machine, kernel, image, directory, {"intake_port": reducer.intake_port, "sink_port": sink_port,
                                                               "paranoid": PARANOID.get(version, "")})
    started.append(booted)

    def graph_of(wanted):
        return reducer.flamegraph(wanted, start_ms - 1000, lib.now_ms() + 1000)

    try:
        drive(booted, reducer, graph_of)
    except lib.Failure:
        booted.send("stop")  # so that the guest prints the collector's log
        with contextlib.suppress(subprocess.TimeoutExpired):
            booted.process.wait(20)
        raise
    status = reducer.status()
    print(f"{release}: ran {time.monotonic() - start_s:.1f} s, law {status['total']}", flush=True)
    check_console(booted.text(), release, count_programs(machine, release))
    lib.check_law(status)
    for name in WORKLOADS:
        check_workload(graph_of(selector(name)), name)
    check_kernel(graph_of("{}"), booted.text())
    check_hotplug(graph_of(selector("on_cpu1")), booted.text())
    check_process_events(reducer, booted.text())


def main():
    version, machine = sys.argv[1], guest.MACHINES[sys.argv[2] if len(sys.argv) > 2 else "amd64"]
    container = sys.argv[3] if len(sys.argv) > 3 else None
    try:
        with lib.directory() as d, lib.programs() as started, sink() as sink_port:
            reducer = lib.Reducer(d)
            started.append(reducer)
            run(version, machine, container, d, reducer, started, sink_port)
            lib.check(reducer.stop() == 0, "the reducer's exit code is not 0")
    except lib.Failure as e:
        print(f"FAILED: {e}")
        sys.exit(1)


if __name__ == "__main__":
    main()
