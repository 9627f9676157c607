"""Tests that one hostile node does not change what a reducer acknowledges, stores and shows of honest nodes.

Honest nodes send a part of their samples. Then a hostile node begins, or one of each kind. When its damage is done, or
when the reducer refuses its data, the honest nodes send the rest beside it. All of their samples must be acknowledged.
Their totals, events, timelines and flame graphs must be the same as at a reducer without a hostile node.

    fleet_test.py [--long] [KIND…]      kinds of hostile nodes: SCENARIOS
"""

import contextlib
import dataclasses
import re
import subprocess
import sys
import time

import fleet
from fleet import lib

LONG = "--long" in sys.argv
HONEST = 300 if LONG else 100
PARTS_BESIDE = 6 if LONG else 1  # of the honest nodes, beside the hostile node
CONNECTIONS = 10_000 if LONG else 1_000
BEGIN_NS = (int(time.time()) // 60 - 3 * 60) * 60 * 10**9  # of the honest history: three hours ago
RANGE_MS = {"from": BEGIN_NS // 10**6, "to": BEGIN_NS // 10**6 + 7200_000}
RSS_MIB = 256 if LONG else 128  # peak memory of a reducer that only honest nodes use, at most
NAMES_S = 20  # ten times as long as honest nodes need to send their symbol tables
MANY = "1000000000"


@dataclasses.dataclass
class Scenario:
    """A hostile node of each kind in `kinds` (hostile_kinds.cc), with the reasons for which the reducer refuses it."""
    kinds: dict
    options: tuple = ()       # limits of other defences are raised: each defence must hold alone
    rss_more_mib: int = 128   # peak memory above RSS_MIB, at most
    all_of_it: bool = False   # wait until the node has done all it can, also if it is refused before
    first: bool = False       # the hostile node sends before any honest node
    tokens: bool = False      # each node has a token of its own
    check: object = None      # called with the reducer at the end

    def refused(self, kind=None):
        """Returns (node, reason) of each refusal that must be counted."""
        return [(f"hostile-{each}", reason) for each, reasons in self.kinds.items() for reason in reasons if kind in (None, each)]


def stored_samples_are_shown(reducer):
    """Samples that count as stored are in the flame graph: none of them was accepted and removed at once."""
    node = next(n for n in reducer.status()["nodes"] if n["id"] == "hostile-clocks")
    shown = reducer.flamegraph('{node_id="hostile-clocks"}', 0, lib.now_ms() + 7200_000).answer["total"]["count"]
    lib.check(shown == node["stored"], f"{node['stored']} samples of hostile-clocks are stored, and {shown} are shown")


WORK = ("--intake-node-work-per-second", MANY)
GENERATIONS = ("--intake-node-generations-per-second", "100000")
UNLIMITED = (*WORK, *GENERATIONS)
SMALL_STORE, SMALL_MEMORY = ("--store-bytes-max", "16MiB"), ("--session-memory-bytes-max", "64MiB")
SCENARIOS = {
    "work": Scenario({"event-loop": ["work_per_second"]}, GENERATIONS),
    "generations": Scenario({"event-loop": ["generations_per_second"]}, WORK),
    "connections": Scenario({"connections": ["over_limit"]}, all_of_it=True),
    "history": Scenario({"history": ["history_quota"]}, (*UNLIMITED, *SMALL_STORE), all_of_it=True),
    "deep-trie": Scenario({"deep-trie": ["bad_message"]}, UNLIMITED),
    "wide-trie": Scenario({"wide-trie": ["trie_quota"]}, UNLIMITED, rss_more_mib=384),
    "clocks": Scenario({"clocks": ["too_old", "old_days", "clamped_times"]}, UNLIMITED, check=stored_samples_are_shown),
    "symbols": Scenario({"symbols": ["symbol_conflict", "unasked_symbols"]}, UNLIMITED, first=True, tokens=True),
    "memory": Scenario({"memory": ["memory"]}, (*UNLIMITED, *SMALL_MEMORY), all_of_it=True, rss_more_mib=288),
}
if LONG:  # the limits on work delay some kinds, so not all of them are refused for their own reason
    SCENARIOS["all"] = Scenario({"event-loop": ["generations_per_second"], "connections": ["over_limit"], "history": ["history_quota"],
                                 "deep-trie": ["bad_message"], "wide-trie": [], "clocks": ["too_old"], "symbols": [], "memory": []},
                                (*SMALL_STORE, *SMALL_MEMORY), rss_more_mib=768)


def refusals(reducer, status=None):
    """Returns {(node, reason): amount}."""
    return {(each["node"], each["reason"]): each["amount"] for each in (status or reducer.status())["refusals"]}


def stacks_of(reducer, number):
    return fleet.stacks(reducer, f"honest-{number}", RANGE_MS["from"], RANGE_MS["to"])


def wait_for_names(reducer, wanted):
    """Waits until the first node has its names, because symbol tables arrive after the samples.

    Without `wanted`, waits until no frame is an address. If the names stay wrong, the comparison of all nodes fails.
    """
    def named():
        found = stacks_of(reducer, 0)
        return found == wanted if wanted else not any("+0x" in frame[0] for frame, *_ in found.values())

    with contextlib.suppress(lib.Failure):
        lib.wait_for("names", named, NAMES_S)


def check_honest(reducer, totals, reference):
    """Compares what the reducer shows of the honest nodes with the reference, if there is one. Returns it."""
    wait_for_names(reducer, reference and reference[0])
    nodes = {n["id"]: n for n in reducer.status()["nodes"]}
    found = {}
    for number in range(HONEST):
        node = nodes[f"honest-{number}"]
        lib.check(node["captured"] == node["stored"] == totals["samples_per_node"], f"{node}, {totals}")
        lib.check(node["process_events"]["stored"] == totals["events_per_node"], f"{node}, {totals}")
        found[number] = stacks_of(reducer, number)
        difference = reference and fleet.first_difference(reference[number], found[number])
        lib.check(not difference, f"the stacks of honest-{number} are others: {difference}")
    for what in ("timeline", "events/programs"):
        found[what] = reducer.json(f"/api/v1/{what}", query='{node_id=~"honest-.*"}', **RANGE_MS)
        lib.check(not reference or found[what] == reference[what], f"{what} of the honest nodes: {found[what]}, not {reference and reference[what]}")
    return found


def run_alone():
    """Runs the honest nodes without a hostile node. Returns what the reducer shows of them."""
    with fleet.directory() as d, lib.programs() as programs:
        reducer = lib.Reducer(d)
        programs.append(reducer)
        with fleet.Nodes(reducer, "--honest", HONEST, "--begin", BEGIN_NS) as honest:
            for _ in range(1 + PARTS_BESIDE):
                totals = honest.part()
            found = check_honest(reducer, totals, None)
            peak = fleet.peak_rss_mib(reducer.pid)
            print(f"  honest nodes alone: {peak:.0f} MiB, {totals}", flush=True)
            lib.check(lib.is_instrumented("reducer") or peak <= RSS_MIB, f"peak memory {peak:.0f} MiB, at most {RSS_MIB} MiB expected")
            return found


def run(name, reference):
    """Runs one scenario."""
    scenario = SCENARIOS[name]
    with fleet.directory() as d, lib.programs() as programs:
        tokens = fleet.token_options(d, HONEST) if scenario.tokens else ()
        reducer = lib.Reducer(d, args=(*scenario.options, *tokens))
        programs.append(reducer)
        with fleet.Nodes(reducer, "--honest", HONEST, "--begin", BEGIN_NS) as honest:
            if not scenario.first:
                honest.part()
            with contextlib.ExitStack() as stack:
                hostile = [stack.enter_context(fleet.Nodes(reducer, "--hostile", kind, "--connections", CONNECTIONS)) for kind in scenario.kinds]
                events = [wait_for_damage(reducer, node, scenario, kind) for node, kind in zip(hostile, scenario.kinds)]
                for _ in range(PARTS_BESIDE + scenario.first):
                    totals = honest.part()
                check_honest(reducer, totals, reference)
                sent = [each.end() for each in hostile]
        print(f"  {name}: {events}, {sent}, {fleet.peak_rss_mib(reducer.pid):.0f} MiB", flush=True)
        lib.check_law(reducer.status())
        if scenario.check:
            scenario.check(reducer)
        check_refusals(reducer, scenario)
        check_memory(reducer, scenario)
        lib.check(reducer.stop(60) == 0, "the reducer's exit code")


def wait_for_damage(reducer, hostile, scenario, kind):
    """Waits until the hostile node has done what it can, or until the reducer limits it."""
    deadline = time.monotonic() + fleet.SAFETY_NET_S
    wanted = scenario.refused(kind)
    while time.monotonic() < deadline:
        event = hostile.line(0.2)
        if event:
            return event
        if wanted and not scenario.all_of_it and all(each in refusals(reducer) for each in wanted):
            return {"event": "limited"}
        if not wanted and len(scenario.kinds) > 1:
            return {"event": "beside others"}
    raise lib.Failure(f"the node hostile-{kind} is neither done nor refused")


def check_refusals(reducer, scenario):
    """Each refusal is counted for the hostile node, in the API, the metrics, the command line and the log."""
    counted = refusals(reducer)
    lib.check(not any(node.startswith("honest") for node, _ in counted), f"honest nodes were refused: {counted}")
    metrics = reducer.get("/metrics").decode()
    shown = subprocess.run([lib.BIN / "tributary", "status", "--server", reducer.url], check=True, capture_output=True, text=True).stdout
    wanted = scenario.refused()
    for node, reason in wanted:
        lib.check(counted.get((node, reason)), f"{reason} is not counted for {node}: {counted}")
        lib.check(re.search(rf'^tributary_reducer_refusals_total{{node="{node}",reason="{reason}"}} [1-9]', metrics, re.M), f"no metric of {reason}")
        lib.check(re.search(rf"{node}.*{reason}", shown), f"tributary status does not show {reason}:\n{shown[-2000:]}")
    # The log has at most one such line in a second.
    lib.check(any(f"node={node} reason={reason} " in reducer.text() for node, reason in wanted), f"no line in the log about {wanted}")


def check_memory(reducer, scenario):
    bound = RSS_MIB + scenario.rss_more_mib
    peak = fleet.peak_rss_mib(reducer.pid)
    lib.check(lib.is_instrumented("reducer") or peak <= bound, f"peak memory {peak:.0f} MiB, at most {bound} MiB expected")


def main():
    wanted = [argument for argument in sys.argv[1:] if not argument.startswith("--")] or SCENARIOS
    reference = run_alone()
    failed = False
    for name in wanted:
        started = time.monotonic()
        try:
            run(name, reference)
            print(f"ok     {name} ({time.monotonic() - started:.1f} s)", flush=True)
        except lib.Failure as failure:
            failed = True
            print(f"FAILED {name}: {str(failure)[:2000]}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
