"""Compares stacks with py-spy and faulthandler, which read the same stopped thread.

    python_oracle_test.py [--stacks N] INTERPRETER…

A BPF program stops the program at a sample (stack_stops). py-spy then reads the stopped process. At last the thread gets
a signal and goes on: before its next instruction, the signal's handler prints its stack with faulthandler.
"""

import argparse
import collections
import ctypes
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import interpreters

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
import lib  # noqa: E402

EQUAL_MIN = 0.99
SYS_TGKILL = 234
FAULTHANDLER_FRAMES_MAX = 100
PATIENCE_S = 20


class StackStops:
    def __init__(self):
        command = [*lib.ROOT, lib.BIN / "stack_stops", "--runtimes"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        lib.check(self.process.stdout.readline() == "ready\n", "stack_stops did not start")

    def stop(self, pid):
        """Stops the process. Returns (tid, ending, frames of Python, outermost first), or None."""
        self.process.stdin.write(f"{pid}\n")
        self.process.stdin.flush()
        fields = self.process.stdout.readline().rstrip("\n").split("\t")
        if fields[0] != "stopped":
            return None
        frames = list(zip(fields[3::4], fields[4::4], fields[5::4], fields[6::4]))
        return int(fields[1]), fields[2], [(function, file, int(line)) for kind, function, file, line in frames if kind == "python"][::-1]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def py_spy(program, pid, tid):
    """Returns the frames that py-spy reads, or None."""
    command = [*lib.ROOT, program, "dump", "--nonblocking", "--json", "--pid", str(pid)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    threads = json.loads(done.stdout)
    for thread in threads:
        # Without os_thread_id in the thread states (before 3.11), it cannot tell threads apart without stopping them.
        if thread["os_thread_id"] == tid or len(threads) == 1:
            return without_helpers([(frame["name"], frame["filename"], frame["line"]) for frame in thread["frames"]][::-1])
    return None


def without_helpers(frames):
    """From 3.12 on, the interpreter has a helper frame below __init__, which is no function of the program."""
    return [frame for frame in frames if frame[:2] != ("__init__", "__init__")]


class Faulthandler:
    def __init__(self, path):
        self.path = path
        self.at = 0

    def stack(self, pid, tid):
        """Lets the stopped process go on. Returns the frames that faulthandler prints, and whether it stopped at a frame.

        From 3.14 on, it stops at the helper frame of __init__, and prints no outer frames.
        """
        ctypes.CDLL(None, use_errno=True).syscall(SYS_TGKILL, pid, tid, int(signal.SIGUSR1))
        os.kill(pid, signal.SIGCONT)
        until, before = time.monotonic() + PATIENCE_S, -1
        while time.monotonic() < until:
            size = self.path.stat().st_size
            if size > self.at and size == before:
                break
            before = size
            time.sleep(0.01)
        with open(self.path, "rb") as file:
            file.seek(self.at)
            text = file.read().decode("ascii")
        self.at += len(text)
        frames = re.findall(r'^  File "(.*)", line (\d+|\?\?\?) in (.*)$', text, re.MULTILINE)
        stack = without_helpers([(function, file, int(line) if line.isdigit() else 0) for file, line, function in frames][::-1])
        return stack, "<invalid frame>" in text


def plain(frames, ascii_only=False):
    """Returns frames in the form that all programs have: functions without their classes."""
    def text(value):
        return value.encode("ascii", "backslashreplace").decode() if ascii_only else value

    return [(text(function.rsplit(".", 1)[-1]), text(file), line) for function, file, line in frames]


def difference(ours, theirs):
    """Returns the class of the difference between two stacks, or None. docs/runtimes.md explains the classes."""
    if ours == theirs:
        return None
    if not theirs:
        return "the other program has no stack"
    if not ours:
        return "no frames of ours"
    if ours[:-1] == theirs[:-1] and ours[-1][:2] == theirs[-1][:2]:
        return "line of the innermost frame"
    if ours[:-1] == theirs or ours == theirs[:-1]:
        return "innermost frame at its begin or end"
    if [frame[:2] for frame in ours] == [frame[:2] for frame in theirs]:
        return "line of an outer frame"
    return "other"


class Result:
    def __init__(self):
        self.stacks = 0
        self.differences = {"py-spy": collections.Counter(), "faulthandler": collections.Counter()}
        self.endings = collections.Counter()
        self.examples = {}

    def add(self, other, ours, theirs):
        what = difference(ours, theirs)
        if what:
            self.differences[other][what] += 1
            shown = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
            part = slice(max(0, shown - 1), shown + 3)
            self.examples.setdefault((other, what), f"      ours   …{ours[part]}\n      theirs …{theirs[part]}")


def run(interpreter, directory, stops, spy, count, draw):
    result = Result()
    name = "stacks.txt"
    process = interpreter.run(directory, "oracle_target.py", f"FOLDER/{name}")
    try:
        folder = interpreter.folder(directory)
        handler = Faulthandler(folder / name)
        lib.wait_for("the program", (folder / name).exists, 30)
        failed = 0
        while result.stacks < count:
            time.sleep(draw.uniform(0.005, 0.03))
            stop = stops.stop(process.pid)
            lib.check(process.poll() is None, "the program ended")
            if stop is None:
                failed += 1
                os.kill(process.pid, signal.SIGCONT)
                lib.check(failed <= 5 + result.stacks / 5, f"{failed} stops failed")
                continue
            tid, ending, ours = stop
            spied = py_spy(spy, process.pid, tid)
            handled, is_cut = handler.stack(process.pid, tid)
            common = min(FAULTHANDLER_FRAMES_MAX, len(handled) if is_cut else len(ours))
            result.stacks += 1
            result.endings[ending] += 1
            result.add("py-spy", plain(ours), plain(spied or []))
            result.add("faulthandler", plain(ours[len(ours) - common:], True), handled)
    finally:
        process.kill()
        process.wait()
        interpreter.forget(directory)
    return result


def report(name, result, failures):
    print(f"{name}: {result.stacks} stacks; endings {dict(result.endings)}", flush=True)
    for other, differences in result.differences.items():
        equal = result.stacks - sum(differences.values())
        print(f"  equal to {other}: {equal} ({equal / result.stacks:.4f})", flush=True)
        for what, count in differences.most_common():
            print(f"    {count} × {what}, for example\n{result.examples[other, what]}", flush=True)
        if equal < EQUAL_MIN * result.stacks:
            failures.append(f"{name}: only {equal / result.stacks:.4f} equal to {other}: {dict(differences)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stacks", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("interpreters", nargs="+")
    options = parser.parse_args()
    spy = subprocess.run([HERE / "py_spy.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    failures = []
    stops = StackStops()
    try:
        for name in options.interpreters:
            with lib.directory() as d:
                report(name, run(interpreters.find(name, d), d, stops, spy, options.stacks, random.Random(options.seed)), failures)
    finally:
        stops.close()
    for failure in failures:
        print(f"FAILED {failure}", flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
