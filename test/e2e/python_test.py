"""Tests the names of Python functions, on this machine's Python: in a program with threads' own stacks and forks, and in
short programs."""

import pathlib
import subprocess
import sys
import time

import lib

PYTHON = "/usr/bin/python3"

# Forked children have the code objects of their parent. Each process burns in its own function.
PROGRAM = """
import os, time

def work(until):
    x = 0
    while time.monotonic() < until:
        for i in range(20000):
            x += i
    return x

def outer(until):
    return work(until)

def child_work(until):
    return work(until)

def main():
    until = time.monotonic() + SECONDS
    if FORKS:
        for _ in range(2):
            if os.fork() == 0:
                child_work(until)
                os._exit(0)
    outer(until)
    for _ in range(2 if FORKS else 0):
        os.wait()

main()
"""


def program(folder, name, seconds, forks):
    path = folder / name
    path.write_text(PROGRAM.replace("SECONDS", str(seconds)).replace("FORKS", str(forks)), encoding="utf-8")
    return path


def folded(reducer, query, *more):
    """Returns [(frames, samples)] of the processes that `query` selects."""
    out = subprocess.run([lib.BIN / "tributary", "flamegraph", "--server", reducer.url, "--query", query, "--from", "-1h", "--to", "now", "--unit",
                          "count", "--format", "folded", "--out", "-", *more], check=True, capture_output=True, text=True).stdout
    lines = [line.rpartition(" ") for line in out.splitlines()]
    return [(stack.split(";"), int(count)) for stack, _, count in lines]


def share(stacks, condition):
    total = sum(count for _, count in stacks)
    return sum(count for stack, count in stacks if condition(stack)) / max(total, 1), total


def has_chain(stack, *names):
    """Returns true if the frames follow each other in the stack."""
    return any(tuple(stack[i:i + len(names)]) == names for i in range(len(stack)))


def start(d, programs, *args):
    reducer = lib.Reducer(d)
    programs.append(reducer)
    collector = lib.Collector(d, reducer.intake_port, rate=199, args=["--batch-interval", "500ms", *args])
    programs.append(collector)
    return reducer, collector


def wait_for_samples(reducer, query, count):
    lib.wait_for(f"{count} samples of {query}", lambda: share(folded(reducer, query), lambda stack: True)[1] >= count, 60, step_s=0.5)


def finish(reducer, collector):
    lib.check(collector.stop() == 0, "the collector's exit code")
    lib.check_law(reducer.status())


def chains_and_forks():
    with lib.directory() as d, lib.programs() as programs:
        reducer, collector = start(d, programs)
        subprocess.run([PYTHON, program(d, "chains.py", 3, True)], check=True)
        query = '{process.executable.name=~"python3.*"}'
        wait_for_samples(reducer, query, 300)
        finish(reducer, collector)
        stacks = folded(reducer, query)
        parent, total = share(stacks, lambda s: has_chain(s, "<module>", "main", "outer", "work"))
        child, _ = share(stacks, lambda s: has_chain(s, "<module>", "main", "child_work", "work"))
        named, _ = share(stacks, lambda s: not any(frame in ("[python]", "") for frame in s))
        print(f"  of {total} samples, {parent:.1%} are in main, outer, work; {child:.1%} in the forked children; {named:.2%} have all names")
        lib.check(named >= 0.995, "frames without names")
        # Two of three processes are children. They share the CPUs with other programs.
        lib.check(parent >= 0.15 and child >= 0.3 and parent + child >= 0.95, "shares of the known chains")
        # Samples from before the interpreter was known have no Python frames.
        python = [s for s, _ in stacks if "<module>" in s]
        lib.check(python and not any("_PyEval_EvalFrameDefault" in s[:-1] for s in python), "frames of the interpreter are folded")


def short_programs():
    with lib.directory() as d, lib.programs() as programs:
        reducer, collector = start(d, programs)
        script = program(d, "short.py", 0.3, False)
        subprocess.run([PYTHON, script], check=True)  # the node's first one
        time.sleep(1)
        before = lib.now_ms()
        lib.wait_for("the first program's samples", lambda: folded(reducer, '{process.executable.name=~"python3.*"}'), 30)
        for _ in range(6):
            subprocess.run([PYTHON, script], check=True)
        finish(reducer, collector)
        answer = reducer.flamegraph('{process.executable.name=~"python3.*"}', before, lib.now_ms() + 60_000)
        in_loop = answer.count_of("_PyEval_EvalFrameDefault") + answer.count_of("work")
        print(f"  {answer.count_of('work')} samples in work, {answer.count_of('_PyEval_EvalFrameDefault')} in the loop without a function")
        lib.check(answer.count_of("work") >= 100, "samples of six programs of 300 ms")
        lib.check(answer.count_of("work") >= 0.95 * in_loop, "samples of short programs have names")


def runtimes_off():
    with lib.directory() as d, lib.programs() as programs:
        reducer, collector = start(d, programs, "--runtimes", "none")
        subprocess.run([PYTHON, program(d, "off.py", 1, False)], check=True)
        wait_for_samples(reducer, '{process.executable.name=~"python3.*"}', 50)
        finish(reducer, collector)
        stacks = folded(reducer, '{process.executable.name=~"python3.*"}')
        lib.check(not any("outer" in stack for stack, _ in stacks), "Python is off")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    lib.check(pathlib.Path(PYTHON).exists(), "python3 is not installed: run dev/deps")
    lib.main(chains_and_forks, short_programs, runtimes_off)
