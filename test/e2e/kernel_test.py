"""Tests the names of the kernel's frames.

Each name must be the name in /proc/kallsyms, also for code that the kernel generates. If kallsyms hides its addresses,
the frame must show the reason for the missing names.
"""

import collections
import contextlib
import hashlib
import os
import subprocess
import threading
import time

import lib

KERNEL = 2
BURN_S = 2.5
BURNER_SAMPLES_MIN = 50  # an idle machine gives 1,250; this machine may be busy
SAMPLES_MIN = 500
HIDDEN = "[kernel] (names hidden: set kernel.kptr_restrict to 1)"


class Burner:
    """A BPF program that burns time on request (bpf_burner.c) and is unloaded at the end."""

    def __init__(self, name):
        self.process = subprocess.Popen([*lib.ROOT, lib.BIN / "bpf_burner", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.symbol = self.process.stdout.readline().strip()
        lib.check(self.symbol.endswith(name), f"the BPF program {name} was not loaded")

    def burn(self):
        self.process.stdin.write(f"{BURN_S}\n")
        self.process.stdin.flush()
        lib.check(self.process.stdout.readline() == "burned\n", f"{self.symbol} did not run")

    def unload(self):
        self.process.stdin.close()
        lib.check(self.process.wait(10) == 0, f"the process of {self.symbol} failed")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Kallsyms:
    """Finds the symbol at a kernel address: the last symbol at or below it, with all its names."""

    def __init__(self, text):
        self.names = collections.defaultdict(set)  # (module, address)
        self.addresses = collections.defaultdict(list)
        self.generated = {}  # (owner, name) → address
        for line in text.splitlines():
            words = line.split()
            address, kind, name = int(words[0], 16), words[1], words[2]
            module = words[3].strip("[]") if len(words) > 3 else ""
            if name in ("_stext", "_etext"):
                setattr(self, name, address)
            if kind not in "tTwW":
                continue
            self.names[module, address].add(name)
            self.addresses[module].append(address)
            if module == "bpf" or module.startswith("__builtin__"):
                self.generated[module.removeprefix("__builtin__"), name] = address
        for addresses in self.addresses.values():
            addresses.sort()

    def names_at(self, module, address):
        below = [a for a in self.addresses[module] if a <= address]
        return self.names[module, below[-1]] if below else set()


def read_kallsyms():
    return Kallsyms(subprocess.run([*lib.ROOT, "cat", "/proc/kallsyms"], check=True, capture_output=True, text=True).stdout)


def kernel_build_id():
    notes = subprocess.run([*lib.ROOT, "cat", "/sys/kernel/notes"], check=True, capture_output=True).stdout
    at = notes.index(b"GNU\0")
    return notes[at + 4:at + 4 + int.from_bytes(notes[at - 8:at - 4], "little")].hex()


def id_of_generated(owner, name):
    """Returns the id of generated code: see docs/data-model.md, identities of code without a file."""
    contents = f"tributary: code without a file: [{owner}] {name}".encode()
    return "htl:" + hashlib.sha256(contents * 2 + len(contents).to_bytes(8, "big")).hexdigest()[:32]


NAMELESS_ID = id_of_generated("kernel", "(generated code of no known name)")


class Oracle:
    """Names the frames of a graph that shows addresses, with snapshots of kallsyms from several times."""

    def __init__(self, *snapshots):
        first = snapshots[0]
        self.kallsyms = first
        self.bases = {kernel_build_id(): first._stext}
        self.generated = {id_of_generated(*key): key[1] for kallsyms in snapshots for key in kallsyms.generated}
        self.cache = {}

    def names_of(self, frame, is_caller):
        """Returns all names that kallsyms has for the function at `build-id+0xaddress`."""
        if (frame, is_caller) not in self.cache:
            build_id, offset = frame.rsplit("+0x", 1)
            if build_id in self.generated:
                names = {self.generated[build_id]}
            else:
                lib.check(build_id in self.bases, f"a kernel frame of an executable that kallsyms does not know: {frame}")
                names = self.kallsyms.names_at("", self.bases[build_id] + int(offset, 16) - is_caller)
            self.cache[frame, is_caller] = names
        return self.cache[frame, is_caller]


def kernel_stacks(graph):
    """Returns the number of samples of each stack of kernel frames. Stacks begin with the outermost frame."""
    stacks = collections.Counter()
    for node in range(1, len(graph)):
        if graph.kind[node] != KERNEL or graph.self_count[node] == 0:
            continue
        stack, at = [], node
        while at > 0 and graph.kind[at] == KERNEL:
            stack.append(graph.name_of(at))
            at = graph.parent[at]
        stacks[tuple(reversed(stack))] += graph.self_count[node]
    return stacks


def check_names(named, addresses, oracle):
    """Checks that the named graph has the same stacks as the graph of addresses, with kallsyms' names.

    An address may have several names. If the named graph has one of them, that name is expected.
    """
    shown = set(named.names)
    expected = collections.Counter()
    for stack, count in kernel_stacks(addresses).items():
        names = []
        for depth, frame in enumerate(stack):
            if frame.startswith(NAMELESS_ID):
                callers = [sorted(oracle.names_of(caller, is_caller=True)) for caller in stack[:depth] if not caller.startswith(NAMELESS_ID)]
                raise lib.Failure(f"{count} samples of code without a known name, called by {callers}, then {stack[depth + 1:]}")
            aliases = oracle.names_of(frame, is_caller=depth + 1 < len(stack))
            lib.check(aliases, f"kallsyms has no name for {frame}")
            names.append(min(aliases & shown or aliases))
        expected[tuple(names)] += count
    actual = kernel_stacks(named)
    lib.check(expected == actual, "stacks differ from what kallsyms says: "
              f"{list((expected - actual).items())[:3]} should be {list((actual - expected).items())[:3]}")
    print(f"  {sum(actual.values())} samples in the kernel, {len(actual)} stacks, {len({n for s in actual for n in s})} functions: "
          "all named as in kallsyms", flush=True)
    return sum(actual.values())


def load_the_kernel(seconds):
    """Loads the kernel with system calls of many kinds, short-lived processes and page faults."""
    commands = ["while :; do dd if=/dev/urandom of=/dev/null bs=64k count=200; done", "while :; do find /usr /etc -type f | head -c 1M | sort; done",
                "while :; do cat /proc/self/maps /proc/*/stat /proc/kallsyms | gzip -1 | tail -c 1; done"]
    loads = [subprocess.Popen(["sh", "-c", command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
             for command in commands]
    try:
        time.sleep(seconds)
    finally:
        for load in loads:
            os.killpg(load.pid, 9)
            load.wait()


def leaf_count(graph, name):
    return sum(graph.self_count[node] for node in range(len(graph)) if graph.kind[node] == KERNEL and graph.name_of(node) == name)


def nameless(graph):
    """Returns the kernel frames for which the reducer has no name yet: it shows the executable and the address."""
    names = {graph.name_of(node) for node in range(len(graph)) if graph.kind[node] == KERNEL}
    return {name for name in names if name.startswith("[") and "+0x" in name}


def as_kallsyms_names_them():
    with lib.directory() as d, lib.programs() as started, Burner("early") as early:
        reducer = lib.Reducer(d)
        started.append(reducer)
        collector = lib.Collector(d, reducer.intake_port, rate=499)
        started.append(collector)
        start = lib.now_ms()
        lib.wait_for("the node", lambda: reducer.status()["nodes"], 20)
        with Burner("late") as late:
            burners = [threading.Thread(target=burner.burn) for burner in (early, late)]
            for thread in burners:
                thread.start()
            snapshots = [read_kallsyms()]
            for thread in burners:
                thread.join()
            late.unload()
        # Load other code, perhaps at the same address. Unload it before its samples have been sent.
        with Burner("later") as later:
            snapshots.append(read_kallsyms())
            later.burn()
            later.unload()
        load_the_kernel(6)
        end = lib.now_ms()

        def graph(**more):
            return reducer.flamegraph("{}", start, end, max_nodes=1_000_000, **more)

        # The reducer asks for the name of generated code when the first sample of it has arrived. So wait for a later
        # sample, then for the names of all samples.
        lib.wait_for("a later sample", lambda: len(reducer.flamegraph("{}", end, lib.now_ms() + 1000)) > 1, 60, 0.5)
        symbols = [burner.symbol for burner in (early, late, later)]
        lib.wait_for("names", lambda: all(leaf_count(graph(), symbol) for symbol in symbols) and not nameless(graph()), 60, 0.5)
        lib.check(collector.stop() == 0, "the collector's exit code")
        named, addresses = graph(), graph(frames="address")
        lib.check(named.answer["truncated_nodes"] == addresses.answer["truncated_nodes"] == 0, "the graph was cut")
        samples = check_names(named, addresses, Oracle(*snapshots))
        lib.check(samples > SAMPLES_MIN, f"only {samples} samples in the kernel")
        counts = [leaf_count(named, symbol) for symbol in symbols]
        print("  " + ", ".join(f"{symbol}: {count}" for symbol, count in zip(symbols, counts)), flush=True)
        lib.check(min(counts) > BURNER_SAMPLES_MIN, "samples of a BPF program are missing")
        executables = {e["name"]: e for e in reducer.json("/api/v1/symbols", query="{}", **{"from": start})["executables"]}
        for symbol in symbols:
            entry = executables[f"[bpf] {symbol}"]
            lib.check(entry["symbols"] and entry["unnamed_addresses"] == 0, f"{symbol} in the list of executables: {entry}")
        lib.check_law(reducer.status())


@contextlib.contextmanager
def hiding_kallsyms(directory):
    """Yields a prefix that hides the addresses of kallsyms from one process only, as with kernel.kptr_restrict = 2."""
    kallsyms, restrict = directory / "kallsyms", directory / "kptr_restrict"
    kallsyms.write_text("".join(f"{'0' * 16} T {name}\n" for name in ("_stext", "do_syscall_64", "_etext")))
    restrict.write_text("2\n")
    script = f'mount --bind {kallsyms} /proc/kallsyms && mount --bind {restrict} /proc/sys/kernel/kptr_restrict && exec "$@"'
    yield ["unshare", "--mount", "sh", "-c", script, "sh"]


def hidden_addresses_are_reported():
    with lib.directory() as d, lib.programs() as started, hiding_kallsyms(d) as prefix:
        reducer = lib.Reducer(d)
        started.append(reducer)
        collector = lib.Collector(d, reducer.intake_port, rate=499, prefix=prefix)
        started.append(collector)
        start = lib.now_ms()
        lib.wait_for("the node", lambda: reducer.status()["nodes"], 20)
        with Burner("event") as burner:
            burner.burn()
        load_the_kernel(2)

        def graph():
            return reducer.flamegraph("{}", start, lib.now_ms() + 1000)

        lib.wait_for("the cause", lambda: leaf_count(graph(), HIDDEN) and leaf_count(graph(), burner.symbol), 30, 0.5)
        lib.check(collector.stop() == 0, "the collector's exit code")
        names = {graph_.name_of(node) for graph_ in [graph()] for node in range(len(graph_)) if graph_.kind[node] == KERNEL}
        print(f"  kernel frames: {sorted(names)}", flush=True)
        lib.check(names == {HIDDEN, burner.symbol}, f"kernel frames: {names}")
        # The hidden kernel frames of a stack become one frame.
        lib.check(all(stack.count(HIDDEN) == 1 for stack in kernel_stacks(graph()) if stack[0] == HIDDEN), "the cause stands on itself")
        symbols = subprocess.run([lib.BIN / "tributary", "symbols", "--server", reducer.url], check=True, capture_output=True, text=True)
        lib.check(HIDDEN in symbols.stdout, f"tributary symbols does not tell:\n{symbols.stdout}")
        lib.check(collector.text().count("names hidden") == 1, "the collector's log does not say it once")
        lib.check_law(reducer.status())


if __name__ == "__main__":
    lib.main(as_kallsyms_names_them, hidden_addresses_are_reported)
