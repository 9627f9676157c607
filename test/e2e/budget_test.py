"""Tests the CPU budget: a collector that costs more than --cpu-budget lowers its sampling rate and logs the change.

The profile must stay correct. Each sample's ns are the sampling period at that time. So shares and CPU time are correct
although the rate changed during the run.
"""

import math
import re
import time

import lib

RATE_HZ = 999
SHARES = {"hash_blocks": 0.6, "sort_rows": 0.3, "parse_text": 0.1}
LOWERED = re.compile(r"sampling rate (?:lowered|raised) rate_hz=([0-9.]+) was_hz=([0-9.]+)")


class Run:
    """The truth program, profiled with one budget: the whole run, and each second."""

    def __init__(self, budget, seconds):
        with lib.directory() as d, lib.programs() as programs:
            reducer = lib.Reducer(d)
            programs.append(reducer)
            start = lib.now_ms()
            collector = lib.Collector(d, reducer.intake_port, rate=RATE_HZ, args=["--batch-interval", "1s"], cpu_budget=budget)
            programs.append(collector)
            lib.wait_for("the node to appear", lambda: reducer.status()["nodes"] or not collector.running(), 20)
            lib.check(collector.running(), "the collector ended")
            self.truth = lib.run_truth(seconds)
            selector = f'{{process_executable_name="truth",process_pid="{self.truth["pid"]}"}}'
            time.sleep(0.5)
            lib.check(collector.stop() == 0, "the collector's exit code")
            end = lib.now_ms() + 1000
            lib.check_law(reducer.status())
            self.changes = [(float(now), float(was)) for now, was in LOWERED.findall(collector.text())]
            self.graph = lib.wait_for("names", lambda: self.named(reducer.flamegraph(selector, start, end)), 30)
            self.seconds = []
            for at in range(start, end, 1000):
                graph = reducer.flamegraph(selector, at, min(at + 1000, end))
                if len(graph) > 0 and graph.total_count[0] > 0:
                    self.seconds.append((graph.total_count[0], graph.total_ns[0]))
            lib.check(sum(s[0] for s in self.seconds) == self.graph.total_count[0], "the seconds add up to the whole")

    @staticmethod
    def named(graph):
        return graph if graph.ns_of("hash_blocks") > 0 else None

    def period_ms(self, second):
        count, ns = self.seconds[second]
        return ns / count / 1e6

    def effective_samples(self):
        """Returns how many samples of equal weight give the same precision: (Σ weight)² / Σ weight².

        Within a second all samples have about the same weight.
        """
        return self.graph.total_ns[0] ** 2 / sum(ns * ns / count for count, ns in self.seconds)

    def check_truth(self):
        n = self.effective_samples()
        total = self.graph.total_ns[0]
        for function, share in SHARES.items():
            seen = self.graph.ns_of(function) / total
            # The second term is Bernstein's: with few samples, the deviation is larger than in a normal distribution.
            bound = lib.four_sigma(share, n) + 16 / (3 * n)
            print(f"  {function}: {seen:.4f} of {total} ns, true {share}, bound ±{bound:.4f}")
            lib.check(abs(seen - share) <= bound, f"{function}: share {seen:.4f}, true {share}, bound ±{bound:.4f}")
        ratio = total / self.truth["main_thread_schedstat_ns"]
        bound = max(0.02, 4 / math.sqrt(n))
        print(f"  ns: {total} sampled, ratio to schedstat {ratio:.4f}, bound ±{bound:.4f}, as good as {n:.0f} equal samples")
        lib.check(abs(ratio - 1) <= bound, f"the samples' ns are {ratio:.4f} of the CPU time")


def over_budget():
    run = Run("0.05%", 20)
    for now, was in run.changes:
        print(f"  rate {was} → {now} Hz")
    lib.check(run.changes and run.changes[0][1] == RATE_HZ and run.changes[0][0] < RATE_HZ, f"the log tells no lower rate: {run.changes}")
    most, last = max(count for count, _ in run.seconds), run.seconds[-2][0]
    print(f"  at most {most} samples a second, {last} in the last whole one, of {run.period_ms(-2):.3f} ms")
    lib.check(last < 0.75 * most, "samples a second have not become fewer")
    lib.check(abs(run.period_ms(0) * RATE_HZ / 1000 - 1) < 0.001, "the first second is not sampled at the configured rate")
    # In a whole second with one rate, each sample has the weight of the period in the log.
    periods_ms = [1000 / RATE_HZ] + [1000 / now for now, _ in run.changes]
    steady = sum(any(abs(run.period_ms(i) / p - 1) < 0.01 for p in periods_ms) for i in range(len(run.seconds)))
    lib.check(steady >= len(run.seconds) - len(run.changes), f"samples of other periods than {periods_ms} ms: {run.seconds}")
    run.check_truth()


def without_budget():
    run = Run("off", 6)
    lib.check(not run.changes, f"the rate changed without a budget: {run.changes}")
    for i in range(len(run.seconds)):
        lib.check(abs(run.period_ms(i) * RATE_HZ / 1000 - 1) < 0.001, f"second {i} is sampled at {1000 / run.period_ms(i):.1f} Hz")
    run.check_truth()


if __name__ == "__main__":
    lib.main(over_budget, without_budget)
