"""Tests the names of generated code: perf maps, jitdumps, memory without names, and files that must not be used.

The program test/workloads/jit.c generates three functions, and knows how much CPU time it spends in each. It runs once
for each way to name them. All programs run at the same time.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import lib

SECONDS = 1.5
SHARES = {"hot function(int)": 0.6, "warm": 0.3, "py::cold.<locals>.f": 0.1}
# Ways to name the code.
NAMED = ("map", "dump", "both", "fork", "container")
# Programs whose code has no names → how it is shown.
UNNAMED = {"none": "[anonymous code]", "named": "[anon:jit-heap]", "memfd": "[memfd:jit-code]",
           "symlink": "[anonymous code]", "fifo": "[anonymous code]", "owner": "[anonymous code]"}

# Waits until the collector runs, makes the file that must not be used in the place of the map, and becomes the program.
# The target of the link, and the file of the other user, are good maps of all addresses.
BAD_FILES = {
    "symlink": "echo '0 ffffffffffffff wrong' > $DIR/all.map; ln -s $DIR/all.map /tmp/perf-$$.map",
    "fifo": "mkfifo /tmp/perf-$$.map",
    "owner": "echo '0 ffffffffffffff wrong' > /tmp/perf-$$.map; chown 1 /tmp/perf-$$.map",
}


def command(mode, directory):
    """Returns the command that runs the program as jit_MODE."""
    program = directory / f"jit_{mode}"
    shutil.copy(lib.BIN / "jit", program)
    os.chmod(program, 0o755)
    if mode == "container":
        # Its own pid and an empty /tmp: the program writes /tmp/perf-1.map.
        inside = f"mount -t tmpfs none /tmp && exec {program} {SECONDS} map"
        return lib.ROOT + ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", inside]
    if mode in BAD_FILES:
        user = "setpriv --reuid 65534 --clear-groups" if mode == "owner" else ""
        return lib.ROOT + ["sh", "-c", f"DIR={directory}; {BAD_FILES[mode]}; exec {user} {program} {SECONDS} none"]
    return [program, str(SECONDS), mode]


def leaves_of(graph):
    """Returns {name of a jit frame: samples with this frame as the innermost user frame}."""
    leaves = {}
    for node in range(len(graph)):
        if graph.kind_of(node) != "jit" or graph.name_of(node) == "caller":
            continue
        leaves[graph.name_of(node)] = leaves.get(graph.name_of(node), 0) + graph.total_count[node]
    return leaves


def check_named(mode, graph):
    leaves = leaves_of(graph)
    total = sum(leaves.values())
    print(f"  {mode}: " + ", ".join(f"{name} {count / total:.3f}" for name, count in sorted(leaves.items())) + f" of {total} samples")
    lib.check(total >= 100, f"{mode}: {total} samples")
    lib.check(set(leaves) == set(SHARES), f"{mode}: the names are {sorted(leaves)}")
    for name, share in SHARES.items():
        found = leaves[name] / total
        lib.check(abs(found - share) <= 0.03 + lib.four_sigma(share, total), f"{mode}: {found:.3f} of the samples are in {name}, not {share}")
    for node in range(len(graph)):
        if graph.name_of(node) in SHARES and graph.kind_of(node) == "jit":
            path = graph.path(node)
            lib.check(path[-4:-1] == ["main", "call_generated", "caller"], f"{mode}: the stack is {path}")
    wrong = [name for name, kinds in graph.kinds_by_name().items() if "unknown" in kinds]
    lib.check(not wrong, f"{mode}: unknown frames {wrong}")


def check_unnamed(mode, graph, name):
    leaves = leaves_of(graph)
    print(f"  {mode}: {leaves}")
    lib.check(set(leaves) == {name}, f"{mode}: the names are {leaves}, not {name}")
    # The generated caller has the same name.
    lib.check(leaves[name] >= 100, f"{mode}: {leaves[name]} samples")


def names_of_generated_code():
    with lib.directory() as d, lib.programs() as programs:
        os.chmod(d, 0o755)
        reducer = lib.Reducer(d)
        programs.append(reducer)
        start = lib.now_ms()
        collector = lib.Collector(d, reducer.intake_port, rate=499, args=["--batch-interval", "500ms", "--metrics-listen", "127.0.0.1:0"])
        programs.append(collector)
        lib.wait_for("the node", lambda: reducer.status()["nodes"], 20)
        modes = [*NAMED, *UNNAMED]
        outside_tmp = pathlib.Path(tempfile.mkdtemp(dir="/var/tmp"))
        folder_of = lambda mode: outside_tmp if mode == "container" else d
        running = {mode: subprocess.Popen(command(mode, folder_of(mode)), cwd=d, stdout=subprocess.PIPE, text=True) for mode in modes}
        pids = [process.pid for process in running.values()]
        try:
            answers = {mode: json.loads(process.communicate(timeout=120)[0]) for mode, process in running.items()}
            pids += [answer["pid"] for answer in answers.values()]
            graph = lambda mode: reducer.flamegraph(f'{{process.executable.name="jit_{mode}"}}', start - 60_000, lib.now_ms() + 60_000)
            lib.wait_for("names of functions of the program", lambda: graph("map").count_of("call_generated") > 50, 60)
            lib.check(collector.stop() == 0, "the collector's exit code")
            for mode in NAMED:
                check_named(mode, graph(mode))
            for mode, name in UNNAMED.items():
                is_named = mode != "named" or answers[mode]["has_name"]
                check_unnamed(mode, graph(mode), name if is_named else UNNAMED["none"])
            lib.check_law(reducer.status())
            lib.check(reducer.stop() == 0, "the reducer's exit code")
            log = collector.text()
            lib.check("another user owns it" in log or "not a regular file" in log, "no refused file in the log")
        finally:
            for process in running.values():
                process.kill()
                process.wait()
            shutil.rmtree(outside_tmp)
            for pid in pids:
                subprocess.run(lib.ROOT + ["rm", "-f", f"/tmp/perf-{pid}.map"], check=False)


if __name__ == "__main__":
    lib.main(names_of_generated_code)
