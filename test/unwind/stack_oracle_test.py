"""Compares the collector's stacks with gdb's stacks, frame by frame.

Programs are stopped at a sampled instruction, and gdb unwinds the stopped thread. gdb's frames (past main and entry,
without inlined frames) must be equal to the frames that the collector made from the sample.

    stack_oracle_test.py [--seed N] [--stacks N] [PROGRAM…]
"""

import argparse
import collections
import ctypes
import json
import os
import pathlib
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from code_addresses import CodeAddresses
from comparison import Verdict, common_length, compare, place

HERE = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path(os.environ["TRIBUTARY_BIN"])
LOADS = HERE.parent / "workloads"
ROOT = [] if os.geteuid() == 0 else ["sudo", "-n", "-E"]
STACKS = 100  # per program: enough that one or two differences do not decide the result
ALL_IDENTICAL_MIN = 0.99
EACH_IDENTICAL_MIN = 0.97
FAILED_SHARE_MAX = 0.2  # of a program's stops
STARTS_MAX = 20         # starts of a program that ends by itself
PATIENCE_S = 30
SQL_ROUNDS = 2000

# Name: command, and the longest time that the program runs between two stops (s).
PROGRAMS = {
    "c": ([BIN / "unwind_c"], 0.03),
    "cxx": ([BIN / "unwind_cxx"], 0.03),
    "rust": ([BIN / "unwind_rust"], 0.03),
    "go": ([BIN / "unwind_go"], 0.03),
    "static": ([BIN / "unwind_static"], 0.03),
    "musl": ([BIN / "unwind_musl"], 0.03),
    "signal": ([BIN / "unwind_signal"], 0.03),
    "recursion": ([BIN / "unwind_recursion"], 0.03),
    "openssl": (["openssl", "speed", "-seconds", "1", "-bytes", "1024", "sha256", "aes-256-cbc", "rsa2048", "ecdsap256", "ecdhx25519"],
                0.12),
    "sqlite": (["sqlite3", ":memory:"], 0.1),
    "python": (["/usr/bin/python3", LOADS / "unwind_python.py"], 0.05),
    "node": (["node", "--jitless", LOADS / "unwind_node.js"], 0.05),
}


class Failure(Exception):
    pass


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def read_line(stream, name):
    """Reads one line from an unbuffered pipe within PATIENCE_S."""
    line = b""
    until = time.monotonic() + PATIENCE_S
    while not line.endswith(b"\n"):
        if not select.select([stream], [], [], max(0, until - time.monotonic()))[0]:
            raise Failure(f"{name} does not answer")
        byte = os.read(stream.fileno(), 1)
        if not byte:
            raise Failure(f"{name} has ended")
        line += byte
    return line.decode()


class Load:
    def __init__(self, name):
        self.command, self.pause_s = PROGRAMS[name]
        stdin = subprocess.DEVNULL
        if name == "sqlite":
            stdin = tempfile.TemporaryFile()
            stdin.write((LOADS / "unwind_sqlite.sql").read_bytes() * SQL_ROUNDS)
            stdin.seek(0)
        self.process = subprocess.Popen([str(a) for a in self.command], stdin=stdin, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)
        self.pid = self.process.pid

    def kill(self):
        self.process.kill()
        self.process.wait()


