"""Tests Python that is embedded in a C server (embedded.c), beside other runtimes in the same process.

    embedded_test.py [TEST…]
"""

import collections
import pathlib
import subprocess
import sys

import chains
import interpreters
import short_processes_test as short

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import lib  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 1
CHAIN_MIN = 0.99


def frame(function, line):
    return {"function": function, "file": "<string>", "line": line}


OUTER = [chains.native("main"), chains.native("handle_request"), frame("<module>", 3), frame("outer", 2), chains.native("between")]
INNER = [frame("<module>", 5), frame("inner", 4)]


def library(suite):
    """Returns the words LIBRARY HOME of a Debian suite's libpython."""
    root = interpreters.root_of(suite)
    found = sorted(root.glob("usr/lib/*/libpython3.*.so.1.0"))
    lib.check(len(found) == 1, f"{suite} has {found}")
    return [found[0], root / "usr"]


def run(mode, libraries, chain):
    with lib.directory() as d, lib.programs() as programs:
        program = d / "embedded"
        subprocess.run(["cc", "-O2", "-g", "-fno-optimize-sibling-calls", "-rdynamic", "-o", program, HERE / "embedded.c"], check=True)
        node = short.Node(d, programs)
        pid = int(subprocess.run([program, mode, str(SECONDS), *libraries], check=True, capture_output=True, text=True, timeout=120).stdout)
        node.wait_for_name(pid, "handle_request")
        node.stop()
        found = node.stacks(pid)
        inner = found.having(INNER[-1])
        total, right = sum(count for _, count in inner), found.matching(chain)
        print(f"  {mode}: {right} of {total} samples in inner have the chain; endings {found.health['endings']}")
        wrong = collections.Counter()
        for stack, count in found.counted:
            if not chains.matches(chain, stack):
                wrong[chains.stack_text(stack)] += count
        lib.check(total >= 0.8 * SECONDS * short.RATE and right >= CHAIN_MIN * total,
                  f"{mode}: {right} of {total} samples have the chain {chains.text(chain)}; others: {wrong.most_common(3)}")


def plain():
    run("plain", library("bookworm"), OUTER + INNER)


def subinterpreter():
    run("subinterpreter", library("bookworm"), OUTER + [chains.native("run_in_new_interpreter")] + INNER)


def two_libraries():
    """Tests the frames of 3.11 outside, and of 3.9 inside, and the other way round."""
    for libraries in (library("bookworm") + library("bullseye"), library("bullseye") + library("bookworm")):
        run("two", libraries, OUTER + INNER)


def beside_generated_code():
    generated = [chains.native(name) for name in ("run_generated", "generated_caller", "run_inner")]
    run("map", library("bookworm"), OUTER + generated + INNER)


if __name__ == "__main__":
    lib.main(plain, subinterpreter, two_libraries, beside_generated_code)
