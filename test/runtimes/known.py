"""A Python program whose profile is known (python_parts.py). It runs on CPython 3.6 to 3.14.

    known.py SECONDS [--check] [--without PART,…]

It prints JSON at the end: when the parts began, and for each part its CPU time and its chain. A part without its module is left out, and named in
"missing". With --check, it compares the chains with the interpreter's own frames.
"""

import argparse
import json
import os
import re
import signal
import sys
import threading
import time

import chains
import python_parts as parts

FILE = (lambda: 0).__code__.co_filename  # before 3.9 it may be relative
with open(FILE, encoding="utf-8") as source:
    MARKS = {mark: number for number, text in enumerate(source, 1) for mark in re.findall(r"# @(\S+)$", text.rstrip())}


def frame(function, mark):
    return parts.python(function, file=FILE, line=MARKS[mark])


class Checker:
    """Compares the stack of the main thread with the chain of each part, in a handler of signals."""

    def __init__(self):
        self.stacks = []
        signal.signal(signal.SIGPROF, lambda _number, interrupted: self.stacks.append(chains.stack_of(interrupted)))

    def begin(self):
        del self.stacks[:]
        signal.setitimer(signal.ITIMER_PROF, 0.004, 0.004)

    def end(self, name, chain):
        signal.setitimer(signal.ITIMER_PROF, 0)
        wanted = chains.without_native(chain)
        wrong = [stack for stack in self.stacks if not chains.matches(wanted, stack)]
        # A signal may also arrive between two busy statements, above all on a busy machine.
        if len(self.stacks) < 3 or len(wrong) > 0.4 * len(self.stacks):
            sys.exit("%s: %d of %d stacks are wrong, for example\n%s\nis not\n%s" % (
                name, len(wrong), len(self.stacks), wrong and chains.stack_text(wrong[len(wrong) // 2]), chains.text(chain)))


def work(until, times):
    begin = parts.clock()
    while parts.clock() < begin + until:
        for _ in parts.CHUNK: pass  # @work-busy
    times.append(parts.clock() - begin)


def run_threads():
    """Runs three threads. Their stacks do not begin in this file."""
    times = []
    threads = [threading.Thread(target=work, args=(parts.SECONDS, times)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"name": "threads", "cpu_ns": int(sum(times) * 1e9),
            "chain": [chains.ANY, parts.python("Thread.run", file=threading.__file__), frame("work", "work-busy")]}


def run_parts(without, checker):
    prefix = [frame("<module>", "module"), frame("main", "main"), frame("run_parts", "part")]
    ran, missing = [], {}
    for name, function, chain in parts.PARTS:
        if name in without:
            continue
        if checker:
            checker.begin()
        begin = parts.clock()
        try:
            function()  # @part
        except ImportError as e:
            missing[name] = str(e)
            continue
        ran.append({"name": name, "cpu_ns": int((parts.clock() - begin) * 1e9), "chain": prefix + chain})
        if checker:
            checker.end(name, prefix + chain)
    return ran, missing


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", type=float)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--without", type=lambda text: text.split(","), default=[])
    options = parser.parse_args()
    parts.SECONDS = options.seconds
    checker = Checker() if options.check else None
    begin_ms, begin_cpu = time.time() * 1000, time.process_time()
    ran, missing = run_parts(options.without, checker)  # @main
    if "threads" not in options.without:
        ran.append(run_threads())
    json.dump({"pid": os.getpid(), "version": sys.version.split()[0], "parts": ran, "missing": missing,
               "begin_ms": begin_ms, "cpu_ns": int((time.process_time() - begin_cpu) * 1e9)}, sys.stdout)


main()  # @module