class Gdb:
    """A gdb that is attached to one process from beginning to end."""

    def __init__(self, pid, is_v8):
        ask, self._ask = os.pipe()
        self._answers, answer = os.pipe()
        self._stream = os.fdopen(self._answers, "rb", buffering=0)
        environment = {**os.environ, "GDB_ASK": str(ask), "GDB_ANSWER": str(answer), "GDB_PID": str(pid), "DEBUGINFOD_URLS": "",
                       "GDB_V8": "1" if is_v8 else "0"}
        self.process = subprocess.Popen(ROOT + ["gdb", "-nx", "-nh", "-q", "-batch", "-x", HERE / "gdb_frames.py"], pass_fds=(ask, answer),
                                        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(ask)
        os.close(answer)
        read_line(self._stream, "gdb")

    def go_on(self):
        os.write(self._ask, b"next\n")

    def has_answered(self):
        return bool(select.select([self._stream], [], [], 0)[0])

    def answer(self):
        return json.loads(read_line(self._stream, "gdb"))

    def close(self):
        os.close(self._ask)
        self._stream.close()
        self.process.kill()  # before its process is killed: otherwise gdb would have to handle the end of that process
        self.process.wait()


class StackStops:
    def __init__(self):
        self.process = subprocess.Popen(ROOT + [BIN / "stack_stops"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        read_line(self.process.stdout, "stack_stops")

    def stop(self, pid):
        """Stops the process. Returns (tid, ending, frames), or None if the stop failed."""
        self.process.stdin.write(f"{pid}\n".encode())
        fields = read_line(self.process.stdout, "stack_stops").rstrip("\n").split("\t")
        if fields[0] != "stopped":
            return None
        frames = [(id_, int(address, 16), path) for address, id_, path in zip(fields[3::3], fields[4::3], fields[5::3])]
        return int(fields[1]), fields[2], frames

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Result:
    def __init__(self, name):
        self.name = name
        self.verdicts = collections.Counter()
        self.endings = collections.Counter()
        self.examples = {}  # by verdict
        self.outermost = {}  # by ending: the outermost frames of one identical stack

    @property
    def stacks(self):
        return sum(n for verdict, n in self.verdicts.items() if verdict is not Verdict.FAILED_STOP)

    @property
    def identical(self):
        return self.verdicts[Verdict.IDENTICAL]


def describe(ours, ending, theirs, reason, code):
    """Returns both stacks side by side as text, around the first difference."""
    lines = [f"      collector: {ending}, {len(ours)} frames; gdb: {reason}, {len(theirs)} frames"]
    first = common_length(ours, theirs)
    for i in sorted({0, 1, *range(max(0, first - 3), first + 6)} & set(range(max(len(ours), len(theirs))))):
        left = f"{pathlib.Path(ours[i][2]).name}+{ours[i][1]:#x}" if i < len(ours) else "-"
        right = "-"
        if i < len(theirs):
            frame = theirs[i]
            mark = "" if code.has_unwind_information(frame.lookup) else " (no unwind information)"
            right = f"{pathlib.Path(frame.path).name}+{frame.place[1]:#x} {frame.name or ''}{mark}"
        lines.append(f"      #{i:<3} {left:40} {right}")
    return "\n".join(lines)


def one_stop(load, gdb, stops, code, draw, result):
    """Stops the program once and compares the stacks. Returns False if the program has ended."""
    gdb.go_on()
    time.sleep(draw.uniform(0.005, load.pause_s))
    # If two threads of the program were sampled at the same moment, both were stopped. The second stop comes as soon as
    # gdb lets the program continue.
    stop = None if gdb.has_answered() else stops.stop(load.pid)
    if stop is None:
        if load.process.poll() is not None:
            return False
        if not gdb.has_answered():  # otherwise this SIGSTOP would be the next stop
            os.kill(load.pid, signal.SIGSTOP)
    answer = gdb.answer()
    if answer["stop"] == "exited":
        return False
    if stop is None or answer["stop"] != "SIGSTOP" or answer["tid"] != stop[0]:
        result.verdicts[Verdict.FAILED_STOP] += 1
        why = f"      gdb: {answer['stop']} of thread {answer.get('tid')}; collector: {stop}"
        result.examples.setdefault(Verdict.FAILED_STOP, why)
        return True
    _, ending, ours = stop
    code.refresh()
    theirs = place(answer["frames"], code)
    verdict = compare(ours, ending, theirs, code)
    result.verdicts[verdict] += 1
    if verdict is not Verdict.FAILED_STOP:
        result.endings[ending] += 1
    if verdict is Verdict.IDENTICAL:
        if len(ours) == len(theirs):
            names = [f"{pathlib.Path(f.path).name}+{f.place[1]:#x} {f.name or ''}" for f in theirs[-3:]]
            result.outermost.setdefault(ending, " < ".join(names))
    else:
        result.examples.setdefault(verdict, describe(ours, ending, theirs, answer["reason"], code))
    return True


def run_program(name, stops, count, seed):
    draw = random.Random(f"{seed}/{name}")
    result = Result(name)
    for _ in range(STARTS_MAX):
        load = Load(name)
        code = CodeAddresses(load.pid)
        gdb = None
        try:
            gdb = Gdb(load.pid, is_v8=name == "node")
            while result.stacks < count and one_stop(load, gdb, stops, code, draw, result):
                failed = result.verdicts[Verdict.FAILED_STOP]
                if failed > max(5, FAILED_SHARE_MAX * (result.stacks + failed)):
                    raise Failure(f"{failed} stops failed, {result.stacks} did not\n"
                                  + result.examples.get(Verdict.FAILED_STOP, ""))
        finally:
            if gdb is not None:
                gdb.close()
            load.kill()
        if result.stacks >= count:
            return result
    raise Failure(f"it ended {STARTS_MAX} times before {count} stacks were seen")


def print_table(results):
    print(f"{'program':12}{'stacks':>8}{'identical':>11}{'complete':>10}{'failed stops':>14}  differences")
    for r in results:
        differences = ", ".join(f"{n} {v.value}" for v, n in r.verdicts.items() if v not in (Verdict.IDENTICAL, Verdict.FAILED_STOP))
        print(f"{r.name:12}{r.stacks:8}{r.identical / r.stacks:11.1%}{r.endings['complete'] / r.stacks:10.1%}"
              f"{r.verdicts[Verdict.FAILED_STOP]:14}  {differences}")
        others = {e: n for e, n in r.endings.items() if e != "complete"}
        for ending, n in others.items():
            print(f"{'':12}{n} end as {ending}" + (f", as gdb's do: {r.outermost[ending]}" if ending in r.outermost else ""))


def violations(results):
    stacks = sum(r.stacks for r in results)
    identical = sum(r.identical for r in results)
    print(f"in all: {identical} of {stacks} identical, {identical / stacks:.2%}")
    if identical < ALL_IDENTICAL_MIN * stacks:
        yield f"only {identical / stacks:.2%} identical over all"
    for r in results:
        if r.identical < EACH_IDENTICAL_MIN * r.stacks:
            yield f"{r.name}: only {r.identical / r.stacks:.1%} identical"
        for verdict in (Verdict.WRONG_COMPLETE, Verdict.UNEXPLAINED):
            if r.verdicts[verdict]:
                yield f"{r.name}: {r.verdicts[verdict]} {verdict.value}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stacks", type=int, default=STACKS)
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    stops = StackStops()
    results, failures = [], []
    try:
        for name in options.programs or PROGRAMS:
            started = time.monotonic()
            try:
                results.append(run_program(name, stops, options.stacks, options.seed))
            except Failure as e:
                failures.append(f"{name}: {e}")
                print(f"FAILED {failures[-1]}", flush=True)
                continue
            print(f"{name}: {time.monotonic() - started:.1f} s", flush=True)
            for verdict, example in results[-1].examples.items():
                print(f"    {verdict.value} ({results[-1].verdicts[verdict]}), for example\n{example}", flush=True)
    finally:
        stops.close()
    if results:
        print_table(results)
        failures += violations(results)
    for failure in failures:
        print(f"FAILED {failure}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
