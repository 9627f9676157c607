"""Reads the stacks of a process from the reducer, in the form of chains.py."""

import pathlib
import sys

import chains

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import lib  # noqa: E402

NODES_MAX = 500_000


class Stacks:
    """The stacks of one process, each with its number of samples."""

    def __init__(self, reducer, selector, start_ms, end_ms, **more):
        times = {"from": start_ms, "to": end_ms}
        graph = reducer.json("/api/v1/flamegraph", query=selector, lines=1, max_nodes=NODES_MAX, **times, **more)
        lib.check(graph["truncated_nodes"] == 0, f"the flame graph of {selector} has too many nodes")
        self.total = graph["total"]["count"]
        self.health = reducer.json("/api/v1/stack-health", query=selector, **times)
        self.counted = list(_counted(graph))  # (stack, samples)

    def matching(self, chain):
        return sum(count for stack, count in self.counted if chains.matches(chain, stack))

    def having(self, element):
        """Returns the (stack, samples) that contain this frame of a chain at any line."""
        wanted = (element["function"], element["file"])
        return [(stack, count) for stack, count in self.counted if any((f["function"], f["file"]) == wanted for f in stack)]

    def not_complete(self):
        """Returns the samples whose stack is not complete; kernel_only are samples of no language."""
        return {ending: count for ending, count in self.health["endings"].items() if ending not in ("complete", "kernel_only")}


def _counted(graph):
    nodes, kinds = graph["nodes"], [kind["name"] for kind in graph["kinds"]]
    stacks = [[]]
    for i in range(1, len(nodes["parent"])):
        stack = stacks[nodes["parent"][i]]
        kind = kinds[nodes["kind"][i]]
        if kind != "kernel":
            file = nodes["file"][i]
            stack = stack + [{"kind": kind, "function": graph["names"][nodes["name"][i]], "file": graph["files"][file] if file >= 0 else "",
                              "line": nodes["line"][i]}]
        stacks.append(stack)
        if nodes["self_count"][i]:
            yield stack, nodes["self_count"][i]


def is_unnamed(frame):
    """Returns whether a frame of a language has no name."""
    return chains.is_language(frame) and (not frame["function"] or frame["function"].startswith("["))
