"""Tests a mixed load of a dozen languages and libraries, without frame pointers.

Nearly every stack must be complete according to the product's own figures. The programs are the same as in test/unwind,
which compares their stacks with gdb's.
"""

import pathlib
import sys
import time

import lib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "unwind"))
import stack_oracle_test as oracle  # noqa: E402

SECONDS = 20
COMPLETE_MIN = 0.99
STRIPPED_COMPLETE_MIN = 0.95
OWN_COMMANDS = {
    "openssl": ["openssl", "speed", "-seconds", "3", "-bytes", "1024", "sha256", "aes-256-cbc", "rsa2048", "ecdsap256", "ecdhx25519"],
    "go_stripped": [oracle.BIN / "unwind_go_stripped"],  # gdb cannot unwind it: it has no unwind information
    "node": ["node", oracle.LOADS / "unwind_node.js"],  # with its JIT, which keeps frame pointers
    "recursion": [oracle.BIN / "unwind_recursion", "500"],  # less than the maximum depth of a sample
}
SELECTOR = '{process_executable_name=~"unwind_.*|openssl|sqlite3|python3.*|node"}'


def mixed_load():
    for name, command in OWN_COMMANDS.items():
        oracle.PROGRAMS[name] = (command, 0)
    with lib.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d)
        programs.append(reducer)
        start = lib.now_ms()
        collector = lib.Collector(d, reducer.intake_port, rate=199)
        programs.append(collector)
        lib.wait_for("stored samples", lambda: reducer.status()["total"]["stored"] > 0, 30)
        loads = [oracle.Load(name) for name in oracle.PROGRAMS]
        try:
            time.sleep(SECONDS)
        finally:
            for load in loads:
                load.kill()
        lib.check(collector.stop() == 0, "the collector's exit code")
        end = lib.now_ms() + 1000
        lib.check_law(reducer.status(), lost=0)

        health = reducer.json("/api/v1/stack-health", query=SELECTOR, **{"from": start, "to": end})
        print(f"  {health['samples']} samples, {health['complete_share']:.4f} complete: {health['endings']}")
        for executable in health["executables"][:8]:
            print(f"    {executable['name']}: {executable['endings']} in {executable['programs']}")
        lib.check(health["samples"] > 99 * SECONDS, f"only {health['samples']} samples")
        lib.check(health["complete_share"] >= COMPLETE_MIN, f"only {health['complete_share']:.4f} of the stacks are complete")

        # The program has neither symbols nor unwind information. The walk follows frame pointers to the start of the
        # goroutine, which Go's own function table shows.
        stripped = reducer.json("/api/v1/stack-health", query='{process_executable_name="unwind_go_stripped"}',
                                **{"from": start, "to": end})
        print(f"  Go, stripped: {stripped['samples']} samples, {stripped['complete_share']:.4f} complete: {stripped['endings']}")
        lib.check(stripped["samples"] > SECONDS, f"only {stripped['samples']} samples of stripped Go")
        lib.check(stripped["complete_share"] >= STRIPPED_COMPLETE_MIN,
                  f"only {stripped['complete_share']:.4f} of stripped Go's stacks are complete")

        # Show the outermost frames: stacks that the product calls complete must begin where threads and processes
        # begin.
        graph = reducer.flamegraph(SELECTOR, start, end)
        roots = {}
        for node in range(1, len(graph)):
            if graph.parent[node] == 0 and graph.kind[node] == 1:
                roots[graph.name_of(node)] = roots.get(graph.name_of(node), 0) + graph.total_count[node]
        print("  outermost frames:", dict(sorted(roots.items(), key=lambda r: -r[1])[:12]))


if __name__ == "__main__":
    lib.main(mixed_load)
