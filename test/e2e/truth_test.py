"""Tests truth and law: a program with known shares is sampled at 999 Hz through the whole path.

The shares must be right, and every sample must be accounted for.
"""

import json
import pathlib
import re
import subprocess
import time

import lib

CHAIN = ["main", "serve", "handle", "dispatch", "work"]
SHARES = {"hash_blocks": 0.6, "sort_rows": 0.3, "parse_text": 0.1}
SELECTOR = '{process_executable_name="truth"}'
PIN = "/sys/fs/bpf/tributary_truth_test"


def pin_counters():
    """Keeps the newest collector's counters readable after it has ended."""
    maps = json.loads(subprocess.run(lib.ROOT + ["bpftool", "-j", "map", "show"], check=True, capture_output=True, text=True).stdout)
    newest = max(m["id"] for m in maps if m.get("name") == "trib_counters")
    subprocess.run(lib.ROOT + ["bpftool", "map", "pin", "id", str(newest), PIN], check=True, capture_output=True)


def bpftool_captured():
    """Returns the sum over CPUs of the counter that the BPF program increments at its entry, read with bpftool."""
    dump = subprocess.run(lib.ROOT + ["bpftool", "-j", "map", "dump", "pinned", PIN], check=True, capture_output=True, text=True)
    for entry in json.loads(dump.stdout):
        formatted = entry.get("formatted", entry)
        key = formatted["key"]
        if isinstance(key, list):
            key = int.from_bytes(bytes(int(b, 16) for b in key), "little")
        if key == lib.CAPTURED_SLOT:
            total = 0
            for value in formatted["values"]:
                v = value["value"]
                total += int.from_bytes(bytes(int(b, 16) for b in v), "little") if isinstance(v, list) else v
            return total
    raise lib.Failure("bpftool shows no captured counter")


def check_truth(graph, truth, stolen):
    count = graph.total_count[0]
    lib.check(count > 15_000, f"only {count} samples of the truth program")
    for function, share in SHARES.items():
        # The expected shares are the nominal shares. The program's own measurements agree with them to 0.1%.
        seen = graph.count_of(function) / count
        bound = lib.four_sigma(share, count)
        print(f"  {function}: {seen:.4f} of {count} samples, true {share}, bound ±{bound:.4f}")
        lib.check(abs(seen - share) <= bound, f"{function}: share {seen:.4f}, true {share}, bound ±{bound:.4f}")
    ratio = graph.total_ns[0] / truth["main_thread_schedstat_ns"]
    stolen_share = min(0.02, stolen / truth["main_thread_schedstat_ns"])  # upper bound: the program's part is unknown
    print(f"  ns: {graph.total_ns[0]} sampled, {truth['main_thread_schedstat_ns']} by schedstat, ratio {ratio:.4f}, stolen {stolen_share:.4f}")
    lib.check(-0.02 <= ratio - 1 <= 0.02 + stolen_share, f"the samples' ns are {ratio:.4f} of the CPU time")


def check_names(graph):
    chained = 0
    for node in range(1, len(graph)):
        name = graph.name_of(node)
        if graph.executable_of(node) == "truth":
            lib.check("0x" not in name and name != "[unknown]", f"a frame of the truth program has no name: {graph.path(node)}")
        if name in SHARES and graph.kind[node] == 1:
            path = graph.path(node)
            where = path.index("main") if "main" in path else -1
            if where >= 0 and path[where:where + 5] == CHAIN:
                chained += graph.total_count[node]
    share = chained / graph.total_count[0]
    print(f"  {share:.4f} of the samples stand under {' → '.join(CHAIN)}")
    # The first samples of new code may be taken before its unwind rows are loaded.
    lib.check(share > 0.995, f"only {share:.4f} of the samples show the whole chain")


def truth_and_law():
    lib.mount_bpffs()
    pathlib.Path(PIN).unlink(missing_ok=True)
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d)
        programs.append(reducer)
        start = lib.now_ms()
        collector = lib.Collector(d, reducer.intake_port, rate=999)
        programs.append(collector)
        lib.wait_for("the node to appear", lambda: reducer.status()["nodes"] or not collector.running(), 20)
        lib.check(collector.running(), "the collector ended")
        pin_counters()
        try:
            stolen = lib.stolen_ns()
            truth = lib.run_truth(20)
            stolen = lib.stolen_ns() - stolen
            time.sleep(0.5)
            lib.check(collector.stop() == 0, "the collector's exit code")
            captured = bpftool_captured()
        finally:
            subprocess.run(lib.ROOT + ["rm", "-f", PIN], check=True)
        end = lib.now_ms() + 1000

        status = reducer.status()
        lib.check_law(status)
        print(f"  captured {status['total']['captured']}, stored {status['total']['stored']}, lost {status['total']['lost']}")
        lib.check(captured == status["total"]["captured"],
                  f"bpftool reads {captured} captured, the status says {status['total']['captured']}")
        printed = json.loads(subprocess.run([lib.BIN / "tributary", "status", "--server", reducer.url, "--json"], check=True,
                                            capture_output=True, text=True).stdout)
        lib.check(printed["total"]["captured"] == captured, f"tributary status prints {printed['total']}")

        graph = lib.wait_for("names", lambda: named(reducer.flamegraph(SELECTOR, start, end)), 30)
        check_truth(graph, truth, stolen)
        check_names(graph)
        check_command_line(reducer, graph, start, end)
        lib.check(reducer.stop() == 0, "the reducer's exit code")


def named(graph):
    return graph if graph.count_of("hash_blocks") > 0 else None


