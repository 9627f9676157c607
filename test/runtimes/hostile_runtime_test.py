"""Tests processes that forge the structures of CPython (hostile_python.c): beside them, a real program keeps its names."""

import json
import pathlib
import re
import subprocess
import sys

import chains
import interpreters
import short_processes_test as short
import stacks

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import lib  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
MODES = ["plain", "cycle", "self", "deep", "long-names", "kernel-pointers", "kernel-frames", "kernel-code", "blocks", "odd-names", "changes",
         "flood"]
# Name: options of the compiler. These files pretend to be other versions, or have debug offsets that no version has.
FILES = {
    "version-0": ["-DPYTHON_VERSION=0"],
    "version-2.7": ["-DPYTHON_VERSION=0x020712f0"],
    "version-3.5": ["-DPYTHON_VERSION=0x030500f0"],
    "version-3.99": ["-DPYTHON_VERSION=0x036300f0"],
    "version-all-ones": ["-DPYTHON_VERSION=0xffffffff"],
    "offsets-3.13-ones": ["-DPYTHON_VERSION=0x030d00f0", "-DHOSTILE_OFFSETS=0xffffffffffffffffull"],
    "offsets-3.14-kernel": ["-DPYTHON_VERSION=0x030e00f0", "-DHOSTILE_OFFSETS=0xffffffff81000000ull"],
    "offsets-3.13-large": ["-DPYTHON_VERSION=0x030d00f0", "-DHOSTILE_OFFSETS=70000"],
    "offsets-3.14-zero": ["-DPYTHON_VERSION=0x030e00f0", "-DHOSTILE_OFFSETS=0"],
    "offsets-3.15": ["-DPYTHON_VERSION=0x030f00f0", "-DHOSTILE_OFFSETS=16"],
    "stripped": ["-s"],
}
SECONDS = 4
GROWTH_MAX_KIB = 64 * 1024
NATIVE_MIN = 0.9
NAME_MAX = 512
THREADS = {"change", "flood"}  # the other threads of the program
CHAIN = ["main", "_PyEval_EvalFrameDefault", "_PyEval_EvalFrameDefault", "_PyEval_EvalFrameDefault", "_PyEval_EvalFrameDefault",
         "busy_native"]
