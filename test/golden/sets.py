"""Sets of golden files (schemas/golden/README.md): their place, and the queries to a reducer with the data of a set."""

import json
import lzma
import pathlib
import sys
import tarfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
SETS = SOURCE / "schemas" / "golden"
sys.path.insert(0, str(SOURCE / "test" / "e2e"))

# Ten years, the maximum of the options: no set is too old before then.
KEEP = ["--retention", "3650d", "--retention-raw", "3650d", "--retention-events", "3650d", "--metadata-keep", "3650d"]
SYMBOLS = 40  # functions per executable that `tributary replay --symbols` makes up
SELECTORS = ["{}", '{process_executable_name="worker"}', '{k8s_pod_name="web-1"}', '{service_name="shop",node_id="golden-3"}']


def all_sets():
    return sorted(path.parent for path in SETS.glob("*/set.json"))


def description(golden):
    return json.loads((golden / "set.json").read_text())


def golden_answers(golden):
    return json.loads(lzma.decompress((golden / "answers.json.xz").read_bytes()))


def unpack(golden, directory):
    with tarfile.open(golden / "data.tar.xz") as archive:
        archive.extractall(directory, filter="data")
    return directory / "data"


def folded(graph):
    """Returns the stacks with their own weights, sorted: the order of a graph's nodes is not part of the answer."""
    stacks = []
    kinds = ["root", "native", "kernel", "inlined", "unknown"]  # for old answers without a list; the numbers are the same
    kinds = [kind["name"] for kind in graph.answer.get("kinds", [])] or kinds
    for node in range(len(graph)):
        if graph.self_count[node]:
            path = ";".join(f"{name}" for name in graph.path(node))
            stacks.append(f"{path} {kinds[graph.kind[node]]} {graph.self_ns[node]} {graph.self_count[node]}")
    return sorted(stacks)


def by_key(rows, *keys):
    return sorted(rows, key=lambda row: [str(row[key]) for key in keys])


def answers(reducer, start_ms, end_ms):
    """Returns all answers that stay the same as long as the data are kept."""
    time = {"from": start_ms, "to": end_ms}
    status = reducer.status()
    out = {"status": {"total": status["total"], "stack_health": status["stack_health"],
                      "nodes": by_key(status["nodes"], "id"), "symbol_tables": status["reducer"]["symbol_tables"]}}
    others = [of["name"] for of in reducer.json("/api/v1/types", **time)["types"] if of["name"] not in ("cpu", "off_cpu")]
    for selector in SELECTORS:
        for kind in ("cpu", "off_cpu", *others):
            for frames in ("function", "address"):
                graph = reducer.flamegraph(selector, start_ms, end_ms, type=kind, frames=frames, max_nodes=1_000_000)
                out[f"flamegraph {selector} {kind} {frames}"] = {"total": graph.answer["total"], "stacks": folded(graph)}
    series = reducer.json("/api/v1/series", **time)
    keys = {"processes": ("node_id", "pid"), "threads": ("host", "tid"), "containers": ("id",), "hosts": ("id",), "pods": ("id",),
            "namespaces": ("name",), "workloads": ("kind", "name"), "services": ("name",)}
    out["series"] = {name: by_key(series[name], *key) for name, key in keys.items()}
    out["symbols"] = by_key(reducer.json("/api/v1/symbols", **time)["executables"], "build_id", "path")
    out["stack health"] = reducer.json("/api/v1/stack-health", **time)
    out["timeline"] = reducer.json("/api/v1/timeline", buckets=250, **time)
    out["rollouts"] = by_key(reducer.json("/api/v1/rollouts", **time)["rollouts"], "at", "name")
    out["events"] = reducer.json("/api/v1/events", limit=10_000, order="oldest", **time)["events"]
    for part in ("marks", "programs"):
        out[f"events/{part}"] = reducer.json(f"/api/v1/events/{part}", **time)
    return out
