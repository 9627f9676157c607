"""Code that the tests of this folder share: made-up nodes, a reducer in a directory of its own, answers to compare.

The nodes are test/fleet/main.cc. No test here starts a kernel-collector.
"""

import contextlib
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
import lib  # noqa: E402  (in the folder of the end-to-end tests)

NODES = pathlib.Path(os.environ["TRIBUTARY_BUILD"]) / "tests" / "fleet_nodes"
SAFETY_NET_S = 120  # each wait takes seconds; this is only to end a test that hangs


@contextlib.contextmanager
def directory():
    path = tempfile.mkdtemp(prefix="tributary-fleet-")
    try:
        yield pathlib.Path(path)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def token_options(path, honest):
    """Writes a file with one token for each node (tokens.h). Returns the options that make the reducer require them.
    All nodes have one address, so only their tokens distinguish them."""
    tokens = path / "tokens"
    names = [*(f"honest-{n}" for n in range(honest)), "hostile-symbols"]
    tokens.touch(mode=0o600)
    tokens.write_text("".join(f"token-of-{name} {name}\n" for name in names))
    return "--intake-token-file", str(tokens)


class Nodes:
    """The program fleet_nodes: lines go to its standard input, and its standard output is JSON lines."""

    def __init__(self, reducer, *args):
        with open(reducer.directory / "nodes.log", "ab") as log:
            self.process = subprocess.Popen([NODES, "--intake-port", str(reducer.intake_port), *map(str, args)], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=log)
        self._text = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def send(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def line(self, timeout_s):
        """Returns the next line, or None if there is none within this time."""
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._text:
            readable, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                return None
            got = os.read(self.process.stdout.fileno(), 1 << 16)
            lib.check(got, "fleet_nodes ended")
            self._text += got
        line, self._text = self._text.split(b"\n", 1)
        return json.loads(line)

    def part(self):
        """Lets honest nodes send their next part. Returns the totals of each node when all parts are durable."""
        self.send("part")
        totals = self.line(SAFETY_NET_S)
        lib.check(totals is not None, f"the honest nodes have no acknowledgement after {SAFETY_NET_S} s")
        return totals

    def end(self):
        """Ends a hostile node, and returns its totals."""
        self.process.stdin.close()
        while True:
            line = self.line(SAFETY_NET_S)
            lib.check(line is not None, "the hostile node does not end")
            if "event" not in line:
                self.process.wait()
                return line


def peak_rss_mib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise lib.Failure(f"/proc/{pid}/status has no VmHWM")


def stacks(reducer, node, begin_ms, end_ms):
    """Returns all paths of a node's flame graph, each with its values. The path is a chain of hashes."""
    graph = reducer.flamegraph(f'{{node_id="{node}"}}', begin_ms, end_ms)
    lib.check(graph.answer["truncated_nodes"] == 0, f"the flame graph of {node} is truncated")
    paths, out = [], {}
    for i in range(len(graph)):
        frame = (graph.name_of(i), graph.kind_of(i), graph.executable_of(i))
        paths.append(hash((paths[graph.parent[i]] if graph.parent[i] >= 0 else 0, frame)))
        out[paths[i]] = (frame, graph.total_ns[i], graph.self_ns[i], graph.total_count[i], graph.self_count[i])
    return out


def first_difference(expected, found):
    """Returns a sentence about one difference of two results of stacks(), or None."""
    if expected == found:
        return None
    missing = [value for path, value in expected.items() if found.get(path) != value]
    more = [value for path, value in found.items() if expected.get(path) != value]
    return f"{len(missing)} of {len(expected)} nodes are missing, such as {missing[:1]}; {len(more)} are new, such as {more[:1]}"
