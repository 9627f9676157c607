"""Python processes that live shortly. Each has functions of its own names, in a file of its own name.

    short_python.py one NUMBER SECONDS            one process: SECONDS of CPU time in work_NUMBER
    short_python.py forks NUMBER COUNT SECONDS    COUNT children of one process, which share its functions
    short_python.py steady SECONDS                busy in work_steady; prints the time at the start

Each prints "NUMBER PID" for each process that was busy.
"""

import json
import os
import sys
import time

SOURCE = """def work_{0}(end):
    while clock() < end:
        for _ in chunk: pass


def outer_{0}(end):
    work_{0}(end)
"""


def clock():
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)


def run(number, seconds):
    """Runs functions that are made now. In forked children they have the same addresses, but other names."""
    space = {"clock": clock, "chunk": range(5000)}
    exec(compile(SOURCE.format(number), "/made/short_{}.py".format(number), "exec"), space)
    space["outer_{}".format(number)](clock() + seconds)


def shared_by_forks(number, seconds):
    run(number, seconds)


def forks(number, count, seconds):
    for i in range(number, number + count):
        pid = os.fork()
        if pid == 0:
            shared_by_forks(i, seconds)
            os._exit(0)
        os.waitpid(pid, 0)
        print(i, pid, flush=True)


def main():
    what, arguments = sys.argv[1], sys.argv[2:]
    if what == "one":
        run(int(arguments[0]), float(arguments[1]))
        print(arguments[0], os.getpid(), flush=True)
    elif what == "forks":
        forks(int(arguments[0]), int(arguments[1]), float(arguments[2]))
    else:
        json.dump({"pid": os.getpid(), "start_ms": time.time() * 1000}, sys.stdout)
        run("steady", float(arguments[0]))


if __name__ == "__main__":
    main()
