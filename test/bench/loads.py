"""Loads that run while a profiler is measured. Each load is a class: created in a directory, stopped at the end."""

import os
import pathlib
import subprocess
import sys

import measure  # first: it finds lib
import lib

HERE = pathlib.Path(__file__).resolve().parent
WORKLOADS, RUNTIMES = HERE.parent / "workloads", HERE.parent / "runtimes"
PYTHON_RECURSION = """
def work(n):
    x = 1
    for i in range(n):
        x = (x * 69069 + i) & 0xffffffff
    return x
def descend(depth):
    return (descend(depth - 1) if depth > 1 else work(2000)) + 1
while True:
    for depth in range(1, 25):
        descend(depth)
"""
PYTHON_SERVICE = """
import asyncio, json, re
class Handler:
    def __init__(self, name):
        self.name = name
    async def handle(self, request):
        parsed = await self.parse(request)
        rows = sorted((self.row(i, parsed) for i in range(parsed["rows"])), key=lambda row: row["key"])
        return json.dumps(rows)
    async def parse(self, request):
        await asyncio.sleep(0)
        return {key: int(value) for key, value in re.findall(r"(\\w+)=(\\d+)", request)}
    def row(self, i, parsed):
        return {"key": "%s %d" % (self.name, i * 7919 % 997), "values": [j * j for j in range(parsed["columns"])]}
async def main():
    handlers = [Handler("handler %d" % i) for i in range(8)]
    while True:
        await asyncio.gather(*(handler.handle("rows=60&columns=10") for handler in handlers))
asyncio.run(main())
"""
NODE_RECURSION = """
function work(n) { let x = 1; for (let i = 0; i < n; i++) x = (Math.imul(x, 69069) + i) | 0; return x; }
function descend(depth) { return (depth > 1 ? descend(depth - 1) : work(100000)) + 1; }
for (;;) for (let depth = 1; depth <= 24; depth++) descend(depth);
"""


def compile_c(name, directory):
    """Builds a program of this folder like most programs: optimized, without frame pointers. Returns its path."""
    program = pathlib.Path(directory) / name
    subprocess.run(["cc", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-o", program, HERE / f"{name}.c"], check=True)
    return program


class Load:
    """Processes. Each runs in its own session, with the processes that it starts. stop() ends all of them."""

    def __init__(self, *commands):
        self._processes = [subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL, start_new_session=True) for command in commands]

    def stop(self):
        for process in self._processes:
            os.killpg(process.pid, 9)
            process.wait()


class Truth(Load):
    """Two busy native threads and a busy interpreter, which repeat the same stacks."""

    name = "steady"

    def __init__(self, directory):
        super().__init__([lib.BIN / "truth", "100000"], [sys.executable, "-c", "while True:\n sorted(range(1000), key=lambda x: -x)"])


class Compiler(Load):
    """A compiler and shells that start all the time: new processes, new stacks."""

    name = "churn"

    def __init__(self, directory):
        super().__init__(["sh", "-c", f"while :; do {compile_command(directory)}; ls /usr/bin | sort -r | head -n 1; done"])


def compile_command(directory):
    source = pathlib.Path(directory) / "churn.cc"
    source.write_text("#include <map>\n#include <string>\n#include <vector>\nstd::map<std::string, std::vector<int>> m;\n"
                      "int main() { m[\"a\"].push_back(1); return m.size(); }\n")
    return f"g++ -O2 -c -o {directory}/churn.o {source}"


class Recursion(Load):
    """Steady: three programs that recurse: C without frame pointers, CPython and node."""

    name = "steady"

    def __init__(self, directory):
        super().__init__([compile_c("recursion", directory)], [sys.executable, "-c", PYTHON_RECURSION], ["node", "-e", NODE_RECURSION])


class Tools(Load):
    """Churning: a compiler and a linker, shells with pipelines, package tools, interpreters that start and end."""

    name = "churn"

    def __init__(self, directory):
        small = pathlib.Path(directory) / "small.c"
        small.write_text("int main(void) { return 0; }\n")
        super().__init__(
            ["sh", "-c", f"while :; do {compile_command(directory)}; cc -o {directory}/small {small} && {directory}/small; done"],
            ["sh", "-c", "while :; do dpkg -l | awk '{print $2}' | sort -r | head -n 1; apt-cache show bash | grep -c .; "
                         "dpkg-query -L coreutils | xargs ls -d | wc -l; python3 -c 'import json, re'; perl -e 'print 1'; "
                         "find /usr/share/doc -maxdepth 1 | sed s/a/b/ | cksum; git --version; openssl version; done"])


class Python(Load):
    """Python, steady: a service with coroutines, JSON and regular expressions, a program that calls much native code, recursion."""

    name = "python"

    def __init__(self, directory):
        super().__init__([sys.executable, "-c", PYTHON_SERVICE], [sys.executable, WORKLOADS / "unwind_python.py"],
                         [sys.executable, "-c", PYTHON_RECURSION])


class PythonChurn(Load):
    """Python, churning: programs that import modules, work for a moment and end, and forks of one program."""

    name = "python-churn"

    def __init__(self, directory):
        short = RUNTIMES / "short_python.py"
        super().__init__(["sh", "-c", f"while :; do {sys.executable} -c 'import json, re, asyncio'; {sys.executable} {short} one 1 0.1; done"],
                         ["sh", "-c", f"while :; do {sys.executable} {short} forks 1 20 0.05; done"])