def check_command_line(reducer, graph, start, end):
    """Checks that the folded output is the same profile, line by line."""
    folded = subprocess.run([lib.BIN / "tributary", "flamegraph", "--server", reducer.url, "--query", SELECTOR, "--from", str(start),
                             "--to", str(end), "--format", "folded", "--unit", "count", "--out", "-"],
                            check=True, capture_output=True, text=True).stdout
    total = by_leaf = 0
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        total += int(count)
        frames = [f for f in stack.split(";") if not f.endswith("_[k]")]
        by_leaf += int(count) if frames and frames[-1] == "hash_blocks" else 0
    lib.check(total == graph.total_count[0], f"folded lines add up to {total}, the API to {graph.total_count[0]}")
    lib.check(by_leaf == graph.count_of("hash_blocks"), f"folded: {by_leaf} in hash_blocks")
    addresses = subprocess.run([lib.BIN / "tributary", "flamegraph", "--server", reducer.url, "--query", SELECTOR, "--from",
                                str(start), "--to", str(end), "--format", "folded-address", "--out", "-"],
                               check=True, capture_output=True, text=True).stdout
    build_id = subprocess.run(["readelf", "-n", lib.BIN / "truth"], check=True, capture_output=True, text=True).stdout
    build_id = build_id.split("Build ID: ")[1].split()[0]
    lib.check(f"{build_id}+0x" in addresses, "folded-address names frames by build-id")


def without_frame_pointers():
    """Tests the same program built as for production: only its unwind information shows the callers."""
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d)
        programs.append(reducer)
        start = lib.now_ms()
        collector = lib.Collector(d, reducer.intake_port, rate=999)
        programs.append(collector)
        lib.wait_for("stored samples", lambda: reducer.status()["total"]["stored"] > 0, 30)
        subprocess.run([lib.BIN / "truth_nofp", "8"], check=True, capture_output=True)
        lib.check(collector.stop() == 0, "the collector's exit code")
        selector, end = '{process_executable_name="truth_nofp"}', lib.now_ms() + 1000
        lib.check_law(reducer.status())
        graph = lib.wait_for("names", lambda: named(reducer.flamegraph(selector, start, end)), 30)
        chained = lost = 0
        for node in range(1, len(graph)):
            path = graph.path(node)
            if graph.name_of(node) in SHARES and graph.kind[node] == 1:
                chained += graph.total_count[node] if path[0] == "_start" and path[-6:-1] == CHAIN else 0
                lost += graph.total_count[node] if path[0] != "_start" or path[-6:-1] != CHAIN else 0
        health = reducer.json("/api/v1/stack-health", query=selector, **{"from": start, "to": end})
        print(f"  {chained} samples under _start → … → {' → '.join(CHAIN)}, {lost} not; {health['endings']}")
        lib.check(chained > 7000, f"only {chained} samples with the whole chain")
        lib.check(lost <= chained * 0.005, f"{lost} samples without it")
        lib.check(health["complete_share"] > 0.99, f"only {health['complete_share']:.4f} of the stacks are complete")


def plt_ranges(program):
    """Returns the address ranges of the program's sections .plt, .plt.got and .plt.sec, according to readelf."""
    listed = subprocess.run(["readelf", "-SW", program], check=True, capture_output=True, text=True).stdout
    return [range(int(address, 16), int(address, 16) + int(size, 16))
            for address, size in re.findall(r" \.plt\S* +\w+ +([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+) ", listed)]


def without_symbols():
    """Tests the same program as distributions ship it: its functions are distinguished by their start addresses."""
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d)
        programs.append(reducer)
        start = lib.now_ms()
        collector = lib.Collector(d, reducer.intake_port, rate=999)
        programs.append(collector)
        lib.wait_for("stored samples", lambda: reducer.status()["total"]["stored"] > 0, 30)
        program = d / "truth_stripped"
        subprocess.run(["strip", "--strip-all", "-o", program, lib.BIN / "truth_nofp"], check=True)
        listed = subprocess.run(["nm", lib.BIN / "truth_nofp"], check=True, capture_output=True, text=True).stdout
        called = {name: f"{program.name}+{int(address, 16):#x}" for address, kind, name in (line.rsplit(" ", 2) for line in listed.splitlines())
                  if kind in "tT"}
        subprocess.run([program, "8"], check=True, capture_output=True)
        selector = f'{{process_executable_name="{program.name}"}}'

        def graph_with_bounds():
            graph = reducer.flamegraph(selector, start, lib.now_ms() + 1000)
            return graph if graph.count_of(called["hash_blocks"]) > 0 else None

        graph = lib.wait_for("functions", graph_with_bounds, 30)
        lib.check(collector.stop() == 0, "the collector's exit code")
        graph = graph_with_bounds()
        count = graph.total_count[0]
        for function, share in SHARES.items():
            seen, bound = graph.count_of(called[function]) / count, lib.four_sigma(share, count)
            print(f"  {called[function]}: {seen:.4f} of {count} samples, true {share} of {function}, bound ±{bound:.4f}")
            lib.check(abs(seen - share) <= bound, f"{function}: share {seen:.4f}, true {share}, bound ±{bound:.4f}")
        # Every frame of the program must be the start of a function, according to the unstripped program's symbols. A
        # rare sample hits a stub of the PLT, which is no function: its address is shown.
        stubs = plt_ranges(lib.BIN / "truth_nofp")
        wrong = [graph.path(n) for n in range(1, len(graph)) if graph.executable_of(n) == program.name and graph.name_of(n) not in called.values()
                 and not any(int(graph.name_of(n).rsplit("+", 1)[1], 16) in stub for stub in stubs)]
        lib.check(not wrong, f"frames that are no function's begin: {wrong[:3]}")


if __name__ == "__main__":
    lib.main(truth_and_law, without_frame_pointers, without_symbols)