LIBRARY = """
#include <time.h>
const unsigned long Py_Version = 0x030b02f0;
char _PyRuntime[16];
__attribute__((noipa)) unsigned long busy_native(unsigned long x) {
  for (long i = 0; i < 1000000; i++) x = x * 6364136223846793005ul + 1;
  return x;
}
unsigned long _PyEval_EvalFrameDefault(long seconds) {
  unsigned long x = 1;
  for (time_t end = time(0) + seconds; time(0) < end;) x = busy_native(x);
  return x + 1;
}
"""
MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
unsigned long _PyEval_EvalFrameDefault(long);
int main(int argc, char **argv) { printf("%d\\n", getpid()); fflush(stdout); return !_PyEval_EvalFrameDefault(atol(argv[argc - 1])); }
"""


def compile_c(out, source, *options):
    subprocess.run(["cc", "-O2", "-g", "-fno-optimize-sibling-calls", "-rdynamic", "-pthread", "-o", out, source, *map(str, options)],
                   check=True)
    return out


def compile_false_library(folder):
    """Makes a program with a libpython that is none."""
    (folder / "library.c").write_text(LIBRARY)
    (folder / "main.c").write_text(MAIN)
    compile_c(folder / "libpython3.11.so.1.0", folder / "library.c", "-shared", "-fPIC", "-Wl,-soname,libpython3.11.so.1.0")
    return compile_c(folder / "false_library", folder / "main.c", folder / "libpython3.11.so.1.0", f"-Wl,-rpath,{folder}")


def run_all(commands, beside):
    """Runs the commands at the same time, and beside(). Returns {name: pid}, and what beside() returned."""
    processes = {name: subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
                 for name, command in commands.items()}
    try:
        result = beside()
        printed = {name: process.communicate(timeout=120)[0] for name, process in processes.items()}
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    for name, process in processes.items():
        lib.check(process.returncode == 0, f"{name}: exit code {process.returncode}")
    return {name: int(text) for name, text in printed.items()}, result


def check_native(name, found, chain):
    """Checks that the stacks still have their native frames, in their order."""
    right = total = 0
    for stack, count in found.counted:
        functions = [frame["function"] for frame in stack if not chains.is_language(frame)]
        if THREADS.intersection(functions):
            continue
        total += count
        if functions[-len(chain):] == chain:
            right += count
    print(f"  {name:20} {right} of {total} samples have their native frames; endings {found.health['endings']}", flush=True)
    lib.check(total > 50 and right >= NATIVE_MIN * total, f"{name}: {right} of {total} samples have their native frames")


def check_languages(name, found):
    """Checks that only names are shown that the forged objects have. Long names are cut."""
    for stack, _ in found.counted:
        if not any(frame["function"] == "busy_native" for frame in stack):
            continue  # of the script that started the program
        for frame in stack:
            if chains.is_language(frame) and not stacks.is_unnamed(frame):
                is_forged = re.fullmatch(r"forged_\d+", frame["function"]) and frame["file"] == "/hostile/forged.py"
                is_long = name == "long-names" and len(frame["function"]) <= NAME_MAX
                lib.check((is_forged or is_long) and name != "false-library", f"{name}: {frame}")


def check_folded(node, pid):
    """Checks the lines of the folded output of a process whose names have line ends and semicolons."""
    command = ["flamegraph", "--server", node.reducer.url, "--query", f'{{process_pid="{pid}"}}', "--from", "-1h", "--to", "now", "--format",
               "folded", "--unit", "count", "--out", "-"]
    folded = subprocess.run([lib.BIN / "tributary", *command], check=True, capture_output=True).stdout
    lib.check(b"\x1b" not in folded and b"\x7f" not in folded, "the folded output has control characters")
    total = 0
    for line in folded.decode().splitlines():
        stack, _, count = line.rpartition(" ")
        lib.check(stack and count.isdigit(), f"a line of the folded output: {line!r}")
        lib.check(not stack.split(";")[-1].startswith("b 7"), f"a name was split: {line!r}")
        total += int(count)
    lib.check(total > 0, "the folded output is empty")


def forged():
    with lib.directory() as d, lib.programs() as programs:
        program = compile_c(d / "hostile_python", HERE / "hostile_python.c")
        commands = {mode: [program, mode, SECONDS] for mode in MODES}
        for name, options in FILES.items():
            commands[name] = [compile_c(d / name, HERE / "hostile_python.c", *options), "plain", SECONDS]
        commands["false-library"] = [compile_false_library(d), SECONDS]
        node, system = short.Node(d, programs), interpreters.find("system")
        json.loads(system.run(d, "short_python.py", "steady", 0.2).communicate(timeout=60)[0])
        before = short.rss_kib(node.collector)

        def steady():
            return json.loads(system.run(d, "short_python.py", "steady", 0.5).communicate(timeout=120)[0])["pid"]

        names = list(commands)
        pids, pid = run_all({name: commands[name] for name in names[:len(names) // 2]}, steady)
        pids.update(run_all({name: commands[name] for name in names[len(names) // 2:]}, steady)[0])
        late = steady()
        for each in pids.values():
            node.wait_for_name(each, "busy_native")
        after = short.rss_kib(node.collector)
        node.stop()
        for name, each in pids.items():
            found = node.stacks(each, frames="all")
            chain = ["main", "_PyEval_EvalFrameDefault", "busy_native"] if name == "false-library" else CHAIN
            # Without symbols, functions in the dynamic symbol table still have names, and main has none.
            check_native(name, found, chain[1:] if name == "stripped" else chain)
            if name not in ("odd-names", "changes"):
                check_languages(name, found)
        plain = node.stacks(pids["plain"], frames="all")
        forged_samples = sum(count for stack, count in plain.counted if any(frame["function"] == "forged_0" for frame in stack))
        lib.check(forged_samples >= NATIVE_MIN * plain.total, f"only {forged_samples} samples have the forged frames: the other cases prove nothing")
        check_folded(node, pids["odd-names"])
        for which, each in (("beside", pid), ("after", late)):
            share, samples = short.named_share(node.stacks(each, frames="all"))
            print(f"  a real program {which} the forged: {share:.4f} of {samples} samples are named")
            lib.check(samples > 100 and share >= 0.95, f"a real program {which} the forged: {share:.4f} of {samples}")
        print(f"  the collector's RSS: {before} KiB before, {after} KiB after")
        lib.check(after - before <= GROWTH_MAX_KIB, f"the collector grew from {before} to {after} KiB")


if __name__ == "__main__":
    lib.main(forged)
