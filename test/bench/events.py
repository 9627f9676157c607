"""Measures what process events cost a node: see dev/bench and docs/benchmarks.md.

First, processes start at a fixed rate, and one collector after the other observes them. Then, loads of programs run,
and the costs of a collector with process events are divided by those of a collector without. Both observe the load at
the same time, so that the load is the same, and other work of the machine disturbs both.
"""

import argparse
import statistics
import subprocess
import sys
import time

import loads
import measure
import intake_tap
import lib

RATES = (100, 1000)  # processes per second
SAMPLE_RATE_HZ = 20
WARM_S = 6
# Under a load, a new collector first sends definitions, and starts and ends its helper processes.
LOAD_WARM_S = 40
# How much process events may add to a node's cost, by load. The bytes under churn have no limit: they grow with the
# number of processes.
GROWTH_MAX = {"steady_cpu": 0.03, "steady_wire_bytes": 0.10, "churn_cpu": 0.10}


class Node:
    """A collector with one budget, and a reducer of its own."""

    def __init__(self, directory, budget):
        self.budget = budget
        home = directory / f"budget-{budget}"
        home.mkdir()
        self.reducer = lib.Reducer(home)
        arguments = ["--node-id", f"bench-{budget}"] + ([] if budget == "none" else ["--event-budget", budget])
        self._tap = intake_tap.IntakeTap(self.reducer.intake_port)
        self.collector = lib.Collector(home, self._tap.port, rate=SAMPLE_RATE_HZ, args=arguments)

    def cost(self):
        """Returns (ns of CPU time with BPF programs, bytes without symbol tables), just after a batch was stored."""
        before = self._tap.acks
        lib.wait_for("a batch", lambda: self._tap.acks != before, 60, step_s=0.01)
        pid = self.collector.pid
        return measure.cpu_ns(pid) + measure.program_run_time(pid)[0], self._tap.acknowledged_bytes

    def stop(self):
        lib.check(self.collector.stop() == 0, "the collector's exit code")
        status = self.reducer.status()
        lib.check_law(status)
        events = status["total"].get("process_events", {})
        lost = {reason: n for reason, n in events.get("lost", {}).items() if n}
        self.reducer.stop()
        return f"events captured {events.get('captured', 0)}, stored {events.get('stored', 0)}, lost {lost}"


def observe(budgets, run, warm_s):
    """Returns the costs (CPU in ns, bytes) of one collector per budget, while `run` runs.

    An exit waits up to 2 s for its final CPU time. The second batch after the run has it.
    """
    with lib.directory() as directory, lib.programs() as programs:
        nodes = []
        for budget in budgets:
            nodes.append(Node(directory, budget))
            programs += [nodes[-1].reducer, nodes[-1].collector]
        for node in nodes:
            lib.wait_for("stored samples", lambda node=node: node.reducer.status()["total"]["stored"] > 0, 30)
        time.sleep(warm_s)
        first = [node.cost() for node in nodes]
        run()
        for node in nodes:
            node.cost()
        second = [node.cost() for node in nodes]
        for node in nodes:
            print(f"  budget {node.budget}: {node.stop()}", flush=True)
        return [(b[0] - a[0], b[1] - a[1]) for a, b in zip(first, second)]


def measure_lives(budgets, seconds):
    """Yields the costs of a process that starts, calls exec and ends, by rate and budget."""
    for rate in RATES:
        lives = int(rate * seconds)

        def run(lives=lives, rate=rate):
            subprocess.run([lib.BIN / "lives", "1", str(lives), "--kinds", "vfork", "--rate", str(rate)], check=True, stdout=subprocess.DEVNULL)

        for budget in budgets:
            [(cpu_ns, sent)] = observe([budget], run, WARM_S)
            yield f"events_{rate}_per_s_budget_{budget}_cpu_per_1000_processes", cpu_ns / lives * 1000 / 1e6, "ms"
            yield f"events_{rate}_per_s_budget_{budget}_wire_bytes_per_process", sent / lives, "B"


def compare_loads(budgets, seconds, rounds):
    """Yields the costs under loads, as ratios to the costs with the first budget. Uses medians of rounds."""
    for load_class in (loads.Truth, loads.Compiler):
        ratios = {budget: [] for budget in budgets}
        for number in range(rounds):
            order = budgets if number % 2 == 0 else budgets[::-1]  # the first collector may have other costs
            with lib.directory() as directory:
                load = load_class(directory)
                try:
                    costs = dict(zip(order, observe(order, lambda: time.sleep(seconds), LOAD_WARM_S)))
                finally:
                    load.stop()
            base = costs[budgets[0]]
            for budget in budgets[1:]:
                ratios[budget].append(tuple(mine / theirs for mine, theirs in zip(costs[budget], base)))
        for budget in budgets[1:]:
            for number, name in enumerate(("cpu", "wire_bytes")):
                yield f"events_{load_class.name}_budget_{budget}_{name}_ratio", statistics.median(r[number] for r in ratios[budget]), ""


def main():
    parser = argparse.ArgumentParser(prog="dev/bench events", description="Measures the cost of process events on a node.")
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5, help="of the comparison under loads")
    parser.add_argument("--budgets", default="0,200", help="values of --event-budget, separated by commas; none: do not pass the option, for "
                                                            "releases without process events; the first is the base of the ratios")
    options = parser.parse_args()
    budgets = options.budgets.split(",")

    reference = measure.reference_ns()
    with measure.BpfStats():
        figures = list(measure_lives(budgets, options.seconds)) + list(compare_loads(budgets, options.seconds, options.rounds))
    print(f"{'figure':60} {'value':>12}  unit        (reference loop {reference:.1f} ns)")
    for figure, value, unit in figures:
        print(f"{figure:60} {value:12.3f}  {unit}")
    failed = False
    for figure, value, _ in figures:
        for name, limit in GROWTH_MAX.items():
            load, cost = name.split("_", 1)
            if figure.startswith(f"events_{load}_") and figure.endswith(f"_{cost}_ratio"):
                failed = failed or value > 1 + limit
                print(f"{'holds' if value <= 1 + limit else 'FAILS'}  {figure}: at most {1 + limit:.2f}: {value:.3f}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
